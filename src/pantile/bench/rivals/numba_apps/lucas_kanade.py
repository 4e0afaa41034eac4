"""Strips of rows in parallel; in each, running sums of the five products down the columns, window sums along the row.

Products are integers, four or two times what the app has, and so are their sums: exact.
"""

import numpy as np
from numba import njit, prange
from numpy import int32

from ..library_worker import Array, Inputs, Outputs, Program
from ._window import clamped, repeat_ends, window_sums

STRIP = 125
RADIUS = 4
DOUBLINGS = 3  # 9 = 2**3 + 1
QUARTER, HALF = np.float32(0.25 / (2 * RADIUS + 1) ** 2), np.float32(0.5 / (2 * RADIUS + 1) ** 2)
RIDGE = np.float32(10)


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    before, after, (out,) = inputs["before"], inputs["after"], outputs
    return lambda: _flow(before, after, out)


@njit(parallel=True)
def _flow(before: Array, after: Array, out: Array) -> None:
    rows, columns = before.shape
    for strip in prange((rows + STRIP - 1) // STRIP):
        first, last = strip * STRIP, min(strip * STRIP + STRIP, rows)
        sums = np.zeros((5, columns + 2 * RADIUS), np.int32)
        windows, spare = np.empty(sums.shape, np.int32), np.empty(sums.shape[1], np.int32)
        for y in range(first - RADIUS, first + RADIUS):
            _products(before, after, clamped(y, rows), sums, int32(1))
        for y in range(first, last):
            _products(before, after, clamped(y + RADIUS, rows), sums, int32(1))
            for k in range(5):
                repeat_ends(sums[k].reshape(-1, 1), RADIUS)
                window_sums(sums[k], DOUBLINGS, 1, windows[k], spare)
            _solve(windows[0], windows[1], windows[2], windows[3], windows[4], out[y])
            _products(before, after, clamped(y - RADIUS, rows), sums, int32(-1))


@njit
def _products(before: Array, after: Array, y: int, sums: Array, sign: np.int32) -> None:
    """Added to what the columns have, or taken away again. Products are cut to 32 bits: Numba has made 64 of them."""
    rows, columns = before.shape
    above, here, below, later = before[clamped(y - 1, rows)], before[y], before[clamped(y + 1, rows)], after[y]
    xx, xy, yy, xt, yt = (sums[0][RADIUS:], sums[1][RADIUS:], sums[2][RADIUS:], sums[3][RADIUS:], sums[4][RADIUS:])
    for x in range(1, columns - 1):
        dx, dy = _difference(here[x - 1], here[x + 1]), _difference(above[x], below[x])
        dt = _difference(here[x], later[x])
        sx, sy = int32(sign * dx), int32(sign * dy)
        xx[x] += int32(sx * dx)
        xy[x] += int32(sx * dy)
        yy[x] += int32(sy * dy)
        xt[x] += int32(sx * dt)
        yt[x] += int32(sy * dt)
    for x in (0, columns - 1):
        dx = _difference(here[max(x - 1, 0)], here[min(x + 1, columns - 1)])
        dy, dt = _difference(above[x], below[x]), _difference(here[x], later[x])
        sx, sy = int32(sign * dx), int32(sign * dy)
        xx[x] += int32(sx * dx)
        xy[x] += int32(sx * dy)
        yy[x] += int32(sy * dy)
        xt[x] += int32(sx * dt)
        yt[x] += int32(sy * dt)


@njit(inline="always")
def _difference(a: np.uint8, b: np.uint8) -> np.int32:
    return int32(int32(b) - int32(a))


@njit(fastmath=True, error_model="numpy")
def _solve(xx: Array, xy: Array, yy: Array, xt: Array, yt: Array, out: Array) -> None:
    for x in range(out.shape[0]):
        a, b = np.float32(xx[x]) * QUARTER + RIDGE, np.float32(xy[x]) * QUARTER
        d = np.float32(yy[x]) * QUARTER + RIDGE
        e, f = np.float32(xt[x]) * HALF, np.float32(yt[x]) * HALF
        scale = np.float32(1) / (a * d - b * b)
        out[x, 0] = (b * f - d * e) * scale
        out[x, 1] = (b * e - a * f) * scale
