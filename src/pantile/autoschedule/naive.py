"""naive: what papers compare with. Pointwise stages are inlined; all others run one after another, rows in parallel.

It is the schedule that stages get for which nothing is asked (`schedule.default`).
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
