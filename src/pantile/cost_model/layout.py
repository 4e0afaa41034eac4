"""The layout of a stage or input in memory: its dims, or the parts into which a schedule splits them, in order.

The address determines which set of a cache may hold a line, so that rows at distances of a power of two evict each
other long before the cache is full: these are conflict misses.

    filter[c, 3, 3, 128] of floats, 16 of c and all of 3 by 3, a line of each: 144 lines, 72, 24 and 8 lines apart. All
    are in 32 of the 256 sets of an L1 cache, which hold 4 lines each: as if they were eight times as large.

Rows of buffers that code allocates are a line farther apart than they are long (`lower/flatten.py`), planes are not.
Caches behind L1 use physical addresses, and pages lie anywhere in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod
from typing import NamedTuple

from ..machine.description import Cache
from .reads import Box


class MemoryDim(NamedTuple):
    """A dim of memory: the axis to which it belongs, its extent, and the distance of its steps along the axis."""

    axis: int
    extent: int
    step: int


def run(parts: list[MemoryDim], box: Box) -> int:
    """The number of consecutive elements of a box in memory."""
    length = 1
    for axis, extent, step in reversed(parts):
        inside = min(extent, -(-box[axis] // step))
        length *= inside
        if inside < extent:
            break
    return length


def far_runs(parts: list[MemoryDim], box: Box, near: float) -> int:
    """The number of places, more than `near` elements apart, at which a box has runs."""
    distance, count = 1, 1
    for axis, extent, step in reversed(parts):
        if distance > near:
            count *= min(extent, -(-box[axis] // step))
        distance *= extent
    return count


def conflict_factor(cache: Cache, parts: list[MemoryDim], box: Box, each: int, padding: int) -> float:
    """The bytes of a cache that a box takes, relative to its own bytes, for elements of `each` bytes: 1 if the lines of
    its rows are in as many sets as they can be. `padding` is the number of bytes between rows."""
    sets = max(1, cache.size // (cache.ways * cache.line))
    length = max(1, run(parts, box) * each // cache.line)  # lines of a row
    steps = list(_steps(parts, box, each, cache.line, padding))
    lines = length * prod([n for _, n in steps])
    if not steps or lines <= cache.ways:
        return 1.0
    reached, apart = 1, sets
    for distance, rows in sorted(steps, key=lambda s: -gcd(sets, s[0])):
        apart = gcd(apart, distance)
        reached = min(reached * rows, sets // apart)
    reached = min(sets, reached * length)
    return sets / reached if lines > cache.ways * reached else 1.0


def _steps(parts: list[MemoryDim], box: Box, each: int, line: int, padding: int) -> Iterator[tuple[int, int]]:
    """The distances between rows, in lines, and the number of rows at each distance."""
    distance, inside_run = each, True
    for axis, extent, step in reversed(parts):
        inside = min(extent, -(-box[axis] // step))
        if not inside_run and inside > 1:
            yield distance // line if distance % line == 0 else 1, inside
        inside_run = inside_run and inside == extent
        is_row = distance < line
        distance *= extent
        if is_row and distance >= line:
            distance += padding
