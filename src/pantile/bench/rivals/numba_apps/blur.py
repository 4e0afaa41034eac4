"""Strips of rows in parallel; in each, three rows of the horizontal blur in a ring."""

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program

STRIP = 64


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: _blur(img, out)


@njit(parallel=True)
def _blur(img: Array, out: Array) -> None:
    rows, columns = out.shape
    for strip in prange((rows + STRIP - 1) // STRIP):
        ring = np.empty((3, columns), np.uint16)
        first, last = strip * STRIP, min(strip * STRIP + STRIP, rows)
        for y in range(first, first + 2):
            _blur_row(img[y], ring[y % 3])
        for y in range(first, last):
            _blur_row(img[y + 2], ring[(y + 2) % 3])
            _average(ring[y % 3], ring[(y + 1) % 3], ring[(y + 2) % 3], out[y])


@njit
def _blur_row(source: Array, target: Array) -> None:
    for x in range(target.shape[0]):
        target[x] = np.uint16(source[x] + source[x + 1] + source[x + 2]) // np.uint16(3)


@njit
def _average(a: Array, b: Array, c: Array, target: Array) -> None:
    for x in range(target.shape[0]):
        target[x] = np.uint16(a[x] + b[x] + c[x]) // np.uint16(3)
