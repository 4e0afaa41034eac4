"""Which stages to group: the dynamic programme of polymage-plus (Figure 5, Algorithms 1 and 5), and greedy merging.

Vertices are numbered, producers before consumers; a group is a set of vertices, the bits of an int. What a group costs
is the model's affair:

    grouped(Dag.of(3, [(0, 1), (1, 2)]), model).groups  ->  (0b011, 0b100)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from ...expr.depth import deep_expressions
from .dag import Dag, Group, size, union, vertices

State = tuple[Group, ...]  # G of the paper: disjoint groups that are not taken apart again, in order

# Bounds of Algorithm 5: one of those that Table 1 tries, and one for pipelines that are wider than the paper's.
LIMITS = (None, 16, 4)
# Sets with more elements are not partitioned in every way: there are more than 200 ways for six.
MOST_PARTITIONED = 5


class Model(Protocol):
    """What groups cost."""

    def cost(self, group: Group) -> float:
        """COST(H); infinite for what cannot be a group."""

    def is_hopeless(self, group: Group) -> bool:
        """Whether neither this set nor any larger one can be a group."""


class TooManyStates(Exception):
    """The table grew beyond what is allowed."""


@dataclass(frozen=True)
class Solution:
    """F(G): the least cost found, and the groups that have it."""

    cost: float
    groups: frozenset[Group]


class DpGrouping:
    """Algorithm 1. With `partitions`, Case II goes on with every partition of the successors, as it is printed;
    without, with each successor on its own, so that every state is one group: so the numbers of Table 1 were counted.

    A merge is allowed only if all that the successor reads has its place already, or is not reached from G: that
    contains the test of lines 9-13, and keeps groups from needing each other through stages that come later.
    """

    def __init__(
        self, dag: Dag, model: Model, limit: int | None = None, partitions: bool = True, most_states: int | None = None
    ) -> None:
        sources = [v for v in range(dag.count) if not dag.predecessors[v]]
        self.dummy = 1 << dag.count if len(sources) > 1 else 0  # §3.1: a source of cost zero before several
        self.dag = dag.with_source() if self.dummy else dag
        self.start: State = (self.dummy or 1 << sources[0],) if sources else ()
        self.model = model
        self.limit = limit
        self.partitions = partitions
        self.most_states = most_states
        self.table: dict[State, Solution] = {}  # T
        self._costs: dict[Group, float] = {}

    @deep_expressions()
    def best(self) -> tuple[Group, ...]:
        """The groups of all vertices."""
        if not self.start:
            return ()
        found = self._solve(self.start).groups
        return self._disjoint(sorted((g & ~self.dummy for g in found if g & ~self.dummy), key=_first))

    def _solve(self, state: State) -> Solution:
        """DP-GROUPING(G, T)."""
        if state in self.table:  # line 2
            return self.table[state]
        if self.most_states is not None and len(self.table) >= self.most_states:
            raise TooManyStates
        self.table[state] = Solution(inf, frozenset(state))
        placed = sum(state)
        after = self.dag.after(placed)
        if not after:  # lines 3-5
            best = Solution(self._sum(state), frozenset(state))
        else:
            best = self._merged(state, placed)
            rest = self._finalized(placed, after)
            cost = self._sum(state) + rest.cost  # line 24
            if cost < best.cost or not best.groups:
                best = Solution(cost, rest.groups | set(state))
        self.table[state] = best
        return best

    def _merged(self, state: State, placed: Group) -> Solution:
        """Case I (lines 6-18): the best way to merge one group with one of its successors."""
        best = Solution(inf, frozenset())
        for k, group in enumerate(state):
            if self.limit is not None and size(group & ~self.dummy) >= self.limit:
                continue
            unplaced = self.dag.below(placed if self.partitions else group)
            for s in vertices(self.dag.after(group) & ~placed):
                larger = group | 1 << s
                if self._may_merge(state, group, s, unplaced) and not self._is_hopeless(larger):
                    found = self._solve(tuple(sorted((*state[:k], larger, *state[k + 1 :]))))
                    best = min(best, found, key=lambda f: f.cost)
        return best

    def _may_merge(self, state: State, group: Group, s: int, unplaced: Group) -> bool:
        """Lines 9-13, for the other groups of the state too."""
        if self.dag.predecessors[s] & unplaced:
            return False
        reads = [g for g in state if g != group and g & self.dag.predecessors[s]]
        return not any(self._leads_to(state, group, g) for g in reads)

    def _leads_to(self, state: State, start: Group, end: Group) -> bool:
        """Whether a group is needed, through others of the state too, by another."""
        reached = self.dag.after(start)
        for _ in state:
            for g in state:
                reached |= self.dag.after(g) if g & reached else 0
        return bool(end & reached)

    def _finalized(self, placed: Group, after: Group) -> Solution:
        """Case II (lines 19-23): the state is not touched again; the best of all that can follow."""
        if not self.partitions:
            found = [self._solve((1 << s,)) for s in vertices(after)]
            return Solution(sum(f.cost for f in found), frozenset[Group]().union(*(f.groups for f in found)))
        unplaced = self.dag.below(placed)
        ready = [s for s in vertices(after) if not self.dag.predecessors[s] & unplaced]
        found = [self._solve(tuple(sorted(p))) for p in self._partitions(ready)]
        return min(found, key=lambda f: f.cost)

    def _partitions(self, elements: Sequence[int]) -> Iterator[list[Group]]:
        """PARTS(S) without what cannot be a group; of large sets only the finest and one by common successors."""
        if len(elements) <= MOST_PARTITIONED:
            ways = _partitions([1 << s for s in elements])
        else:
            ways = iter([[1 << s for s in elements], self._related(elements)])
        for way in ways:
            if not any(self._is_hopeless(g) or (self.limit is not None and size(g) > self.limit) for g in way):
                yield way

    def _related(self, elements: Sequence[int]) -> list[Group]:
        """Those that have successors in common together."""
        groups: list[Group] = []
        for s in elements:
            joined = [g for g in groups if union(self.dag.successors, g) & self.dag.successors[s]]
            groups = [g for g in groups if g not in joined] + [sum(joined) | 1 << s]
        return groups

    # ---- costs

    def _sum(self, state: State) -> float:
        return sum(self._cost(g) for g in state)

    def _cost(self, group: Group) -> float:
        if group not in self._costs:
            real = group & ~self.dummy
            self._costs[group] = self.model.cost(real) if real else 0.0
        return self._costs[group]

    def _is_hopeless(self, group: Group) -> bool:
        real = group & ~self.dummy
        return size(real) > 1 and self.model.is_hopeless(real)

    # ---- the result

    def _disjoint(self, found: Sequence[Group]) -> tuple[Group, ...]:
        """Every vertex in one group, none needing another in a circle; groups that are in the way are taken apart.

        Where each successor goes on by itself, two of them may both have claimed what comes after them.
        """
        count = self.dag.count - (1 if self.dummy else 0)
        dag = Dag(self.dag.successors[:count])
        chosen: list[Group] = []
        for group in found:
            group &= ~sum(chosen)
            others = ((1 << count) - 1) & ~sum(chosen) & ~group
            around = [*chosen, *(1 << v for v in vertices(others))]
            if size(group) > 1 and self.model.cost(group) < inf and dag.contracted([*around, group]).is_acyclic:
                chosen.append(group)
        covered = sum(chosen)
        return tuple(sorted([*chosen, *(1 << v for v in range(count) if not covered >> v & 1)], key=_first))


def _first(group: Group) -> int:
    return group & -group


def _partitions(elements: list[Group]) -> Iterator[list[Group]]:
    if not elements:
        yield []
        return
    first, rest = elements[0], elements[1:]
    for others in _partitions(rest):
        yield [first, *others]
        for k, other in enumerate(others):
            yield [*others[:k], other | first, *others[k + 1 :]]


# ---- Algorithm 5


@dataclass(frozen=True)
class Grouping:
    """The groups of all vertices, and how they were found."""

    groups: tuple[Group, ...]
    states: int  # of the tables of all rounds
    limit: int | None = None
    partitions: bool = True


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


def incremental(
    dag: Dag, model: Model, limit: int | None, step: int | None, partitions: bool, most_states: int | None
) -> Grouping:
    """INC-GROUPING: groups of at most `limit` vertices, then of at most `step` such groups, until all could be in one.

    Without a step the second round has no bound, as for Table 1.
    """
    parts = tuple(1 << v for v in range(dag.count))
    largest, states, bound = limit, 0, limit
    while True:
        coarse = _Coarse(model, parts)
        table = DpGrouping(dag.contracted(parts), coarse, bound, partitions, most_states)
        try:
            parts = tuple(coarse.expanded(g) for g in table.best())
        except TooManyStates:
            if not states:
                raise
            return Grouping(parts, states, limit, partitions)  # that of the rounds before
        states += len(table.table)
        if bound is None or largest is None or largest >= dag.count:
            return Grouping(parts, states, limit, partitions)
        bound = step
        largest = largest * step if step is not None else None


def grouped(
    dag: Dag, model: Model, limit: int | None = None, step: int | None = None, most_states: int | None = None
) -> Grouping:
    """Algorithm 1 as it is printed if its table stays small enough; else without partitions, ever more bounded."""
    if limit is not None:
        return incremental(dag, model, limit, step, False, None)
    attempts = [(None, True), *((bound, False) for bound in LIMITS)]
    for bound, partitions in attempts:
        try:
            return incremental(dag, model, bound, step, partitions, most_states)
        except TooManyStates:
            continue
    return greedily(dag, model)


# ---- greedy fusion


def greedily(dag: Dag, model: Model, may_merge: Callable[[Group, Group], bool] = lambda a, b: True) -> Grouping:
    """PolyMage+G+TC (§7.4.3): again and again the merge of a producer with a consumer that saves most (§2.3)."""
    groups = [1 << v for v in range(dag.count)]
    evaluated = 0
    while True:
        best, benefit = None, 0.0
        for a in groups:
            for b in groups:
                if a == b or not dag.after(a) & b or not may_merge(a, b) or model.is_hopeless(a | b):
                    continue
                evaluated += 1
                saved = model.cost(a) + model.cost(b) - model.cost(a | b)
                rest = [g for g in groups if g not in (a, b)]
                if saved > benefit and dag.contracted([*rest, a | b]).is_acyclic:
                    best, benefit = (a, b), saved
        if best is None:
            return Grouping(tuple(sorted(groups, key=_first)), evaluated, None, False)
        groups = [g for g in groups if g not in best] + [best[0] | best[1]]
