"""Groups of stages of a plan whose cost is predicted together: those whose loops are nested in each other.

The cost of a group depends on its own part of the plan, on the layout of memory that others write, and on the caches
that hold the footprint of the whole call. `group_key` is all of that: for a schedule that differs from another one in
one group, only the cost of this group is predicted. Names are not part of the key: groups that are equal except for
names share one cost (`signature`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from ..schedule.plan import Plan, Site, StagePlan
from .call_facts import CallFacts


def groups(facts: CallFacts, plan: Plan) -> list[list[str]]:
    """The stages of each group, in the order of the pipeline; all stages without loops are one group."""
    tied = DisjointSets([s.name for s in facts.graph.stages])
    without_loops = ""
    for s in facts.graph.stages:
        if not s.ndim and plan.stages[s.name].compute is None:
            without_loops = without_loops or s.name
            tied.tie(s.name, without_loops)
        for other in _tied_to(plan.stages[s.name]):
            tied.tie(s.name, other)
    return tied.parts()


class DisjointSets:
    """Sets of stages, joined in pairs."""

    def __init__(self, names: list[str]) -> None:
        self._leader = {name: name for name in names}

    def _led_by(self, name: str) -> str:
        while self._leader[name] != name:
            self._leader[name] = name = self._leader[self._leader[name]]
        return name

    def tie(self, a: str, b: str) -> None:
        self._leader[self._led_by(a)] = self._led_by(b)

    def parts(self) -> list[list[str]]:
        parts: dict[str, list[str]] = {}
        for name in self._leader:
            parts.setdefault(self._led_by(name), []).append(name)
        return list(parts.values())


def _tied_to(p: StagePlan) -> Iterator[str]:
    yield from (site.stage for site in (p.compute, p.store, *p.also) if site is not None)
    if p.with_stage is not None:
        yield p.with_stage


class GroupKey(NamedTuple):
    """All of a plan that the cost of a group depends on. `sources` are the stages of the group and what they read,
    ordered so that those of groups with equal keys correspond to each other."""

    key: Hashable
    sources: tuple[str, ...]


def group_key(facts: CallFacts, plan: Plan, names: list[str]) -> GroupKey:
    """The key of a group of stages."""
    signatures = [facts.signature(name) for name in names]
    numbers = {name: k for k, name in enumerate(names)}
    for _, sources in signatures:
        for name in sources:
            numbers.setdefault(name, len(numbers))
    own = [
        (form, tuple([numbers[n] for n in sources]), *_plan_key(plan.stages[name], numbers))
        for name, (form, sources) in zip(names, signatures, strict=True)
    ]
    memory = [(facts.whole[name], facts.dtypes[name], *_memory_key(facts, plan, name)) for name in numbers]
    return GroupKey((len(names), *own, *memory), tuple(numbers))


def _plan_key(p: StagePlan, numbers: Mapping[str, int]) -> tuple[Hashable, ...]:
    at = (_site_key(p.compute, numbers), _site_key(p.store, numbers), *[_site_key(site, numbers) for site in p.also])
    shared = (numbers.get(p.with_stage or ""), p.with_loop, *p.within.items(), *p.folds.items())
    storage = (*p.pads.items(), p.memory, p.nontemporal, p.ahead)
    return (at, shared, p.nests, storage, tuple([(numbers.get(f.buffer), f.loop, f.distance) for f in p.prefetches]))


def _site_key(site: Site | None, numbers: Mapping[str, int]) -> tuple[Hashable, ...]:
    return () if site is None else (numbers[site.stage], *site[1:])


def _memory_key(facts: CallFacts, plan: Plan, name: str) -> tuple[Hashable, ...]:
    p = plan.stages.get(name)
    return () if p is None else (facts.graph.stage[name].dims, p.storage, p.storage_splits)
