"""Resizing: one factor of a schedule, of a tile, a vector, an unrolled loop or a task, twice or half as large."""

from __future__ import annotations

from collections.abc import Iterator

from ...schedule.directives import WITH_FACTORS
from ...schedule.schedule import Schedule

WIDEST = 64  # lanes


def resizings(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """What is changed, and the schedule."""
    for chain in schedule.values():
        for k, d in enumerate(chain.directives):
            if d.verb in WITH_FACTORS:
                for j, factor in enumerate(d.args):
                    if isinstance(factor, int):
                        for other in (factor * 2, factor // 2):
                            if other >= 2 and (d.verb != "vectorize" or other <= WIDEST):
                                yield chain.name, schedule.replace(chain.with_factor(k, j, other))
