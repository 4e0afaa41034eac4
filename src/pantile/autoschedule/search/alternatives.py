"""What else was considered: the cheapest schedules beside the chosen one that differ in more than a factor.

`explain` tells why they lost, and `pantile tune` measures them: prices are wrong by more than neighbours differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...price import Price
from ...price.show import named, time
from ...schedule.schedule import Schedule
from ..report import Alternative
from .priced import Candidate

MOST = 10
ALIKE = 2  # of the same directives, with other factors
NOTICEABLE = 0.01  # of the chosen one's time

Shape = frozenset[tuple[str, tuple[tuple[object, ...], ...]]]


def alternatives(candidates: Iterable[Candidate | None], best: Candidate) -> tuple[Alternative, ...]:
    """The cheapest first."""
    alike: Counter[Shape] = Counter({shape(best.schedule): 1})
    found: list[Alternative] = []
    for c in sorted((c for c in candidates if c is not None and c.schedule != best.schedule), key=lambda c: c.seconds):
        of = shape(c.schedule)
        if alike[of] < ALIKE and len(found) < MOST and c.schedule not in (a.schedule for a in found):
            alike[of] += 1
            found.append(Alternative(c.name, c.schedule, c.price.seconds, _why(c.price, best.price)))
    return tuple(found)


def shape(schedule: Schedule) -> Shape:
    """A schedule without its numbers."""
    return frozenset(
        (name, tuple((d.verb, *(a for a in d.args if isinstance(a, str))) for d in chain.directives))
        for name, chain in schedule.items()
    )


def _why(lost: Price, won: Price) -> str:
    """On what it spends most of what it takes longer; one that is hardly cheaper was not worth a change."""
    if lost.seconds <= won.seconds:
        return "too little is gained"
    before = _shares(won)
    more = {name: seconds - before[name] for name, seconds in _shares(lost).items()}
    most = max(more, key=lambda name: more[name])
    return f"{time(more[most])} more of {most}" if more[most] > NOTICEABLE * won.seconds else ""


def _shares(p: Price) -> dict[str, float]:
    """Its time by causes, which are of all cores together."""
    return {name: seconds * p.seconds / p.causes.seconds for name, seconds in named(p.causes)}
