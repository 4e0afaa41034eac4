"""Strips of rows in parallel; in each, four rows of grey and of the gradient in rings."""

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program
from ._gray import gray_row

STRIP = 64
TWELFTH, TWO, KAPPA = np.float32(1 / 12), np.float32(2), np.float32(0.04)


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: _harris(img, out)


@njit(parallel=True, fastmath=True)
def _harris(img: Array, out: Array) -> None:
    rows, columns = out.shape
    width = columns + 6
    for strip in prange((rows + STRIP - 1) // STRIP):
        gray = np.empty((4, width), np.float32)
        ix, iy = np.empty((4, width), np.float32), np.empty((4, width), np.float32)
        first, last = strip * STRIP + 3, min(strip * STRIP + STRIP, rows) + 3  # in rows of the image
        for y in range(first - 2, first):
            gray_row(img, y, gray[y % 4])
        for y in range(first, first + 2):  # gradients of the two rows before the first
            gray_row(img, y, gray[y % 4])
            _gradient_row(gray[(y - 2) % 4], gray[(y - 1) % 4], gray[y % 4], ix[(y - 1) % 4], iy[(y - 1) % 4])
        for y in range(first, last):
            gray_row(img, y + 2, gray[(y + 2) % 4])
            new = (y + 1) % 4
            _gradient_row(gray[y % 4], gray[new], gray[(y + 2) % 4], ix[new], iy[new])
            _response_row(ix[(y - 1) % 4], ix[y % 4], ix[new], iy[(y - 1) % 4], iy[y % 4], iy[new], out[y - 3])


@njit(fastmath=True)
def _gradient_row(above: Array, here: Array, below: Array, ix: Array, iy: Array) -> None:
    for x in range(1, here.shape[0] - 1):
        down_left, down, down_right = below[x - 1] - above[x - 1], below[x] - above[x], below[x + 1] - above[x + 1]
        left = above[x - 1] + TWO * here[x - 1] + below[x - 1]
        right = above[x + 1] + TWO * here[x + 1] + below[x + 1]
        ix[x] = (right - left) * TWELFTH
        iy[x] = (down_left + TWO * down + down_right) * TWELFTH


@njit(fastmath=True)
def _response_row(ax: Array, bx: Array, cx: Array, ay: Array, by: Array, cy: Array, target: Array) -> None:
    for x in range(target.shape[0]):
        sxx = syy = sxy = np.float32(0)
        for i in range(2, 5):
            px, qx, rx = ax[x + i], bx[x + i], cx[x + i]
            py, qy, ry = ay[x + i], by[x + i], cy[x + i]
            sxx += px * px + qx * qx + rx * rx
            syy += py * py + qy * qy + ry * ry
            sxy += px * py + qx * qy + rx * ry
        trace = sxx + syy
        target[x] = sxx * syy - sxy * sxy - KAPPA * trace * trace
