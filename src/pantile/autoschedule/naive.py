"""naive: the baseline of papers. Pointwise stages are inlined; all others run one after another, with rows in parallel.

This is the default schedule of stages without directives (`schedule.default`).
"""

from __future__ import annotations

from typing import ClassVar

from ..dataclass import dataclass
from ..schedule.default import complete
from ..schedule.schedule import Schedule
from .strategy import Found, GroupReport, Problem, Report, Strategy


@dataclass(frozen=True)
class Naive(Strategy):
    """The strategy that leaves every stage to the default; it has no parameters."""

    name: ClassVar[str] = "naive"

    def find(self, problem: Problem) -> Found:
        schedule = complete(problem.graph, Schedule(), problem.target, strict=problem.strict)
        inlined = tuple(n for n, s in schedule.items() if "compute_inline" in s.verbs)
        groups = tuple(GroupReport(s.name) for s in problem.graph.stages if s.name not in inlined)
        return Found(schedule, Report(self.name, problem.machine.name, {}, groups, inlined))
