"""Siblings: stages that read the same values and do not depend on each other share their loops.

    for y: for x: xy[y, x] = dx[y, x] * dy[y, x]              for y: for x: xy[y, x] = dx[y, x] * dy[y, x]
    for y: for x: xt[y, x] = dx[y, x] * dt[y, x]      ->                     xt[y, x] = dx[y, x] * dt[y, x]

What both read is read once, which saves memory traffic if it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...expr.visit import Key, key
from ...graph.nodes import Stage
from ...schedule.directives import Directive, StageSchedule
from ...schedule.schedule import Schedule, is_inlined
from ..strategy import Problem
from .groups import OF_SEVERAL

MOST = 2  # stages that share loops: with a third, there are more streams than the hardware prefetcher follows


def siblings(problem: Problem, schedule: Schedule) -> Iterator[tuple[StageSchedule, ...]]:
    """Yield the schedules of each set of siblings: the first with its own loops, then the others in these."""
    directives = [d for chain in schedule.values() for d in chain.directives]
    hosts = {str(d.args[0]) for d in directives if d.verb in ("compute_at", "store_at")}
    alike: dict[object, list[Stage]] = {}
    parts = _parts(problem, schedule)
    for s in problem.graph.stages:
        if s.name not in hosts and _has_own_loops(schedule, s):
            alike.setdefault((s.dims, parts[s.name], schedule.on(s.name).directives), []).append(s)
    for stages in alike.values():
        while stages:
            group = _siblings(problem, stages)
            stages = [s for s in stages if s not in group]
            first, *others = (schedule.on(s.name) for s in group)
            if others:
                yield first, *(s.compute_with(first.name, _vector_loop(first)) for s in others)


def _parts(problem: Problem, schedule: Schedule) -> dict[str, int]:
    """A number for the required region of each stage, independent of sizes. It is equal for stages that are read at
    equal indices, by stages that are computed alike, or at root, and have equal required regions themselves. Shared
    loops compute one region for all stages that share them, at all sizes."""
    graph, numbers, parts = problem.graph, dict[object, int](), dict[str, int]()
    for s in reversed(graph.stages):
        output = graph.output.get(s.name)
        shape = None if output is None else tuple(map(key, output.shape))
        readers = [graph.stage[c] for c in graph.consumers[s.name]]
        reads = frozenset((parts[c.name], _inside(schedule, c), c.dims, _places(c, s)) for c in readers)
        parts[s.name] = numbers.setdefault((s.dims, shape, reads), len(numbers))
    return parts


def _inside(schedule: Schedule, s: Stage) -> tuple[Directive, ...]:
    """The directives of a stage that is computed inside of the loops of others."""
    chain = schedule.on(s.name)
    return () if "compute_root" in chain.verbs else chain.directives


def _places(reader: Stage, s: Stage) -> frozenset[tuple[Key, ...]]:
    """The indices at which a stage is read."""
    loads = (e for d in reader.definitions for e in d.loads if e.buffer in s.buffers)
    return frozenset(tuple(map(key, e.indices)) for e in loads)


def _siblings(problem: Problem, stages: list[Stage]) -> list[Stage]:
    """The first of some stages with equal loops, and others that read the same values but do not depend on each
    other."""
    group = stages[:1]
    for other in stages[1:]:
        reads_the_same = any(not _sources(s).isdisjoint(_sources(other)) for s in group)
        if reads_the_same and len(group) < MOST and not any(_needs(problem, other, s) for s in group):
            group.append(other)
    return group


def _has_own_loops(schedule: Schedule, s: Stage) -> bool:
    chain = schedule.on(s.name)
    is_simple = chain.verbs.isdisjoint(OF_SEVERAL)
    return is_simple and not s.updates and not is_inlined(chain) and bool(_vector_loop(chain))


def _vector_loop(chain: StageSchedule) -> str:
    """The loop whose iterations are vectors, if there is one."""
    vectors = (d.args for d in chain.directives if d.verb == "vectorize" and len(d.args) > 1)
    return next((str(args[0]) for args in vectors), "")


def _sources(s: Stage) -> set[str]:
    return {e.buffer for e in s.pure.loads}


def _needs(problem: Problem, later: Stage, earlier: Stage) -> bool:
    """Whether the later stage depends on the earlier one."""
    pending, seen = [later.name], {later.name}
    first = problem.facts.position[earlier.name]
    while pending:
        for name in problem.facts.producers[pending.pop()]:
            if name == earlier.name:
                return True
            if name not in seen and problem.facts.position.get(name, -1) > first:
                seen.add(name)
                pending.append(name)
    return False
