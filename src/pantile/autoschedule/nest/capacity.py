"""The cache capacity of a thread, the number of rows of a tile's arrays that caches hold, and the misses of a tile.

Rows are counted until one evicts another (sioutas-thesis Algorithm 1, `emu`). They are `pitch` elements apart. Each is
fetched line by line into the sets of an empty cache, along with what the prefetchers fetch; the first row that meets a
full set is one too many.

Two slips of the printed algorithm are mended: sets are counted in lines (it divides by the size of an element), and
wrap around. Of a cache that cores share, one core's part counts, as in the text about the Cortex-A15.

Misses are those of tiled loops in which the prefetchers fetch all lines of a row but the first (sioutas-thesis §4.3):

for ii, kk, jj over tiles: for i, k, j inside a tile: C[i, j] += A[i, k] * B[k, j]

one iteration of i touches T_j + T_k + T_k * T_j elements (4.1), and misses 1 + 1 + T_k times (4.3)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil, prod

import numpy as np

from ...dataclass import cached_property, dataclass
from ...machine.description import Cache, Cpu
from ..common.facts import Extents
from .statement import Numbers, Reference, Statement, product

MOST_LINES = 1 << 20  # that are simulated; an L2 usually has 2^15
Tile = Mapping[str, Numbers]


@dataclass(frozen=True, eq=False)
class Capacity:
    """The capacities of caches for the arrays of one statement."""

    s: Statement
    machine: Cpu
    prefetcher: Prefetcher  # of L2

    @cached_property
    def element(self) -> int:
        """DTS: the bytes of an element of the widest array."""
        return max(r.bytes for r in self.s.references)

    @cached_property
    def per_line(self) -> int:
        """The elements of a cache line, lc in the thesis."""
        return max(1, self.machine.l1.line // self.element)

    @cached_property
    def threads(self) -> int:
        """The hardware threads of a core."""
        return max(1, self.machine.threads // self.machine.cores)

    @property
    def l1(self) -> float:
        """The bytes of the L1 cache that a thread can count on."""
        return self.machine.l1.per_core / self.threads

    @property
    def l2(self) -> float:
        """The bytes of the L2 cache that a thread can count on; the other half is for prefetched lines."""
        return self.machine.l2.per_core / self.threads / 2

    def rows_in_l1(self, row: int, pitch: int) -> int:
        """Algorithm 1 for L1."""
        return most_rows(self.machine.l1, self.threads, self.element, row, pitch)

    def rows_in_l2(self, row: int, pitch: int) -> int:
        """Algorithm 1 for L2."""
        return most_rows(self.machine.l2, self.threads, self.element, row, pitch, self.prefetcher)

    def enough_tiles(self, loop: str, tile: Mapping[str, Numbers]) -> Numbers:
        """Equation 4.13: at least one iteration of the outermost inter-tile loop per thread."""
        return self.s.extents[loop] / tile[loop] >= self.machine.threads


@dataclass(frozen=True)
class Prefetcher:
    """A prefetcher of L2: its requests per access, and its largest distance ahead, in lines. None stands for the
    next-line prefetcher of L1."""

    requests: int = 2
    distance: int = 20  # "usually 20 for Intel processors"


@lru_cache(maxsize=4096)
def most_rows(
    cache: Cache, threads: int, element: int, row: int, pitch: int, prefetcher: Prefetcher | None = None
) -> int:
    """The number of rows of `row` elements that do not interfere; `threads` run on each core."""
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
    """Lines 9 to 30, for all rows at once. One row more than fits in any case is enough."""
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
    """How often each value occurs before its position."""
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


def working_set(references: Iterable[Reference], tile: Tile) -> Numbers:
    """Bytes that a tile touches: equation 4.6, and 4.1 for a tile of one iteration of the outermost intra-tile loop."""
    return sum(r.points(tile) * r.bytes for r in references)


def without(tile: Tile, loop: str) -> Tile:
    """A tile of one iteration of a loop."""
    return {n: t for n, t in tile.items() if n != loop}


def tile_counts(extents: Extents, tile: Tile) -> dict[str, Numbers]:
    """The number of tiles along each loop, B / T."""
    return {n: np.ceil(extent / tile[n]) for n, extent in extents.items()}


def l1_misses(references: Iterable[Reference], extents: Extents, tile: Tile, outermost: str) -> Numbers:
    """Equation 4.5. A row is one miss (4.3); what the outermost intra-tile loop does not move is reused (4.4)."""
    each = without(tile, outermost)
    misses = sum(r.rows(each) * (tile[outermost] if outermost in r.loops else 1) for r in references)
    return misses * product(tile_counts(extents, tile).values())


def l2_misses(references: Iterable[Reference], extents: Extents, tile: Tile, innermost: str) -> Numbers:
    """Equation 4.10. What the innermost inter-tile loop does not move is reused by all of its iterations (4.9)."""
    counts = tile_counts(extents, tile)
    misses = sum(r.rows(tile) * (counts[innermost] if innermost in r.loops else 1) for r in references)
    return misses * product(count for n, count in counts.items() if n != innermost)


def order_cost(extents: Extents, tile: Mapping[str, int], inter: Sequence[str], intra: Sequence[str]) -> float:
    """Equation 4.12: iterations between the inter-tile loop and the intra-tile loop of each dimension."""
    counts = tile_counts(extents, tile)
    total = 0.0
    for loop in extents:
        between = [counts[n] for n in inter[inter.index(loop) + 1 :]] + [tile[n] for n in intra[: intra.index(loop)]]
        total += prod(float(n) for n in between)
    return total
