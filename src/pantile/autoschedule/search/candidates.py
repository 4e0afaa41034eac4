"""Schedules and their predicted costs: each is resolved and predicted once, and an illegal one has no cost."""

from __future__ import annotations

from dataclasses import field

from ...cost_model import Cost, Sizes, predict_cost
from ...dataclass import dataclass
from ...errors import PantileError
from ...schedule.default import complete
from ...schedule.schedule import Schedule
from ..strategy import Problem

# A pipeline is compiled once and run often, but somebody waits for that: a second counts as so much slower code, one
# beyond what is usual for so many stages as twice that in addition, and what takes longer than patience lasts in
# proportion.
HASTE_PER_S, HASTE_PER_UNUSUAL_S = 0.04, 0.08
USUAL_S, USUAL_S_EACH = 1.25, 0.1
PATIENCE_S = 5.0


@dataclass(frozen=True)
class Candidate:
    """A schedule with directives for every stage."""

    name: str  # of the strategy that it comes from, and what was changed
    schedule: Schedule
    cost: Cost

    @property
    def seconds(self) -> float:
        """The seconds that candidates are compared by: those of a call, and some for the time to compile."""
        waiting = self.cost.compile_seconds
        unusual = max(0.0, waiting - max(USUAL_S, USUAL_S_EACH * len(self.cost.stages)))
        haste = waiting * HASTE_PER_S + unusual * HASTE_PER_UNUSUAL_S
        return self.cost.seconds * (max(1.0, waiting / PATIENCE_S) + haste)


@dataclass
class CostedSchedules:
    """The candidates that were considered, with their predicted costs."""

    problem: Problem
    known: dict[Schedule, Candidate | None] = field(default_factory=dict)

    def candidate(self, name: str, schedule: Schedule) -> Candidate | None:
        """The schedule with its predicted cost; None if it is not legal."""
        if schedule not in self.known:
            self.known[schedule] = self._predict(name, schedule)
        return self.known[schedule]

    def _predict(self, name: str, schedule: Schedule) -> Candidate | None:
        p = self.problem
        try:
            whole = complete(p.graph, schedule, p.target, strict=p.strict)
            if whole is not schedule:
                whole = Schedule(*whole.values(), *(s for n, s in schedule.items() if n not in whole))
            cost = predict_cost(p.graph, whole, Sizes(p.shapes, p.scalars), p.cpu, strict=p.strict, known=p.drafts)
        except PantileError:
            return None
        return Candidate(name, whole, cost)
