"""Directives of groups to a schedule of the whole pipeline that is legal in any case.

Groups that cannot be honoured, alone or beside those before them, are dissolved: their stages are scheduled on their
own, at root, and a remark says why. So does a stage that nothing was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...dataclass import dataclass
from ...errors import UserError
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.parallel_reduction import in_parts
from ...schedule.resolve import resolve
from ...schedule.schedule import Schedule
from ...schedule.stage_default import StageDefaults
from ..strategy import Problem
from .histograms import counted_in_parts

Part = tuple[StageSchedule, ...]  # what is asked for the stages of one group


@dataclass(frozen=True)
class LegalSchedule:
    """The schedule, which parts it honours, and what became of the others."""

    schedule: Schedule
    honoured: tuple[bool, ...]
    remarks: tuple[str, ...]


def legal(problem: Problem, parts: Sequence[Part], inlined: Collection[str] = ()) -> LegalSchedule:
    """A schedule of `problem.graph`, from which nothing has been inlined yet. What is reduced to one value, or counted,
    by itself, is so in parts: that is no matter of tiles."""
    whole = _reduced_in_parts(problem, inlined)
    alone = StageDefaults(problem.graph, problem.target, inlined, problem.strict)
    parts = [whole.get(part[0].name, part) if len(part) == 1 else part for part in parts]
    asked = {chain.name: chain for part in parts for chain in part}
    each = [
        (asked[s.name],) if s.name in asked and s.name not in whole else _alone(alone, s, whole)
        for s in problem.graph.stages
    ]
    together = Schedule(*(chain for part in each for chain in part)).replace(*asked.values())
    remarks = [f"reduced in parts, by threads and lanes: {', '.join(whole)}"] if whole else []
    if _refusal(problem, together) is None:
        return LegalSchedule(together, (True,) * len(parts), tuple(remarks))
    schedule = Schedule(*(chain for s in problem.graph.stages for chain in _alone(alone, s, whole)))
    honoured = []
    for part in parts:
        extended = schedule.replace(*part)
        refusal = _refusal(problem, extended)
        honoured.append(refusal is None)
        if refusal is None:
            schedule = extended
        else:
            names = ", ".join(chain.name for chain in part)
            remarks.append(f"scheduled on their own: {names}, because {refusal}")
    return LegalSchedule(schedule, tuple(honoured), tuple(remarks))


def _reduced_in_parts(problem: Problem, inlined: Collection[str]) -> dict[str, Part]:
    """What is reduced to one value or to few: its schedule, and those of its partial results."""
    graph, target, strict = problem.graph, problem.target, problem.strict
    stages = (s for s in graph.stages if s.name not in inlined)
    parts = {s.name: in_parts(graph, s, target, strict, ()) or counted_in_parts(problem, s) for s in stages}
    return {name: part for name, part in parts.items() if part}


def _alone(alone: StageDefaults, stage: Stage, whole: Mapping[str, Part]) -> Part:
    if stage.name in alone.inlined:
        return (on(stage.name).compute_inline(),)
    return whole.get(stage.name) or (alone.at_root(stage),)


def _refusal(problem: Problem, schedule: Schedule) -> str | None:
    """Why a schedule cannot be honoured."""
    try:
        resolve(problem.graph, schedule, strict=problem.strict, target=problem.target, known=problem.drafts)
    except UserError as refusal:
        return str(refusal).removeprefix(f"{refusal.where}: ")
    return None
