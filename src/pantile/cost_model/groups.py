"""Which stages of a plan are priced together: those whose loops lie inside each other's.

What such a group takes is known from its own part of the plan, from how memory that others write lies, and from which
caches hold all that the call touches: `question` is all of that, so that of a schedule that differs from another in one
group, one group is priced. Names are not part of it: of groups that are equal but for these (`likeness`), one is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from ..schedule.plan import Plan, Site, StagePlan
from .call_facts import Sized


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


class Question(NamedTuple):
    """All of a plan that the price of a group depends on. `sources`: the stages of the group and what they read, in an
    order in which those of groups that ask the same correspond to each other."""

    asked: Hashable
    sources: tuple[str, ...]


def question(facts: Sized, plan: Plan, names: list[str]) -> Question:
    """What is asked of these stages."""
    likes = [facts.like(name) for name in names]
    numbers = {name: k for k, name in enumerate(names)}
    for _, sources in likes:
        for name in sources:
            numbers.setdefault(name, len(numbers))
    own = [
        (form, tuple([numbers[n] for n in sources]), *_of(plan.stages[name], numbers))
        for name, (form, sources) in zip(names, likes, strict=True)
    ]
    memory = [(facts.whole[name], facts.dtypes[name], *_memory(facts, plan, name)) for name in numbers]
    return Question((len(names), *own, *memory), tuple(numbers))


def _of(p: StagePlan, numbers: Mapping[str, int]) -> tuple[Hashable, ...]:
    at = (_site(p.compute, numbers), _site(p.store, numbers), *[_site(site, numbers) for site in p.also])
    shared = (numbers.get(p.with_stage or ""), p.with_loop, *p.within.items(), *p.folds.items())
    kept = (*p.pads.items(), p.memory, p.nontemporal, p.ahead)
    return (at, shared, p.nests, kept, tuple([(numbers.get(f.buffer), f.loop, f.distance) for f in p.prefetches]))


def _site(site: Site | None, numbers: Mapping[str, int]) -> tuple[Hashable, ...]:
    return () if site is None else (numbers[site.stage], *site[1:])


def _memory(facts: Sized, plan: Plan, name: str) -> tuple[Hashable, ...]:
    p = plan.stages.get(name)
    return () if p is None else (facts.graph.stage[name].dims, p.storage, p.storage_splits)
