"""Crossover: parts of one schedule replace the same stages in another.

Stages that are computed inside each other's loops, or inlined into each other, are a group of a schedule. A set of
stages that consists of whole groups in both can be exchanged: nothing outside refers to its loops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ...cost_model.groups import DisjointSets
from ...graph.nodes import Graph
from ...schedule.schedule import Schedule

_HOSTS = ("compute_at", "store_at", "compute_with")


def crossings(
    graph: Graph, mine: Schedule, other: Schedule, is_worth: Callable[[Collection[str]], bool] = bool
) -> Iterator[Schedule]:
    """Yield `mine` with each part of `other` that differs and is worth it."""
    for part in _different(graph, mine, other):
        if is_worth(part):
            yield mine.replace(*(other.on(name) for name in part))


def cheaper_parts(
    graph: Graph, mine: Schedule, other: Schedule, gain: Callable[[Collection[str]], float]
) -> Schedule | None:
    """`mine` with all parts of `other` that are cheaper. Parts hardly change each other's cost."""
    better = [part for part in _different(graph, mine, other) if gain(part) > 0]
    return mine.replace(*(other.on(name) for part in better for name in part)) if better else None


def _different(graph: Graph, mine: Schedule, other: Schedule) -> Iterator[list[str]]:
    """The parts that two schedules compute differently, if they have more than one."""
    joined = DisjointSets([s.name for s in graph.stages])
    for schedule in (mine, other):
        if any(name not in graph.stage for name in schedule):
            return  # names do not tell to which group stages belong that a directive makes
        for name, host in _ties(graph, schedule):
            joined.tie(name, host)
    parts = joined.parts()
    if len(parts) > 1:
        yield from (part for part in parts if any(mine.on(name) != other.on(name) for name in part))


def _ties(graph: Graph, schedule: Schedule) -> Iterator[tuple[str, str]]:
    """The pairs of stages that are in one group."""
    for name, chain in schedule.items():
        for d in chain.directives:
            if d.verb in _HOSTS and str(d.args[0]) in graph.stage:
                yield name, str(d.args[0])
        if "compute_inline" in chain.verbs:
            yield from ((name, consumer) for consumer in graph.consumers[name])
