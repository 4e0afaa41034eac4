"""Stages and their reads as a graph. Vertices are numbers, producers before consumers; sets of them are the bits of an
int."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...dataclass import cached_property, dataclass, memoized

Group = int  # a set of vertices


@dataclass(frozen=True)
class Dag:
    """A directed acyclic graph, given by the direct successors of each vertex."""

    successors: tuple[Group, ...]

    @classmethod
    def of(cls, count: int, edges: Iterable[tuple[int, int]]) -> Dag:
        successors = [0] * count
        for producer, consumer in edges:
            successors[producer] |= 1 << consumer
        return cls(tuple(successors))

    @property
    def count(self) -> int:
        return len(self.successors)

    @cached_property
    def predecessors(self) -> tuple[Group, ...]:
        predecessors = [0] * self.count
        for v, after in enumerate(self.successors):
            for s in vertices(after):
                predecessors[s] |= 1 << v
        return tuple(predecessors)

    @cached_property
    def descendants(self) -> tuple[Group, ...]:
        """All vertices that can be reached from each vertex."""
        reachable = list(self.successors)
        for v in reversed(self._order()):
            for s in vertices(self.successors[v]):
                reachable[v] |= reachable[s]
        return tuple(reachable)

    def _order(self) -> list[int]:
        """The vertices, producers before consumers, except for those that are on a cycle or after one."""
        waiting = [before.bit_count() for before in self.predecessors]
        order = [v for v, n in enumerate(waiting) if n == 0]
        for v in order:
            for s in vertices(self.successors[v]):
                waiting[s] -= 1
                if not waiting[s]:
                    order.append(s)
        return order

    @memoized
    def after(self, group: Group) -> Group:
        """SUCC(H): the direct successors outside of the group."""
        return union(self.successors, group) & ~group

    def below(self, group: Group) -> Group:
        """All vertices that can be reached from a group, except for its own."""
        return union(self.descendants, group) & ~group

    def with_source(self) -> Dag:
        """The graph with one more vertex, before all that have no predecessor."""
        sources = sum(1 << v for v in range(self.count) if not self.predecessors[v])
        return Dag((*self.successors, sources))

    def contracted(self, groups: Sequence[Group]) -> Dag:
        """The graph in which every group is one vertex."""
        at = {v: k for k, group in enumerate(groups) for v in vertices(group)}
        edges = [(k, at[s]) for k, group in enumerate(groups) for s in vertices(self.after(group))]
        return Dag.of(len(groups), edges)


def vertices(group: Group) -> Iterator[int]:
    """The members of a group in order."""
    while group:
        lowest = group & -group
        yield lowest.bit_length() - 1
        group ^= lowest


def first(group: Group) -> int:
    """The first member of a group, by which groups are sorted."""
    return group & -group


def size(group: Group) -> int:
    return group.bit_count()


def union(masks: Sequence[Group], group: Group) -> Group:
    members = 0
    for v in vertices(group):
        members |= masks[v]
    return members
