"""How the elements of a stage or input lie in memory: its dims, or parts that a schedule cuts them into, in order.

An address decides which set of a cache may hold it, so that rows a power of two apart evict each other long before the
cache is full: these are conflict misses.

    filter[c, 3, 3, 128] of floats, 16 of c and all of 3 by 3, a line of each: 144 lines, 72, 24 and 8 lines apart. All
    are in 32 of the 256 sets of a first cache, which hold 4 lines each: as if they were eight times as large.

Rows of buffers that code makes are a line farther apart than they are long (`lower/flatten.py`), planes are not. Caches
behind the first one have addresses of memory, where pages lie anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod
from typing import NamedTuple

from ..machine.description import Cache
from .reads import Box


class MemoryDim(NamedTuple):
    """A dim of memory: the axis that it belongs to, its extent, and how far each step goes along the axis."""

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
    """The number of places, farther apart than `near` elements, that the runs of a box are in."""
    distance, count = 1, 1
    for axis, extent, step in reversed(parts):
        if distance > near:
            count *= min(extent, -(-box[axis] // step))
        distance *= extent
    return count


def conflict_factor(cache: Cache, parts: list[MemoryDim], box: Box, each: int, padding: int) -> float:
    """How many times as much of a cache a box takes as it has bytes, for elements of `each` bytes: 1 if the lines
    of its rows are in as many sets as they can be. `padding`: bytes between rows."""
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
    """The distances at which rows follow each other, in lines, and how many do."""
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
