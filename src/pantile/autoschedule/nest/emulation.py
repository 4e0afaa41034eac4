"""How many rows of a tile a cache holds before one evicts another (sioutas-thesis Algorithm 1, `emu`).

Rows lie `pitch` elements apart. Each is fetched line by line into the sets of an empty cache, with what the prefetchers
fetch besides; the first row that meets a full set is one too many.

Two slips of the printed algorithm are mended: sets are counted in lines (it divides by the size of an element), and
wrap around. A cache that cores share counts for the part of one core, as the text does for the Cortex-A15.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np

from ...dataclass import dataclass
from ...machine.description import Cache

MOST_LINES = 1 << 20  # that are looked at; of an L2, usually 2^15


@dataclass(frozen=True)
class Prefetcher:
    """A prefetcher of L2: requests per access, and the largest distance ahead of it, in lines. None stands for the
    next-line prefetcher of L1."""

    requests: int = 2
    distance: int = 20  # "usually 20 for Intel processors"


@lru_cache(maxsize=4096)
def most_rows(
    cache: Cache, threads: int, element: int, row: int, pitch: int, prefetcher: Prefetcher | None = None
) -> int:
    """Rows of `row` elements without interference; `threads` run on each core."""
    per_line = max(1, cache.line // element)
    ways = max(1, cache.ways // (threads * cache.shared_by))
    sets = cache.size // (cache.ways * cache.line)
    if prefetcher is not None:  # line 2: "optimizing for L2"
        lines = ceil(max(row, per_line) / per_line)
        sets = max(1, sets // 2)  # the other half is for what constant-stride prefetchers fetch
    else:
        lines = ceil(max(row + per_line, 2 * per_line) / per_line)  # each row with the line behind it
    if lines > sets * ways:
        return 0
    return _fetched(sets, ways, lines, pitch, per_line, prefetcher)


def _fetched(sets: int, ways: int, lines: int, pitch: int, per_line: int, prefetcher: Prefetcher | None) -> int:
    """Lines 9 to 30, for all rows at once: one more than fits in any case is enough."""
    count = min(sets * ways, MOST_LINES) // lines + 1
    first = -(-np.arange(count) * pitch // per_line)
    order = ((first[:, None] + np.arange(lines)) % sets).ravel()  # the set of each line that is fetched
    met = _earlier(order)
    full = met >= ways  # line 12
    if prefetcher is not None:
        checked = np.arange(order.size) // lines * lines < prefetcher.distance  # line 18: s - i <= L2maxpref
        full[checked] |= _ahead_is_full(order[checked], sets, ways, prefetcher.requests)
    return int(np.argmax(full)) // lines if full.any() else count


def _earlier(order: np.ndarray) -> np.ndarray:
    """How often each value occurs before its place."""
    by_value = np.argsort(order, kind="stable")
    values = order[by_value]
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    sizes = np.diff(np.r_[starts, values.size])
    occurrences = np.empty_like(order)
    occurrences[by_value] = np.arange(values.size) - np.repeat(starts, sizes)
    return occurrences


def _ahead_is_full(order: np.ndarray, sets: int, ways: int, requests: int) -> np.ndarray:
    """Lines 19 to 23: whether a prefetched line would meet a full set."""
    met = _earlier(order)
    is_full = np.zeros(order.size, bool)
    if met.max() + 1 < ways:
        return is_full
    full: set[int] = set()
    for k, line in enumerate(order.tolist()):
        if met[k] + 1 >= ways:
            full.add(line)
        is_full[k] = any((line + p) % sets in full for p in range(requests))
    return is_full
