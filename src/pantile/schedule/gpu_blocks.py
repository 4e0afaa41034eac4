"""Loops over independent points as blocks of threads, one thread per point.

    for y, x: ...               ->    block for y_block, x_block: thread for y_thread in 0..8, x_thread in 0..32: ...

If loops are known to be shorter than this, a block takes all of their iterations, and more of the loops around them:

    for y, x, k in 0..8: ...    ->    block for y, x_block: thread for x_thread in 0..32, k in 0..8: ...
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ..target.gpu import WARP_SIZE
from .directives import StageSchedule
from .names import fresh
from .sums import power_of_two

POINTS = 256  # points of a block
COLUMNS = WARP_SIZE  # columns of a block of a picture
PICTURE = POINTS // COLUMNS, COLUMNS
MOST_CUT = 3  # most loops whose iterations are threads: a block has three dims


def in_blocks(
    schedule: StageSchedule,
    free: Sequence[str],
    rest: Sequence[str],
    used: Collection[str],
    sizes: Sequence[int] = PICTURE,
) -> StageSchedule:
    """Split the last loops of `free` into blocks of the given sizes and threads; a single loop is split into long rows.
    The other free loops become block loops, and each thread runs the loops in `rest`. New loops get none of the names
    in `used`."""
    if not free:
        return schedule
    sizes = (POINTS,) if len(free) < len(sizes) else sizes
    cut, taken = free[-len(sizes) :], {*used}
    outer, inner = _names(cut, "block", taken), _names(cut, "thread", taken)
    blocks = [*free[: -len(sizes)], *outer]
    for old, block, thread, size in zip(cut, outer, inner, sizes, strict=True):
        schedule = schedule.split(old, block, thread, size)
    return schedule.reorder(*blocks, *inner, *rest).block(*blocks).thread(*inner)


def block_sizes(extents: Sequence[float]) -> Sequence[int]:
    """The numbers of threads of a block along the innermost loops with the given extents. Warps run along rows as far
    as these go."""
    if len(extents) < len(PICTURE):
        return PICTURE
    sizes = [int(min(extents[-1], COLUMNS)) or 1]
    for extent in extents[-2 : -MOST_CUT - 1 : -1]:
        room = power_of_two(POINTS // math.prod(sizes))
        sizes.append(int(min(extent, room)) or 1)
        if extent >= room:
            break
    return sizes[::-1]


def _names(loops: Sequence[str], word: str, taken: set[str]) -> list[str]:
    """New names for the parts of loops."""
    names = []
    for loop in loops:
        names.append(fresh(f"{loop}_{word}", taken.__contains__))
        taken.add(names[-1])
    return names
