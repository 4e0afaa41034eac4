"""Which stages to group: the dynamic programme of polymage-plus (Figure 5, Algorithm 1).

Vertices are numbered, producers before consumers; a group is a set of vertices, the bits of an int. The model defines
the cost of a group:

    DpGrouping(Dag.of(3, [(0, 1), (1, 2)]), model).best()  ->  (0b011, 0b100)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Protocol

from ...dataclass import cached_property, dataclass, memoized
from .dag import Dag, Group, first, size, union, vertices

State = tuple[Group, ...]  # G of the paper: disjoint groups that are not split again, in order

# Sets with more elements are not partitioned in all ways: six elements have more than 200.
MOST_PARTITIONED = 5


class Model(Protocol):
    """A cost model of groups."""

    def cost(self, group: Group) -> float:
        """COST(H); infinite for a set that cannot be a group."""

    def is_hopeless(self, group: Group) -> bool:
        """Whether neither this set nor any larger one can be a group."""


@dataclass(frozen=True)
class Solution:
    """F(G): the least cost found, the groups of the state that has it, and the solution for what follows them."""

    cost: float
    groups: State
    rest: Solution | None = None

    @property
    def all_groups(self) -> Iterator[Group]:
        solution: Solution | None = self
        while solution is not None:
            yield from solution.groups
            solution = solution.rest


@dataclass(frozen=True)
class _Successors:
    """The successors of a state: Case I, with one of its groups merged with a successor, and Case II, what may follow
    it."""

    merged: list[State]
    following: list[State]


class DpGrouping:
    """Algorithm 1, or DP-GROUPING-BOUNDED of Algorithm 5 if groups have a `limit`.

    The groups of a state are disjoint, and all vertices that can be reached from it come later, so no stage counts
    twice.

    A merge is allowed only if everything that the successor reads is placed already, or cannot be reached from G. This
    includes the test of lines 9-13, and prevents groups from depending on each other through stages that come later.
    """

    def __init__(self, dag: Dag, model: Model, limit: int | None = None, most_states: int | None = None) -> None:
        sources = [v for v in range(dag.count) if not dag.predecessors[v]]
        self.dummy = 1 << dag.count if len(sources) > 1 else 0  # §3.1: a source of cost zero, if there are several
        self.dag = dag.with_source() if self.dummy else dag
        self.start: State = (self.dummy or 1 << sources[0],) if sources else ()
        self.model = model
        self.limit = limit
        self.most_states = most_states
        self.has_all_partitions = True

    def best(self) -> tuple[Group, ...]:
        """The groups of all vertices."""
        if not self.start:
            return ()
        groups = self.solution.all_groups
        return tuple(sorted((g & ~self.dummy for g in groups if g & ~self.dummy), key=first))

    # ---- the states, without costs: if there are too many states, no cost has been computed in vain

    @property
    def is_small(self) -> bool:
        """Whether there are at most `most_states` states."""
        return self.most_states is None or len(self.states) <= self.most_states

    @cached_property
    def states(self) -> dict[State, _Successors]:
        """All states that are reached from the source, the keys of T. If there are more than `most_states`, one more
        than that."""
        most = inf if self.most_states is None else self.most_states
        ways_of: dict[State, _Successors] = {self.start: _Successors([], [])}
        for state in (pending := [self.start]):
            ways = ways_of[state]
            for case, following in ((ways.merged, self._merged(state)), (ways.following, self._following(state))):
                for other in following:
                    case.append(other)
                    if other not in ways_of:
                        ways_of[other] = _Successors([], [])
                        pending.append(other)
                    if len(ways_of) > most:
                        return ways_of
        return ways_of

    def _merged(self, state: State) -> Iterator[State]:
        """The states of Case I (lines 7-16)."""
        placed = sum(state)
        unplaced = self.dag.below(placed)
        for k, group in enumerate(state):
            if self.limit is not None and size(group & ~self.dummy) >= self.limit:
                continue
            for s in vertices(self.dag.after(group) & ~placed):
                larger = group | 1 << s
                if self._may_merge(state, group, s, unplaced) and not self._is_hopeless(larger):
                    yield tuple(sorted((*state[:k], larger, *state[k + 1 :])))

    def _may_merge(self, state: State, group: Group, s: int, unplaced: Group) -> bool:
        """Lines 9-13, for the other groups of the state too."""
        if self.dag.predecessors[s] & unplaced:
            return False
        reads = [g for g in state if g != group and g & self.dag.predecessors[s]]
        return not any(self._leads_to(state, group, g) for g in reads)

    def _leads_to(self, state: State, start: Group, end: Group) -> bool:
        """Whether `end` depends on `start`, also through other groups of the state."""
        reached = self.dag.after(start)
        for _ in state:
            for g in state:
                reached |= self.dag.after(g) if g & reached else 0
        return bool(end & reached)

    def _following(self, state: State) -> Iterator[State]:
        """Case II (lines 20-21): the state is not changed again. Successors that depend on other successors come
        later."""
        placed = sum(state)
        unplaced = self.dag.below(placed)
        ready = [s for s in vertices(self.dag.after(placed)) if not self.dag.predecessors[s] & unplaced]
        if ready:
            yield from (tuple(sorted(way)) for way in self._partitions(ready))

    def _partitions(self, elements: Sequence[int]) -> Iterator[list[Group]]:
        """PARTS(S) without sets that cannot be groups. Large sets have only the finest partition and one by common
        successors."""
        if len(elements) <= MOST_PARTITIONED:
            ways = _partitions([1 << s for s in elements])
        else:
            self.has_all_partitions = False
            ways = iter([[1 << s for s in elements], self._related(elements)])
        for way in ways:
            if not any(self._is_hopeless(g) or (self.limit is not None and size(g) > self.limit) for g in way):
                yield way

    def _related(self, elements: Sequence[int]) -> list[Group]:
        """The elements, each grouped with those with which it shares successors."""
        groups: list[Group] = []
        for s in elements:
            joined = [g for g in groups if union(self.dag.successors, g) & self.dag.successors[s]]
            groups = [g for g in groups if g not in joined] + [sum(joined) | 1 << s]
        return groups

    @memoized
    def _is_hopeless(self, group: Group) -> bool:
        real = group & ~self.dummy
        return size(real) >= 2 and self.model.is_hopeless(real)

    # ---- the costs of states

    @cached_property
    def solution(self) -> Solution:
        """F of the source. Each step leads to states from which fewer stages are reached, so those are solved first."""
        table: dict[State, Solution] = {}
        for state in sorted(self.states, key=lambda s: size(self.dag.below(sum(s)))):
            ways = self.states[state]
            rest = min((table[s] for s in ways.following), key=_cost, default=None)  # lines 19-23
            own = sum(map(self._cost, state))
            alone = Solution(own + (0.0 if rest is None else rest.cost), state, rest)  # lines 4 and 24
            table[state] = min([*(table[s] for s in ways.merged), alone], key=_cost)  # lines 17-18, 25-26
        return table[self.start]

    def _cost(self, group: Group) -> float:
        real = group & ~self.dummy
        return self.model.cost(real) if real else 0.0


def _cost(solution: Solution) -> float:
    return solution.cost


def _partitions(elements: list[Group]) -> Iterator[list[Group]]:
    if not elements:
        yield []
        return
    head, rest = elements[0], elements[1:]
    for others in _partitions(rest):
        yield [head, *others]
        for k, other in enumerate(others):
            yield [*others[:k], other | head, *others[k + 1 :]]
