"""Prefetch: the stage at the end of a group prefetches the rows of a picture that the group reads next.

    gray[y, x] = 0.3*img[0, y, x] + ...; out[c, y, x] = f(gray[y - 3, x], ..., gray[y + 3, x]) * img[c, y, x]

Two rows at a time, `gray` reads rows from y + 3 on, and does little but wait for them. `out`, which reads every pixel
of the picture once and has more to do, prefetches those of the next two rows meanwhile: `.prefetch("img", "y_r", 5)`.
The cost model ignores prefetching: it charges all that a group reads from memory at one rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ...analysis.access import Index, accesses
from ...dataclass import dataclass
from ...schedule.schedule import Schedule
from ..strategy import Problem
from .groups import StageGroup
from .rolling import RolledLoops


def prefetching(problem: Problem, schedule: Schedule, group: StageGroup) -> Schedule | None:
    """Return the schedule in which a group prefetches the next rows of the pictures that both its last stage and
    another of its stages read."""
    if not group.members:
        return None
    output = group.output
    loops = RolledLoops.of(problem, problem.graph.stage[output])
    chain, rows = schedule.on(output), _rows_at_a_time(schedule, loops)
    if rows is None:
        return None
    last = frozenset((output, *_inlined_into_output(problem, group)))
    for name, reads in _reads(problem, group).items():
        own = {(r.row, r.planes) for r in reads if r.stage in last}
        farthest = max((r.row for r in reads if r.stage not in last), default=None)
        if len(own) == 1 and farthest is not None and farthest > (near := own.pop()[0]):
            chain = chain.prefetch(name, loops.row, int(farthest - near) + rows)
    return schedule.replace(chain) if chain is not schedule.on(output) else None


def _rows_at_a_time(schedule: Schedule, loops: RolledLoops) -> int | None:
    """The number of rows that the output of a rolling group computes at a time, if there are several."""
    splits = (d.args for d in schedule.on(loops.stage.name).directives if d.verb == "split")
    return next((int(factor) for _, _, inner, factor in splits if inner == loops.row), None)


def _inlined_into_output(problem: Problem, group: StageGroup) -> Iterator[str]:
    """Yield the stages that are inlined into the last one, directly or through others."""
    stages = {group.output}
    for stage in reversed(problem.graph.stages):
        if stage.name in group.inlined and not stages.isdisjoint(problem.graph.consumers[stage.name]):
            stages.add(stage.name)
            yield stage.name


@dataclass(frozen=True)
class _Read:
    """A read of an input by a stage: the last row, relative to that of the output, and the indices of all dims but rows
    and columns."""

    stage: str
    row: Fraction
    planes: tuple[Index | None, ...]


def _reads(problem: Problem, group: StageGroup) -> dict[str, list[_Read]]:
    """The reads of inputs by those stages of a group that move at the same rate as its output, by input."""
    own = {group.output, *group.members, *group.inlined}
    reach = {group.output: Fraction(0)}
    reads_of: dict[str, list[_Read]] = {}
    for stage in reversed(problem.graph.stages):
        if stage.name not in own or stage.name not in reach or stage.updates or stage.ndim < 2:
            continue
        loops = RolledLoops.of(problem, stage)
        for a in accesses(stage, stage.pure):
            rows = [i for i in a.indices if i is not None and i.dim == loops.y and i.scale == 1]
            if len(rows) == 1:
                row = reach[stage.name] + rows[0].high
                producer = problem.graph.producer.get(a.buffer)
                if producer is None:
                    planes = tuple(i for i in a.indices if i is None or i.dim not in (loops.y, loops.x))
                    reads_of.setdefault(a.buffer, []).append(_Read(stage.name, row, planes))
                else:
                    reach[producer.name] = max(reach.get(producer.name, row), row)
    return reads_of
