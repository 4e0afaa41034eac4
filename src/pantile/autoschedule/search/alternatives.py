"""The report of a search: what is computed together, and what else was considered, the cheapest that differ in
more than a factor.

`explain` tells why they lost, and `pantile tune` measures them: the error of the cost model exceeds the difference of
neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...cost_model import Cost
from ...cost_model.result import named, time
from ...schedule.groups import groups
from ...schedule.schedule import Schedule
from ..report import Alternative, GroupReport
from .candidates import Candidate

MOST = 10
ALIKE = 2  # of the same directives, with other factors
NOTICEABLE = 0.01  # of the chosen one's time

Shape = frozenset[tuple[str, tuple[tuple[object, ...], ...]]]


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
    for c in sorted((c for c in candidates if c is not None and c.schedule != best.schedule), key=lambda c: c.seconds):
        if len(chosen) == MOST:
            break
        form = shape(c.schedule)
        if alike[form] < ALIKE and c.schedule not in (a.schedule for a in chosen):
            alike[form] += 1
            chosen.append(Alternative(c.name, c.schedule, c.cost.seconds, _why(c.cost, best.cost)))
    return tuple(chosen)


def shape(schedule: Schedule) -> Shape:
    """A schedule without its numbers."""
    return frozenset(
        (name, tuple((d.verb, *(a for a in d.args if isinstance(a, str))) for d in chain.directives))
        for name, chain in schedule.items()
    )


def _why(lost: Cost, won: Cost) -> str:
    """What a schedule that lost spends most of its additional time on."""
    if lost.seconds <= won.seconds:
        return "gains too little"
    before = _shares(won)
    more = {name: seconds - before[name] for name, seconds in _shares(lost).items()}
    most = max(more, key=lambda name: more[name])
    return f"{time(more[most])} more {most}" if more[most] > NOTICEABLE * won.seconds else ""


def _shares(p: Cost) -> dict[str, float]:
    """The wall-clock time of a cost by causes, which are of all cores together."""
    return {name: seconds * p.seconds / p.causes.seconds for name, seconds in named(p.causes)}
