"""Loops over independent points as blocks of threads, one thread per point.

for y, x: ...      ->      block for y_block, x_block: thread for y_thread in 0..8, x_thread in 0..32: ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..target.gpu import WARP_SIZE
from .directives import StageSchedule
from .names import fresh

PICTURE = 8, WARP_SIZE  # rows and columns of a block
ROW = (256,)


def in_blocks(
    schedule: StageSchedule,
    free: Sequence[str],
    rest: Sequence[str],
    used: Collection[str],
    sizes: Sequence[int] = PICTURE,
) -> StageSchedule:
    """Split the last loops of `free` into blocks of some sizes and threads; if there is only one, into long rows. The
    other free loops become block loops, and each thread runs the loops in `rest`. New loops get none of the names in
    `used`."""
    if not free:
        return schedule
    sizes = ROW if len(free) < len(sizes) else sizes
    cut, taken = free[-len(sizes) :], {*used}
    outer, inner = _names(cut, "block", taken), _names(cut, "thread", taken)
    blocks = [*free[: -len(sizes)], *outer]
    for old, block, thread, size in zip(cut, outer, inner, sizes, strict=True):
        schedule = schedule.split(old, block, thread, size)
    return schedule.reorder(*blocks, *inner, *rest).block(*blocks).thread(*inner)


def _names(loops: Sequence[str], word: str, taken: set[str]) -> list[str]:
    """New names for parts of loops."""
    names = []
    for loop in loops:
        names.append(fresh(f"{loop}_{word}", taken.__contains__))
        taken.add(names[-1])
    return names
