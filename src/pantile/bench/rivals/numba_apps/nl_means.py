"""Strips of rows in parallel; in each, one offset of the search at a time."""

import math

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program

REACH = 3  # of the search, and of patches
STRIP = 16
SCALE = np.float32(-1 / (0.12 * 0.12 * 49))
LN2, OVER_LN2 = np.float32(math.log(2)), np.float32(1 / math.log(2))
A, B, C, D = (np.float32(v) for v in (0.01314350, 0.03668965, 0.16873890, 0.49970515))
ZERO, ONE = np.float32(0), np.float32(1)


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """Compiled by the first call; edges are repeated beforehand, which costs next to nothing."""
    (out,) = outputs
    margin = 2 * REACH
    padded = np.pad(inputs["img"], ((0, 0), (margin, margin), (margin, margin)), mode="edge")
    return lambda: _nl_means(padded, out)


@njit(parallel=True, fastmath=True)
def _nl_means(img: Array, out: Array) -> None:
    _, rows, columns = out.shape
    for strip in prange((rows + STRIP - 1) // STRIP):
        first, last = strip * STRIP, min(strip * STRIP + STRIP, rows)
        total = np.zeros((4, STRIP, columns), np.float32)
        apart = np.empty((STRIP + 2 * REACH, columns + 2 * REACH), np.float32)
        down = np.empty(columns + 2 * REACH, np.float32)
        weight = np.empty(columns, np.float32)
        for dy in range(-REACH, REACH + 1):
            for dx in range(-REACH, REACH + 1):
                for y in range(last - first + 2 * REACH):
                    _difference(img, first + y + REACH, dy, dx, apart[y])
                for y in range(last - first):
                    _column_sums(apart, y, down)
                    _weights(down, weight)
                    row, start = first + y + 2 * REACH + dy, 2 * REACH + dx
                    _accumulate(img, row, start, weight, total, y)
        for y in range(last - first):
            for c in range(3):
                for x in range(columns):
                    out[c, first + y, x] = min(max(total[c, y, x] / total[3, y, x], ZERO), ONE)


@njit(fastmath=True)
def _difference(img: Array, row: int, dy: int, dx: int, target: Array) -> None:
    """Squared, over channels, of a row and the one that the offset leads to."""
    red, green, blue = img[0, row], img[1, row], img[2, row]
    other_red, other_green, other_blue = img[0, row + dy], img[1, row + dy], img[2, row + dy]
    for x in range(target.shape[0]):
        r = red[x + REACH] - other_red[x + REACH + dx]
        g = green[x + REACH] - other_green[x + REACH + dx]
        b = blue[x + REACH] - other_blue[x + REACH + dx]
        target[x] = r * r + g * g + b * b


@njit(fastmath=True)
def _column_sums(apart: Array, y: int, target: Array) -> None:
    for x in range(target.shape[0]):
        above = apart[y, x] + apart[y + 1, x] + apart[y + 2, x]
        target[x] = above + apart[y + 3, x] + (apart[y + 4, x] + apart[y + 5, x] + apart[y + 6, x])


@njit(fastmath=True)
def _weights(down: Array, target: Array) -> None:
    for x in range(target.shape[0]):
        left = down[x] + down[x + 1] + down[x + 2]
        v = SCALE * (left + down[x + 3] + (down[x + 4] + down[x + 5] + down[x + 6]))
        k = np.floor(v * OVER_LN2)
        f = v - k * LN2
        polynomial = ((((A * f + B) * f + C) * f + D) * f + ONE) * f + ONE
        exponent = np.int32(k) + np.int32(127)
        bits = np.int32(max(exponent, np.int32(0))) << np.int32(23)
        target[x] = polynomial * np.int32(bits).view(np.float32)


@njit(fastmath=True)
def _accumulate(img: Array, row: int, start: int, weight: Array, total: Array, y: int) -> None:
    red, green, blue = img[0, row], img[1, row], img[2, row]
    for x in range(weight.shape[0]):
        w = weight[x]
        total[0, y, x] += w * red[x + start]
        total[1, y, x] += w * green[x + start]
        total[2, y, x] += w * blue[x + start]
        total[3, y, x] += w
