"""Strips of rows in parallel: all four filters along a row, in 16 bits, then what each pixel takes of them."""

from collections.abc import Callable, Mapping

import numpy as np
from numba import njit, prange

from ..library_worker import Array

STRIP = 50
EDGE = 2


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Compiled by the first call."""
    raw, (out,) = inputs["raw"], outputs

    def compute() -> Array:
        _demosaic(raw, out)
        return out

    return compute


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
    for x in range(green.size):
        here = c[x + 2]
        beside, above = np.int16(c[x + 1] + c[x + 3]), np.int16(b[x + 2] + d[x + 2])
        beside2, above2 = np.int16(c[x] + c[x + 4]), np.int16(a[x + 2] + e[x + 2])
        corners = np.int16(b[x + 1] + b[x + 3] + d[x + 1] + d[x + 3])
        green[x] = _rounded(np.int16(8 * here + 4 * (beside + above) - 2 * (beside2 + above2)))
        opposite[x] = _rounded(np.int16(12 * here + 4 * corners - 3 * (beside2 + above2)))
        row[x] = _rounded(np.int16(10 * here + 8 * beside - 2 * (corners + beside2) + above2))
        column[x] = _rounded(np.int16(10 * here + 8 * above - 2 * (corners + above2) + beside2))


@njit(inline="always")
def _rounded(v: np.int16) -> np.uint8:
    """A sixteenth of it."""
    return np.uint8(min(max(np.int16(np.int16(v + 8) >> 4), np.int16(0)), np.int16(255)))


@njit
def _choose(
    raw: Array, opposite: Array, green: Array, row: Array, column: Array, out: Array, own: int, other: int
) -> None:
    """`own` is the channel that this row has seen beside green: red in even rows, in their even columns."""
    columns = raw.size
    for x in range(own // 2, columns, 2):
        out[x, own] = raw[x]
        out[x, 1] = green[x]
        out[x, other] = opposite[x]
    for x in range(other // 2, columns, 2):
        out[x, own] = row[x]
        out[x, 1] = raw[x]
        out[x, other] = column[x]
