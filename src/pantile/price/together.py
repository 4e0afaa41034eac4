"""Which stages of a plan are priced together: those whose loops lie inside each other's.

What such a group takes is known from its own part of the plan, from how memory that others write lies, and from which
caches hold all that the call touches: `question` is all of that, so that of a schedule that differs from another in one
group, one group is priced.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..schedule.plan import Plan, StagePlan
from .sized import Sized


def groups(facts: Sized, plan: Plan) -> list[list[str]]:
    """The stages of each group, in the order of the pipeline; what has no loops is of one."""
    leader = {s.name: s.name for s in facts.graph.stages}

    def led_by(name: str) -> str:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    without_loops = ""
    for s in facts.graph.stages:
        if not s.ndim and plan.stages[s.name].compute is None:
            without_loops = without_loops or s.name
            leader[led_by(s.name)] = led_by(without_loops)
        for other in _tied_to(plan.stages[s.name]):
            leader[led_by(s.name)] = led_by(other)
    found: dict[str, list[str]] = {}
    for name in leader:
        found.setdefault(led_by(name), []).append(name)
    return list(found.values())


def _tied_to(p: StagePlan) -> Iterator[str]:
    yield from (site.stage for site in (p.compute, p.store, *p.also) if site is not None)
    if p.with_stage is not None:
        yield p.with_stage


def question(facts: Sized, plan: Plan, names: list[str]) -> tuple[Hashable, ...]:
    """All of a plan that the price of a group depends on."""
    read: dict[str, None] = {}
    for name in names:
        for k in range(len(facts.graph.stage[name].definitions)):
            read |= dict.fromkeys(facts.reads((name, k)).sources)
    own = [(facts.graph.stage[name], facts.dtypes[name], *_of(plan.stages[name])) for name in names]
    others = [(name, facts.dtypes[name], *_memory(plan, name)) for name in read if name not in names]
    return (*own, *others)


def _of(p: StagePlan) -> tuple[Hashable, ...]:
    at = (p.compute, p.store, p.also, p.with_stage, p.with_loop, *p.within.items(), *p.folds.items())
    kept = (p.storage, p.storage_splits, *p.pads.items(), p.memory, p.nontemporal, p.ahead)
    return (*at, p.nests, *kept, p.prefetches)


def _memory(plan: Plan, name: str) -> tuple[Hashable, ...]:
    p = plan.stages.get(name)
    return () if p is None else (p.storage, p.storage_splits)
