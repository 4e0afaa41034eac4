"""Several strategies over several apps: who is how fast on what, at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean

from .contender import Label
from .ours import SYSTEM
from .result import Result, aligned, milliseconds, two_digits

BASELINES = ("expert", "plain", "naive")  # what strategies are compared with


@dataclass(frozen=True, eq=False)
class Matrix:
    """Results by app and contender."""

    results: Sequence[Result]

    @cached_property
    def labels(self) -> list[Label]:
        return list(dict.fromkeys(r.label for r in self.results))

    @cached_property
    def strategies(self) -> list[Label]:
        """Ours; the naive one is no match for a rival's."""
        return [x for x in self.labels if x.system == SYSTEM and x.schedule not in BASELINES]

    @cached_property
    def times(self) -> dict[str, dict[Label, float]]:
        """Milliseconds of everybody who was measured, by app."""
        times: dict[str, dict[Label, float]] = {}
        for r in self.results:
            times.setdefault(r.app, {})[r.label] = r.ms
        return times

    @property
    def is_worth_showing(self) -> bool:
        return len(self.strategies) >= 2 and len({x.threads for x in self.labels}) == 1

    @property
    def head(self) -> list[str]:
        return [x.schedule if x.system == SYSTEM else f"{x.system} {x.schedule}" for x in self.labels]

    def ratio(self, app: str, some: Sequence[Label]) -> float | None:
        """The best time of some on an app over that of our strategies, if both were measured."""
        of = self.times[app]
        theirs, ours = ([of[x] for x in labels if x in of] for labels in (some, self.strategies))
        return min(theirs) / min(ours) if theirs and ours else None

    def mean(self, some: Sequence[Label]) -> float | None:
        """The geometric mean of these ratios."""
        ratios = [r for app in self.times if (r := self.ratio(app, some)) is not None]
        return geometric_mean(ratios) if ratios else None


def matrix(results: Sequence[Result]) -> Iterator[str]:
    """One line per app, one column per contender; then how far each is from the best strategy on the geometric mean."""
    m = Matrix(results)
    if not m.is_worth_showing:
        return
    rows = [["ms", *m.head]]
    rows += [[app, *(milliseconds(of[x]) if x in of else "" for x in m.labels)] for app, of in m.times.items()]
    means = [m.mean([label]) for label in m.labels]
    rows.append(["this/best", *map(two_digits, means)])
    yield from aligned(rows, text_columns=1)
    for system in dict.fromkeys(x.system for x in m.labels if x.system != SYSTEM):
        theirs = [x for x in m.labels if x.system == system and x.schedule != "manual"]
        mean = m.mean(theirs)
        if mean is not None:
            names = ", ".join(x.schedule for x in theirs)
            yield f"the best of {system}'s {names} over the best of our strategies: {mean:.2f} on the geometric mean"
