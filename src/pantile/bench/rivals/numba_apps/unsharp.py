"""Strips of rows in parallel; in each, seven rows of grey in a ring."""

import math

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program
from ._gray import gray_row

SIGMA = 1.5
STRIP = 64
RING = 8  # rows of grey; seven are in use
K0, K1, K2, K3 = (np.float32(math.exp(-(i**2) / (2 * SIGMA**2)) / (math.sqrt(2 * math.pi) * SIGMA)) for i in range(4))


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: _unsharp(img, out)


@njit(parallel=True, fastmath=True)
def _unsharp(img: Array, out: Array) -> None:
    _, rows, columns = img.shape
    for strip in prange((rows + STRIP - 1) // STRIP):
        gray = np.empty((RING, columns), np.float32)
        blurred = np.empty(columns + 6, np.float32)
        ratio = np.empty(columns, np.float32)
        first, last = strip * STRIP, min(strip * STRIP + STRIP, rows)
        for y in range(first - 3, first + 3):
            gray_row(img, min(max(y, 0), rows - 1), gray[y % RING])
        for y in range(first, last):
            gray_row(img, min(y + 3, rows - 1), gray[(y + 3) % RING])
            _blur_rows(gray, y, blurred[3:])
            blurred[:3] = blurred[3]
            blurred[columns + 3 :] = blurred[columns + 2]
            _ratio_row(gray[y % RING], blurred, ratio)
            for c in range(3):
                _scale_row(img[c, y], ratio, out[c, y])


@njit(fastmath=True)
def _blur_rows(gray: Array, y: int, target: Array) -> None:
    a, b, c, d = gray[(y - 3) % RING], gray[(y - 2) % RING], gray[(y - 1) % RING], gray[y % RING]
    e, f, g = gray[(y + 1) % RING], gray[(y + 2) % RING], gray[(y + 3) % RING]
    for x in range(gray.shape[1]):
        target[x] = K0 * d[x] + K1 * (c[x] + e[x]) + K2 * (b[x] + f[x]) + K3 * (a[x] + g[x])


@njit(fastmath=True)
def _ratio_row(gray: Array, by: Array, target: Array) -> None:
    for x in range(target.shape[0]):
        near = K0 * by[x + 3] + K1 * (by[x + 2] + by[x + 4])
        far = K2 * (by[x + 1] + by[x + 5]) + K3 * (by[x] + by[x + 6])
        target[x] = (np.float32(2) * gray[x] - (near + far)) / gray[x]


@njit(fastmath=True)
def _scale_row(source: Array, ratio: Array, target: Array) -> None:
    for x in range(target.shape[0]):
        target[x] = source[x] * ratio[x]
