"""Directives of groups to a schedule of the whole pipeline that is legal in any case.

Groups that cannot be honoured, alone or beside those before them, are dissolved: their stages are scheduled on their
own, at root, and a remark says why. So does a stage that nothing was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...dataclass import dataclass
from ...errors import UserError
from ...schedule.directives import on
from ...schedule.resolve import resolve
from ...schedule.schedule import Schedule
from ..strategy import Problem
from .marking import Part
from .tiles import marking


@dataclass(frozen=True)
class LegalSchedule:
    """The schedule, which parts it honours, and what became of the others."""

    schedule: Schedule
    honoured: tuple[bool, ...]
    remarks: tuple[str, ...]


def legal(problem: Problem, parts: Sequence[Part], inlined: Collection[str] = ()) -> LegalSchedule:
    """A schedule of `problem.graph`, from which nothing has been inlined yet. What is reduced to one value, or counted,
    by itself, is so in parts: that is no matter of tiles."""
    marks = marking(problem, inlined=inlined)
    stages = [s for s in problem.graph.stages if s.name not in inlined]
    whole = {s.name: part for s in stages if (part := marks.in_parts(s))}
    alone: dict[str, Part] = {s.name: (on(s.name).compute_inline(),) for s in problem.graph.stages}
    alone |= {s.name: whole.get(s.name) or marks.at_root(s) for s in stages}
    parts = [whole.get(part[0].name, part) if len(part) == 1 else part for part in parts]
    asked = {chain.name: chain for part in parts for chain in part}
    each = [part if name in whole or name not in asked else (asked[name],) for name, part in alone.items()]
    together = Schedule(*(chain for part in each for chain in part)).replace(*asked.values())
    remarks = [f"reduced in parts, by threads and lanes: {', '.join(whole)}"] if whole else []
    if _refusal(problem, together) is None:
        return LegalSchedule(together, (True,) * len(parts), tuple(remarks))
    schedule = Schedule(*(chain for part in alone.values() for chain in part))
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


def _refusal(problem: Problem, schedule: Schedule) -> str | None:
    """Why a schedule cannot be honoured; on a GPU only lowering knows what the memory of a block must hold."""
    try:
        resolve(problem.graph, schedule, strict=problem.strict, target=problem.target, known=problem.drafts)
        if problem.target.has_blocks and problem.lower is not None:
            problem.lower(schedule)
    except UserError as refusal:
        return str(refusal).removeprefix(f"{refusal.where}: ")
    return None
