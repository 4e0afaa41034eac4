"""Stages of equal cost, such as two hundred filters of one image that one stage reads: merging any of them with their
consumer costs the same."""

from __future__ import annotations

from collections.abc import Hashable

from ...dataclass import memoized
from ..strategy import Problem


class StageSignature:
    """Signatures of stages, which determine everything that a strategy asks about a stage except for its name."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.facts = problem, problem.facts

    @memoized
    def of(self, name: str) -> Hashable:
        """Return a key that is equal for equivalent stages: they do the same amount of work on the same inputs, and the
        same consumers read them in the same way. A stage with updates is equivalent to no other."""
        return name if self.problem.graph.stage[name].updates else self._signature(name)

    def _signature(self, name: str) -> Hashable:
        stage, facts = self.problem.graph.stage[name], self.facts
        box = tuple((side.low, side.high) for side in facts.boxes.get(name, ()))
        return (
            stage.dims,
            stage.dtypes,
            box,
            facts.work(name),
            self.problem.row(name),
            tuple([reads.like for reads in facts.prepared_reads[name]]),
            tuple([(c, *[r.like_of(stage.buffers) for r in facts.prepared_reads[c]]) for c in facts.consumers[name]]),
        )
