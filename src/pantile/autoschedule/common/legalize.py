"""Turns the directives of groups into a schedule of the whole pipeline that is always legal.

A group that is not legal, alone or together with those before it, is dissolved: its stages are scheduled on their own,
at root, and a remark says why. Stages without directives are scheduled on their own, too.

On GPUs, sums of products that are on their own are staged in shared memory where that is legal (`staged_sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress

from ...dataclass import dataclass
from ...errors import UserError
from ...schedule.clones import copied_out
from ...schedule.directives import StageSchedule, on
from ...schedule.resolve import resolve
from ...schedule.schedule import Schedule
from .. import common
from ..strategy import Problem
from .marking import Part
from .tiles import marking


@dataclass(frozen=True)
class LegalSchedule:
    """The schedule, which parts it honours, remarks on the other ones, and the directives of all parts that it has."""

    schedule: Schedule
    honoured: tuple[bool, ...]
    remarks: tuple[str, ...]
    lowered: tuple[Part, ...] = ()


def legal(
    problem: Problem, parts: Sequence[Part], inlined: Collection[str] = (), lowered: Collection[Part] = ()
) -> LegalSchedule:
    """Return a schedule of `problem.graph`, from which nothing has been inlined yet. A reduction to one value or a
    histogram on its own is computed in parts, and GPUs compute scans in strips, whatever tiles were requested.
    `lowered` are parts that lowering has accepted before."""
    marks = marking(problem, inlined=inlined)
    stages = [s for s in problem.graph.stages if s.name not in inlined]
    whole = {s.name: part for s in stages if (part := marks.in_parts(s))}
    alone: dict[str, Part] = {s.name: (on(s.name).compute_inline(),) for s in problem.graph.stages}
    alone |= {s.name: whole.get(s.name) or marks.at_root(s) for s in stages}
    parts = [whole.get(part[0].name, part) if len(part) == 1 else part for part in parts]
    alone_at_root = Schedule(*(chain for part in alone.values() for chain in part))
    scanned = [name for name, part in whole.items() if "strips" in part[0].verbs]
    reduced = [name for name in whole if name not in scanned]
    remarks = [f"reduced in parts, by threads and lanes: {', '.join(reduced)}"] if reduced else []
    remarks += [f"scanned in strips, side by side: {', '.join(scanned)}"] if scanned else []
    sums = common.staged(problem, parts, inlined) if problem.target.has_blocks else ()
    while True:
        asked = [*(_without(part, sums) for part in parts), *(s.part for s in sums)]
        why = _refused(alone_at_root, dict(enumerate(asked)), partial(_resolved, problem))
        if problem.target.has_blocks:
            left = {k: part for k, part in enumerate(asked) if k not in why and part not in lowered}
            others = _with(alone_at_root, (part for k, part in enumerate(asked) if k not in why and part in lowered))
            names = {chain.name for part in left.values() for chain in part}
            why |= _refused(others, left, partial(_lowered, problem, names))
        if all(k < len(parts) for k in why):
            break
        lowered = [*lowered, *(part for k, part in enumerate(asked) if k not in why)]
        sums = [s for k, s in enumerate(sums, len(parts)) if k not in why]
    if products := [s.stages[0] for s in sums]:
        remarks.append(f"sums of products, with slices of factors in shared memory: {', '.join(products)}")
    for k in sorted(why):
        remarks.append(f"scheduled on their own: {', '.join(chain.name for chain in parts[k])}, because {why[k]}")
    honoured = tuple(k not in why for k in range(len(asked)))
    accepted = tuple(compress(asked, honoured))
    schedule = _with(alone_at_root, accepted)
    if binned := [name for name, (chain, *_) in alone.items() if copied_out(chain) and schedule[name] == chain]:
        remarks.append(f"with bins in shared memory of blocks: {', '.join(binned)}")
    return LegalSchedule(schedule, honoured[: len(parts)], tuple(remarks), accepted)


def legal_choice(
    problem: Problem, preferred: Sequence[Part], plain: Sequence[Part], inlined: Collection[str] = ()
) -> tuple[LegalSchedule, tuple[bool, ...]]:
    """Return the schedule with the preferred directives of each group, or its plain ones if the preferred ones are
    refused, and which groups have the preferred ones."""
    result = legal(problem, preferred, inlined)
    choices = list(zip(result.honoured, preferred, plain, strict=True))
    if all(is_honoured or wanted == other for is_honoured, wanted, other in choices):
        return result, result.honoured
    chosen = [wanted if is_honoured else other for is_honoured, wanted, other in choices]
    return legal(problem, chosen, inlined, result.lowered), result.honoured


def _with(schedule: Schedule, parts: Iterable[Part]) -> Schedule:
    """Return the schedule with these directives instead of those of the same stages. All `copy_in` directives of a
    stage are kept: they belong to the stages that load it. Stages that the replaced directives make are dropped."""
    chains: dict[str, StageSchedule] = {}
    for chain in (chain for part in parts for chain in part):
        before = (chains.get(chain.name) or schedule.on(chain.name)).directives
        if chain.verbs == {"copy_in"}:
            directives = before + chain.directives
        else:
            directives = chain.directives + tuple(d for d in before if d.verb == "copy_in")
        chains[chain.name] = StageSchedule(chain.name, directives)
    replaced = (schedule.get(name) for name in chains)
    copies = {made for chain in replaced if chain is not None for made in copied_out(chain)}
    copies -= {*chains, *(made for chain in chains.values() for made in copied_out(chain))}
    return schedule.without(*copies).replace(*chains.values())


def _without(part: Part, sums: Iterable[common.StagedPart]) -> Part:
    """Return the directives of a group without those of sums, and without those of stages computed in the loops of
    sums."""
    stages = {name for s in sums for name in s.stages}
    at = {chain.name: str(d.args[0]) for chain in part for d in chain.directives if d.verb == "compute_at"}
    return tuple(chain for chain in part if stages.isdisjoint((chain.name, at.get(chain.name))))


_Check = Callable[[Schedule], Mapping[str, str]]  # reasons by a stage of the refused part, or a UserError


def _refused(schedule: Schedule, parts: Mapping[int, Part], check: _Check) -> dict[int, str]:
    """Return the parts that a check refuses, and why. All parts are tried together. If the check does not say which of
    them is at fault, they are tried one after the other, each together with those accepted before it."""
    try:
        refusals = check(_with(schedule, parts.values()))
    except UserError as refusal:
        if len(parts) == 1:
            return dict.fromkeys(parts, refusal.reason)
        why: dict[int, str] = {}
        for k, part in parts.items():
            refused = _refused(schedule, {k: part}, check)
            schedule = schedule if refused else _with(schedule, [part])
            why |= refused
        return why
    own = ((k, chain.name) for k, part in parts.items() for chain in part if chain.verbs != {"copy_in"})
    return {k: refusals[name] for k, name in own if name in refusals}


def _resolved(problem: Problem, schedule: Schedule) -> Mapping[str, str]:
    resolve(problem.graph, schedule, strict=problem.strict, target=problem.target, known=problem.drafts)
    return {}


def _lowered(problem: Problem, asked: Collection[str], schedule: Schedule) -> Mapping[str, str]:
    return {} if problem.refusals is None else problem.refusals(problem.graph, schedule, asked)
