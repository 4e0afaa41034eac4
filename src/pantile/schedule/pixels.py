"""Loops over points that do not wait for each other, as blocks of threads: one thread per point.

for y, x: ...      ->      block for y_block, x_block: thread for y_thread in 0..8, x_thread in 0..32: ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..target.gpu import WARP_SIZE
from .directives import StageSchedule
from .names import fresh

ROWS, COLUMNS = 8, WARP_SIZE  # of a block of a picture
POINTS = 256  # of a block of a single row


def in_blocks(
    schedule: StageSchedule, free: Sequence[str], rest: Sequence[str], used: Collection[str]
) -> StageSchedule:
    """The last two of some loops, or one, in blocks; the others are blocks, and each thread goes through the rest.
    `used`: names that new loops must not have."""
    if not free:
        return schedule
    sizes = (ROWS, COLUMNS) if len(free) > 1 else (POINTS,)
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
