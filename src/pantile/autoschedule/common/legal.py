"""Directives of groups to a schedule of the whole pipeline that is legal in any case.

Groups that cannot be honoured, alone or beside those before them, are dissolved: their stages are scheduled on their
own, at root, and a remark says why. So does a stage that nothing was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ...errors import UserError
from ...schedule.default import at_root
from ...schedule.directives import StageSchedule, on
from ...schedule.resolve import resolve
from ...schedule.schedule import Schedule
from ..strategy import Problem

Part = tuple[StageSchedule, ...]  # what is asked for the stages of one group


@dataclass(frozen=True)
class Legal:
    """The schedule, which parts it honours, and what became of the others."""

    schedule: Schedule
    honoured: tuple[bool, ...]
    remarks: tuple[str, ...]


def legal(problem: Problem, parts: Sequence[Part], inlined: Collection[str] = ()) -> Legal:
    """A schedule of `problem.graph`, from which nothing has been inlined yet."""
    graph, bits = problem.graph, problem.machine.vector_bits
    alone = [
        on(s.name).compute_inline() if s.name in inlined else at_root(graph, s, bits) for s in graph.stages
    ]
    schedule = Schedule(*alone)
    together = schedule.replace(*(chain for part in parts for chain in part))
    if _refusal(problem, together) is None:
        return Legal(together, (True,) * len(parts), ())
    honoured, remarks = [], []
    for part in parts:
        extended = schedule.replace(*part)
        refusal = _refusal(problem, extended)
        honoured.append(refusal is None)
        if refusal is None:
            schedule = extended
        else:
            names = ", ".join(chain.name for chain in part)
            remarks.append(f"scheduled on their own: {names}, because {refusal}")
    return Legal(schedule, tuple(honoured), tuple(remarks))


def _refusal(problem: Problem, schedule: Schedule) -> str | None:
    """Why a schedule cannot be honoured."""
    try:
        resolve(problem.graph, schedule, strict=problem.strict, vector_bits=problem.machine.vector_bits)
    except UserError as refusal:
        return str(refusal).removeprefix(f"{refusal.where}: ")
    return None
