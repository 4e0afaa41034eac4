"""Sums of windows along a row, in a few passes that LLVM can vectorize: of two elements, of four, of eight, …"""

import numpy as np
from numba import njit

from ..library_worker import Array


@njit
def window_sums(row: Array, doublings: int, step: int, target: Array, spare: Array) -> None:
    """target[i] is the sum of row[i], row[i + step], …: one element more than 2**doublings."""
    source, distance = row, step
    for k in range(doublings):
        place = target if (doublings - k) % 2 == 0 else spare
        _add(source, source[distance:], place)
        source, distance = place, 2 * distance
    _add(source, row[distance:], target)


@njit
def _add(a: Array, b: Array, target: Array) -> None:
    n = min(b.size, target.size)
    for i in range(n):
        target[i] = a[i] + b[i]


@njit
def repeat_ends(row: Array, margin: int) -> None:
    """The elements in the margins are those at the edges, channel by channel."""
    columns, channels = row.shape
    for c in range(channels):
        for k in range(margin):
            row[k, c] = row[margin, c]
            row[columns - 1 - k, c] = row[columns - 1 - margin, c]


@njit
def clamped(y: int, rows: int) -> int:
    return np.int64(min(max(y, 0), rows - 1))
