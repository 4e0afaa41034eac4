"""Which stages to inline, one after another, by what that saves (halide-autoscheduler §4.3).

The expression of a stage is substituted into its consumers, and their cost reevaluated. A stage is inlined into all of
its consumers or into none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...analysis.substituted import substituted
from ...expr.depth import deep_expressions
from ...graph.nodes import Definition, Graph, Stage
from ..strategy import Problem
from .cost import arithmetic
from .facts import Facts, distinct_reads

MOST_TERMS = 16  # of a sum


class Inlining:
    """`names` are the stages to inline, `graph` is what remains."""

    @deep_expressions()
    def __init__(self, problem: Problem, load_cost: float) -> None:
        self.facts: Facts = problem.facts  # extents are those of the pipeline as it is written
        self.load_cost = load_cost
        self.names: list[str] = list(self.facts.trivial)
        self.graph: Graph = substituted(problem.graph, self.names)
        self._costs: dict[Stage, float] = {}
        self._counts: dict[Definition, tuple[float, Counter[str]]] = {}
        self._benefits: dict[str, float] = {}
        while (name := self._best()) is not None:
            self._inline(name)

    def _best(self) -> str | None:
        """The stage that saves most by being inlined."""
        able = [s.name for s in self.graph.stages if self._is_short(s)]
        found = {name: self._benefit(name) for name in able}
        best = max(found, key=lambda name: found[name], default=None)
        return best if best is not None and found[best] > 0 else None

    def _is_short(self, stage: Stage) -> bool:
        """Whether its values can be written into its consumers, sums of a few terms too."""
        runs = [self.facts.runs(stage.name, k) for k in range(len(stage.definitions))]
        return self.facts.can_be_inlined(stage.name) and runs[-1] <= MOST_TERMS * runs[0]

    def _inline(self, name: str) -> None:
        for changed in self._around(name):
            self._benefits.pop(changed, None)
        self.names.append(name)
        self.graph = substituted(self.graph, [name])

    def _around(self, name: str) -> set[str]:
        """The stages whose own benefit may change: the consumers, and all that they and the stage itself read."""
        changed = {name, *self.graph.consumers[name]}
        reads = [p for p, consumers in self.graph.consumers.items() if changed & set(consumers)]
        return {*changed, *reads}

    def _benefit(self, name: str) -> float:
        if name not in self._benefits:
            self._benefits[name] = self._evaluated(name)
        return self._benefits[name]

    def _evaluated(self, name: str) -> float:
        """Cost of the stage and its consumers before, less that of the consumers afterwards."""
        stages = [self.graph.stage[n] for n in (name, *self.graph.consumers[name])]
        if self._repeated(stages[0], stages[1:]) >= sum(map(self._cost, stages)):
            return 0.0  # whatever else is saved: no need to substitute anything
        after = substituted(replace(self.graph, stages=tuple(stages)), [name]).stages
        before = sum(map(self._cost, stages))
        return before - sum(map(self._cost, after))

    def _repeated(self, stage: Stage, consumers: list[Stage]) -> float:
        """Operations of the stage, written out at every place where it is read."""
        once = sum(self.facts.runs(stage.name, k) * self._counted(d)[0] for k, d in enumerate(stage.definitions))
        return once / self.facts.points(stage.name) * sum(
            self.facts.runs(c.name, k) * max(self._counted(d)[1][b] for b in stage.buffers)
            for c in consumers for k, d in enumerate(c.definitions)
        )  # fmt: skip

    def _cost(self, stage: Stage) -> float:
        if stage not in self._costs:
            self._costs[stage] = self._of_one(stage)
        return self._costs[stage]

    def _of_one(self, stage: Stage) -> float:
        """Operations and loads of all that is needed of the stage."""
        total = 0.0
        for k, d in enumerate(stage.definitions):
            operations, reads = self._counted(d)
            total += self.facts.runs(stage.name, k) * (operations + self.load_cost * sum(reads.values()))
        return total

    def _counted(self, d: Definition) -> tuple[float, Counter[str]]:
        """Operations and reads of a definition."""
        if d not in self._counts:
            self._counts[d] = arithmetic(d.values), distinct_reads(d)
        return self._counts[d]
