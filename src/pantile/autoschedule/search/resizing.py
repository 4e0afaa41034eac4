"""Resizing: one factor of a schedule, of a tile, a vector, an unrolled loop or a task, twice or half as large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...schedule.directives import StageSchedule
from ...schedule.schedule import Schedule

_WITH_FACTORS = ("split", "tile", "vectorize", "unroll", "parallel")
WIDEST = 64  # lanes


def resizings(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """What is changed, and the schedule."""
    for chain in schedule.values():
        for k, d in enumerate(chain.directives):
            if d.verb in _WITH_FACTORS:
                for j, factor in enumerate(d.args):
                    if isinstance(factor, int):
                        for other in (factor * 2, factor // 2):
                            if other >= 2 and (d.verb != "vectorize" or other <= WIDEST):
                                yield chain.name, schedule.replace(_with_factor(chain, k, j, other))


def _with_factor(chain: StageSchedule, k: int, j: int, factor: int) -> StageSchedule:
    d = chain.directives[k]
    resized = replace(d, args=(*d.args[:j], factor, *d.args[j + 1 :]))
    return replace(chain, directives=(*chain.directives[:k], resized, *chain.directives[k + 1 :]))
