"""Grouping within bounds: Algorithm 5 of polymage-plus over Algorithm 1, and greedy merging where that is too much.

Costs are those of whole groups, each stage in one of them, whichever way is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .dag import Dag, Group, first, size, union, vertices
from .grouping import DpGrouping, Model

# Limits of groups to try, the first that keeps the table small enough: none, one of Table 1, one for wider pipelines.
LIMITS = (None, 16, 4)
# Stages of a group that is merged greedily: what larger ones cost takes long to find out, and is tried very often.
MOST_MERGED = 16


@dataclass(frozen=True)
class Grouping:
    """The groups of all vertices, and how they were found."""

    groups: tuple[Group, ...]
    states: int = 0  # of the tables of all rounds
    limits: tuple[int | None, ...] = ()  # of groups, round by round
    has_all_partitions: bool = True
    merges: int | None = None  # evaluated, if groups were merged greedily


@dataclass(frozen=True)
class _Coarse:
    """The model of a graph whose vertices are groups of another."""

    model: Model
    parts: tuple[Group, ...]

    def expanded(self, group: Group) -> Group:
        return union(self.parts, group)

    def cost(self, group: Group) -> float:
        return self.model.cost(self.expanded(group))

    def is_hopeless(self, group: Group) -> bool:
        return self.model.is_hopeless(self.expanded(group))


def grouped(
    dag: Dag, model: Model, limit: int | None = None, step: int | None = None, most_states: int | None = None
) -> Grouping:
    """INC-GROUPING: groups of at most `limit` vertices, then of at most `step` such groups, until all could be in one.

    Without a limit, or a step, it is the first of LIMITS that keeps a round below `most_states`; a limit of None is
    Algorithm 1. If even the first round has more, groups are merged greedily; if a later one has, that was the last.
    """
    parts = tuple(1 << v for v in range(dag.count))
    states, largest, has_all = 0, 1, True
    limits: tuple[int | None, ...] = ()
    bounds: Sequence[int | None] = LIMITS if limit is None else (limit,)
    while True:
        coarse = _Coarse(model, parts)
        table = _first_within(dag.contracted(parts), coarse, bounds, most_states)
        if table is None:
            return Grouping(parts, states, limits, has_all) if limits else greedily(dag, model)
        before, parts = parts, tuple(coarse.expanded(g) for g in table.best())
        states += len(table.states)
        limits = (*limits, table.limit)
        has_all = has_all and table.has_all_partitions
        if table.limit is None or (largest := largest * table.limit) >= dag.count or parts == before:
            return Grouping(parts, states, limits, has_all)
        bounds = LIMITS if step is None else (step,)


def _first_within(
    dag: Dag, model: Model, bounds: Sequence[int | None], most_states: int | None
) -> DpGrouping | None:
    """The table of the first limit for which there are few enough states."""
    for bound in bounds:
        table = DpGrouping(dag, model, bound, most_states)
        if table.is_small:
            return table
    return None


# ---- greedy fusion


def greedily(dag: Dag, model: Model, most: int = MOST_MERGED) -> Grouping:
    """PolyMage+G+TC (§7.4.3): again and again the merge of a producer with a consumer that saves most (§2.3)."""
    groups = [1 << v for v in range(dag.count)]
    saved: dict[tuple[Group, Group], float] = {}  # of what could be merged so far
    while True:
        able = [pair for pair in _pairs(dag, groups) if size(pair[0] | pair[1]) <= most]
        for a, b in able:
            if (a, b) not in saved and not model.is_hopeless(a | b):
                saved[a, b] = model.cost(a) + model.cost(b) - model.cost(a | b)
        by_saving = sorted((pair for pair in able if saved.get(pair, 0.0) > 0), key=lambda pair: -saved[pair])
        merged = ([*(g for g in groups if g not in pair), pair[0] | pair[1]] for pair in by_saving)
        chosen = next((m for m in merged if dag.contracted(m).is_acyclic), None)
        if chosen is None:
            return Grouping(tuple(sorted(groups, key=first)), merges=len(saved))
        groups = chosen


def _pairs(dag: Dag, groups: Sequence[Group]) -> Iterator[tuple[Group, Group]]:
    """A producer and a consumer of it."""
    at = {v: g for g in groups for v in vertices(g)}
    for a in groups:
        yield from dict.fromkeys((a, at[v]) for v in vertices(dag.after(a)))
