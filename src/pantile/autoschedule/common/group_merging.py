"""Greedy merging: repeatedly merges the two groups whose merging saves most, where one of them is the only reader of
the other's output (halide-autoscheduler §4.2.2; sioutas-thesis lines 4543-4549).

A strategy defines what a merge saves. This is evaluated again only if one of the two groups has changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from ..strategy import Problem


class Merge(Protocol):
    """The most that merging two groups saves, and whatever else a strategy notes about it."""

    @property
    def benefit(self) -> float: ...


M = TypeVar("M", bound=Merge)


class GroupMerging(ABC, Generic[M]):
    """Groups by their outputs, at first one of each stage."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.facts = problem, problem.facts
        stages = [s.name for s in problem.graph.stages]
        self.group_of = {name: name for name in stages}
        self.members: dict[str, tuple[str, ...]] = {name: (name,) for name in stages}  # the output last
        self.evaluations = 0
        self._merges: dict[tuple[str, str], M | None] = {}

    @abstractmethod
    def evaluated(self, producer: str, consumer: str) -> M | None:
        """Evaluate a merge of two groups; None if it saves nothing."""

    @abstractmethod
    def note(self, producer: str, consumer: str, merge: M) -> None:
        """Record that one group has been merged into another."""

    def merge_all(self) -> None:
        """Merge groups until that saves nothing."""
        while (best := self._best()) is not None:
            (producer, consumer), merge = best
            moved = self.members.pop(producer)
            self.members[consumer] = (*moved, *self.members[consumer])
            self.group_of.update(dict.fromkeys(moved, consumer))
            changed = {producer, consumer}
            self._merges = {pair: m for pair, m in self._merges.items() if changed.isdisjoint(pair)}
            self.note(producer, consumer, merge)

    def _best(self) -> tuple[tuple[str, str], M] | None:
        merges = [(pair, m) for pair in self.opportunities() if (m := self._known(*pair)) is not None]
        return max(merges, key=lambda found: found[1].benefit, default=None)

    def opportunities(self) -> Iterator[tuple[str, str]]:
        """Producer and consumer groups: the output of the one is consumed by functions in exactly one group."""
        for producer in self.members:
            consumers = {self.group_of[c] for c in self.facts.consumers[producer]}
            if len(consumers) == 1 and producer not in self.problem.graph.output:
                yield producer, consumers.pop()

    def _known(self, producer: str, consumer: str) -> M | None:
        if (producer, consumer) not in self._merges:
            self.evaluations += 1
            self._merges[producer, consumer] = self.evaluated(producer, consumer)
        return self._merges[producer, consumer]
