"""Schedules and their predicted costs: each is resolved and predicted once, and an illegal one has no cost.

The report of a search shows which stages are computed together, and what else was considered: the cheapest candidates
that differ in more than a factor. `explain` tells why they lost, and `pantile tune` measures them, since the error of
the cost model exceeds the difference between similar candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from math import isfinite

from ...cost_model import Cost
from ...cost_model.result import named, time
from ...dataclass import dataclass
from ...errors import PantileError
from ...schedule.default import complete
from ...schedule.schedule import Schedule, groups
from ..strategy import Alternative, GroupReport, Problem

# A pipeline is compiled once and run often, but somebody waits for the compiler: each second counts as code that is
# slower by this fraction, each second beyond what is usual for that number of stages counts three times as much, and
# beyond the limit of patience the cost grows in proportion.
HASTE_PER_S, HASTE_PER_UNUSUAL_S = 0.04, 0.08
USUAL_S, USUAL_S_EACH = 1.25, 0.1
PATIENCE_S = 5.0
MOST = 10
ALIKE = 2  # of the same directives, with other factors
NOTICEABLE = 0.01  # of the time of the chosen schedule

Shape = frozenset[tuple[str, tuple[tuple[object, ...], ...]]]


@dataclass(frozen=True)
class Candidate:
    """A schedule with directives for every stage."""

    name: str  # of the strategy that it comes from, and what was changed
    schedule: Schedule
    cost: Cost

    @property
    def seconds(self) -> float:
        """The seconds by which candidates are compared: those of a call, and a share of the time to compile."""
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
            cost = p.cost(whole)
        except PantileError:
            return None
        return Candidate(name, whole, cost)


def together(best: Candidate) -> tuple[GroupReport, ...]:
    """The groups of a schedule, and how long each takes."""
    seconds = {s.name: s.seconds for s in best.cost.stages}
    return tuple(
        GroupReport(
            g.root,
            g.members,
            (dict(g.tiles),) if g.tiles else (),
            {"predicted ms": 1e3 * sum(seconds.get(name, 0.0) for name in (g.root, *g.members))},
        )
        for g in groups(best.schedule)
    )


def alternatives(candidates: Iterable[Candidate | None], best: Candidate) -> tuple[Alternative, ...]:
    """The alternatives to the best candidate, the cheapest first."""
    alike: Counter[Shape] = Counter({shape(best.schedule): 1})
    chosen: list[Alternative] = []
    others = [c for c in candidates if c is not None and c.schedule != best.schedule and isfinite(c.seconds)]
    for c in sorted(others, key=lambda c: c.seconds):
        if len(chosen) == MOST:
            break
        form = shape(c.schedule)
        if alike[form] < ALIKE and c.schedule not in (a.schedule for a in chosen):
            alike[form] += 1
            chosen.append(Alternative(c.name, c.schedule, c.cost.seconds, _why(c.cost, best.cost)))
    return tuple(chosen)


def shape(schedule: Schedule) -> Shape:
    """The directives of a schedule without their numbers."""
    return frozenset(
        (name, tuple((d.verb, *(a for a in d.args if isinstance(a, str))) for d in chain.directives))
        for name, chain in schedule.items()
    )


def _why(lost: Cost, won: Cost) -> str:
    """The cause on which a schedule that lost spends most of its additional time."""
    if lost.seconds <= won.seconds:
        return "gains too little"
    before = _shares(won)
    more = {name: seconds - before[name] for name, seconds in _shares(lost).items()}
    most = max(more, key=lambda name: more[name])
    return f"{time(more[most])} more {most}" if more[most] > NOTICEABLE * won.seconds else ""


def _shares(p: Cost) -> dict[str, float]:
    """The wall-clock time of a cost by cause. Causes are summed over all cores."""
    return {name: seconds * p.seconds / p.causes.seconds for name, seconds in named(p.causes)}
