"""Strips of rows in parallel: all four filters along a row, in 16 bits, then what each pixel takes of them."""

import numpy as np
from numba import njit, prange
from numpy import int16

from ..library_worker import Array, Inputs, Outputs, Program

STRIP = 50
EDGE = 2


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    raw, (out,) = inputs["raw"], outputs
    return lambda: _demosaic(raw, out)


@njit(parallel=True)
def _demosaic(raw: Array, out: Array) -> None:
    rows, columns = raw.shape
    for strip in prange((rows + STRIP - 1) // STRIP):
        first, last = strip * STRIP, min(strip * STRIP + STRIP, rows)
        ring = np.empty((5, columns + 2 * EDGE), np.int16)
        green, opposite = np.empty(columns, np.uint8), np.empty(columns, np.uint8)
        row, column = np.empty(columns, np.uint8), np.empty(columns, np.uint8)
        for y in range(first - EDGE, first + EDGE):
            _widen(raw[_mirrored(y, rows)], ring[y % 5])
        for y in range(first, last):
            _widen(raw[_mirrored(y + EDGE, rows)], ring[(y + EDGE) % 5])
            a, b, c, d, e = (ring[(y + 3) % 5], ring[(y + 4) % 5], ring[y % 5], ring[(y + 1) % 5], ring[(y + 2) % 5])
            _filters(a, b, c, d, e, green, opposite, row, column)
            if y % 2 == 0:
                _choose(raw[y], opposite, green, row, column, out[y], 0, 2)
            else:
                _choose(raw[y], opposite, green, row, column, out[y], 2, 0)


@njit
def _mirrored(y: int, rows: int) -> int:
    return rows - 1 - abs(rows - 1 - abs(y))


@njit
def _widen(source: Array, target: Array) -> None:
    columns = source.size
    for x in range(columns):
        target[x + EDGE] = source[x]
    for k in range(EDGE):
        target[k] = target[2 * EDGE - k]
        target[columns + EDGE + k] = target[columns + EDGE - 2 - k]


@njit
def _filters(
    a: Array, b: Array, c: Array, d: Array, e: Array, green: Array, opposite: Array, row: Array, column: Array
) -> None:
    """Of five rows. Every sum is cut to 16 bits at once: Numba has made 64 of them."""
    for x in range(green.size):
        here = c[x + 2]
        beside, above = int16(c[x + 1] + c[x + 3]), int16(b[x + 2] + d[x + 2])
        beside2, above2 = int16(c[x] + c[x + 4]), int16(a[x + 2] + e[x + 2])
        corners = int16(int16(b[x + 1] + b[x + 3]) + int16(d[x + 1] + d[x + 3]))
        near, far, ten = int16(beside + above), int16(beside2 + above2), int16(here * 10)
        green[x] = _rounded(int16(int16(int16(here << 3) + int16(near << 2)) - int16(far << 1)))
        opposite[x] = _rounded(int16(int16(int16(here * 12) + int16(corners << 2)) - int16(far * 3)))
        row[x] = _rounded(int16(int16(int16(ten + int16(beside << 3)) - int16(int16(corners + beside2) << 1)) + above2))
        column[x] = _rounded(
            int16(int16(int16(ten + int16(above << 3)) - int16(int16(corners + above2) << 1)) + beside2)
        )


@njit(inline="always")
def _rounded(v: np.int16) -> np.uint8:
    """A sixteenth of it."""
    return np.uint8(min(max(int16(int16(v + 8) >> 4), int16(0)), int16(255)))


@njit
def _choose(
    raw: Array, opposite: Array, green: Array, row: Array, column: Array, out: Array, own: int, other: int
) -> None:
    """`own` is the channel that this row has seen beside green: red in even rows, in their even columns."""
    for x in range(raw.size):
        seen = (x + own // 2) % 2 == 0
        out[x, own] = raw[x] if seen else row[x]
        out[x, 1] = green[x] if seen else raw[x]
        out[x, other] = opposite[x] if seen else column[x]
