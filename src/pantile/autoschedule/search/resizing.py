"""Resizing: one factor of a schedule, of a tile, a vector, an unrolled loop or a task, twice or half as large.

Among vectors of equal cost, those that fill a cache line are better for outputs: whole lines are written faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...schedule.directives import WITH_FACTORS
from ...schedule.schedule import Schedule
from ..strategy import Problem

WIDEST = 64  # lanes


def resizings(
    schedule: Schedule, extents: Callable[[str], Mapping[str, int]] = lambda name: {}
) -> Iterator[tuple[str, Schedule]]:
    """The stage that is changed, and the schedule. `extents` are those of a stage's dims, as far as known: what covers
    a whole dim does not become longer."""
    for chain in schedule.values():
        known = extents(chain.name)
        for k, d in enumerate(chain.directives):
            if d.verb in WITH_FACTORS:
                for j, factor in enumerate(d.args):
                    if isinstance(factor, int):
                        covers = factor >= known.get(str(d.args[0]), factor + 1)
                        for other in (factor // 2,) if covers else (factor * 2, factor // 2):
                            if other >= 2 and (d.verb != "vectorize" or other <= WIDEST):
                                yield chain.name, schedule.replace(chain.with_factor(k, j, other))


def filling_lines(problem: Problem, schedule: Schedule, output: str) -> Schedule | None:
    """An output with twice as many lanes, if these fill a line that half as many do not."""
    chain, line = schedule.on(output), problem.cpu.l1.line
    for k, d in enumerate(chain.directives if problem.row(output) == -1 else ()):
        if d.verb == "update":
            break
        if d.verb == "vectorize" and len(d.args) > 1:
            lanes = 2 * int(d.args[1])
            fills = lanes * problem.graph.stage[output].dtypes[0].bytes == line
            return schedule.replace(chain.with_factor(k, 1, lanes)) if fills else None
    return None
