"""Bounded grouping: Algorithm 5 of polymage-plus on top of Algorithm 1, and greedy merging where these take too long.

In both cases, costs are those of whole groups, and each stage is in exactly one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from ...dataclass import dataclass
from .dag import Dag, Group, first, size, union, vertices
from .grouping import DpGrouping, Model

# Limits of groups to try: none, one of Table 1, one for wider pipelines. The first that keeps the table small is used.
LIMITS = (None, 16, 4)
# The most stages of a group that is merged greedily: larger ones take long to cost, and are tried very often.
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
class _CoarseModel:
    """The model of a graph whose vertices are groups of another graph."""

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

    Without a limit or a step, the first of LIMITS that keeps a round below `most_states` is used; a limit of None is
    Algorithm 1. If even the first round has more states, groups are merged greedily. If a later round has, the result
    of the round before is final.
    """
    parts = tuple(1 << v for v in range(dag.count))
    states, largest, has_all = 0, 1, True
    limits: tuple[int | None, ...] = ()
    bounds: Sequence[int | None] = LIMITS if limit is None else (limit,)
    while True:
        coarse = _CoarseModel(model, parts)
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


def _first_within(dag: Dag, model: Model, bounds: Sequence[int | None], most_states: int | None) -> DpGrouping | None:
    """Return the table of the first limit for which there are few enough states, if there is one."""
    for bound in bounds:
        table = DpGrouping(dag, model, bound, most_states)
        if table.is_small:
            return table
    return None


# ---- greedy fusion


def greedily(dag: Dag, model: Model, most: int = MOST_MERGED) -> Grouping:
    """PolyMage+G+TC (§7.4.3): repeatedly merges the producer and the consumer whose merge saves most (§2.3)."""
    search = _Greedy(dag, model, most)
    while (pair := search.best()) is not None:
        search.merge(*pair)
    return Grouping(tuple(sorted(search.after, key=first)), merges=search.evaluated)


class _Greedy:
    """Groups, which of them read each other, and the merges that save something. A merge only affects those next to
    it."""

    def __init__(self, dag: Dag, model: Model, most: int) -> None:
        self.model = model
        self.most = most
        self.after = {1 << v: {1 << s for s in vertices(g)} for v, g in enumerate(dag.successors)}
        self.before = {1 << v: {1 << p for p in vertices(g)} for v, g in enumerate(dag.predecessors)}
        self.evaluated = 0
        self._queue: list[tuple[float, int, Group, Group]] = []  # the greatest saving first
        for a, consumers in self.after.items():
            for b in sorted(consumers):
                self._evaluate(a, b)

    def _evaluate(self, a: Group, b: Group) -> None:
        if size(a | b) <= self.most and not self.model.is_hopeless(a | b):
            self.evaluated += 1
            saved = self.model.cost(a) + self.model.cost(b) - self.model.cost(a | b)
            if saved > 0:
                heappush(self._queue, (-saved, self.evaluated, a, b))

    def best(self) -> tuple[Group, Group] | None:
        """The producer and the consumer to merge next, if any merge of groups that still exist saves something."""
        while self._queue:
            _, _, a, b = heappop(self._queue)
            if a in self.after and b in self.after and not self._is_between(a, b):
                return a, b
        return None

    def _is_between(self, a: Group, b: Group) -> bool:
        """Whether a third group lies on a path between the two, so that merging them would create a cycle. It remains
        there until it is merged with one of them."""
        pending = [g for g in self.after[a] if g != b]
        seen = set(pending)
        while pending:
            new = self.after[pending.pop()] - seen
            if b in new:
                return True
            seen |= new
            pending += new
        return False

    def merge(self, a: Group, b: Group) -> None:
        for ways, back in ((self.after, self.before), (self.before, self.after)):
            ways[a | b] = (ways.pop(a) | ways.pop(b)) - {a, b}
            for g in ways[a | b]:
                back[g] -= {a, b}
                back[g].add(a | b)
        for g in sorted(self.before[a | b]):
            self._evaluate(g, a | b)
        for g in sorted(self.after[a | b]):
            self._evaluate(a | b, g)
