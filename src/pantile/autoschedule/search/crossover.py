"""Crossover: parts of one schedule replace the same stages in another.

Stages that are computed inside each other's loops, or inlined into each other, are a group of a schedule. A set of
stages that consists of whole groups in both can be exchanged: nothing outside refers to its loops. Stages that
directives make, such as bins in shared memory, go with the stages that these directives are about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ...cost_model.groups import DisjointSets
from ...dataclass import dataclass
from ...graph.nodes import Graph
from ...schedule.clones import copied_out
from ...schedule.default import partial_results
from ...schedule.directives import StageSchedule
from ...schedule.schedule import Schedule

_HOSTS = ("compute_at", "store_at", "compute_with")


def crossings(
    graph: Graph, mine: Schedule, other: Schedule, is_worth: Callable[[Collection[str]], bool] = bool
) -> Iterator[Schedule]:
    """Yield `mine` with each part of `other` that differs and is worth it."""
    both = _Crossing.of(graph, mine, other)
    if both is not None:
        yield from (both.with_parts([part]) for part in both.different() if is_worth(part))


def cheaper_parts(
    graph: Graph, mine: Schedule, other: Schedule, gain: Callable[[Collection[str]], float]
) -> Schedule | None:
    """`mine` with all parts of `other` that are cheaper. Parts hardly change each other's cost."""
    both = _Crossing.of(graph, mine, other)
    better = [part for part in both.different() if gain(part) > 0] if both else []
    return both.with_parts(better) if both and better else None


_Chains = Mapping[str, Sequence[StageSchedule]]  # the directives of each stage of a graph, and of what they make


@dataclass(frozen=True)
class _Crossing:
    """Two schedules of a graph whose parts can be exchanged."""

    graph: Graph
    mine: _Chains
    other: _Chains

    @staticmethod
    def of(graph: Graph, mine: Schedule, other: Schedule) -> _Crossing | None:
        """Two schedules of a graph; None if one of them makes stages that belong to others in ways that names do not
        tell."""
        a, b = _chains(graph, mine), _chains(graph, other)
        return None if a is None or b is None else _Crossing(graph, a, b)

    def with_parts(self, parts: Sequence[Collection[str]]) -> Schedule:
        """`mine` with these parts of `other`."""
        taken = {name for part in parts for name in part}
        return Schedule(
            *(chain for s in self.graph.stages for chain in (self.other if s.name in taken else self.mine)[s.name])
        )

    def different(self) -> Iterator[list[str]]:
        """The parts that the schedules compute differently, if they have more than one."""
        joined = DisjointSets([s.name for s in self.graph.stages])
        for chains in (self.mine, self.other):
            for name, host in _ties(self.graph, chains):
                joined.tie(name, host)
        parts = joined.parts()
        if len(parts) > 1:
            yield from (part for part in parts if any(self.mine[name] != self.other[name] for name in part))


def _chains(graph: Graph, schedule: Schedule) -> _Chains | None:
    """The directives of each stage together with those of the stages that they make; None if a stage is made in any
    other way."""
    made = {n: name for name, chain in schedule.items() for n in (*copied_out(chain), *partial_results(chain))}
    chains: dict[str, list[StageSchedule]] = {s.name: [] for s in graph.stages}
    for name, chain in schedule.items():
        of = name
        while of not in chains and of in made:
            of = made[of]
        if of not in chains:
            return None
        chains[of].append(chain)
    return chains


def _ties(graph: Graph, chains: _Chains) -> Iterator[tuple[str, str]]:
    """The pairs of stages that are in one group."""
    for name, of_stage in chains.items():
        for chain in of_stage:
            for d in chain.directives:
                if d.verb in _HOSTS and str(d.args[0]) in graph.stage:
                    yield name, str(d.args[0])
            if "compute_inline" in chain.verbs:
                yield from ((name, consumer) for consumer in graph.consumers[name])
