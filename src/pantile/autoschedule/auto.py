"""auto: the union of the strategies' spaces, searched by one price in seconds.

    1. Every strategy proposes a schedule; `price` says what each costs (docs/price.md).
    2. The cheapest takes parts of the others, group by group, while that is cheaper (`search.crossing`).
    3. Its factors are doubled and halved, while that is cheaper (`search.resizing`).

A change must promise more than the price is wrong by among neighbours (`worth`). The search ends after `steps` prices,
so that large graphs stay fast, and finds the same schedule every time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import inf
from typing import Annotated, ClassVar

from ..parameters import Between, OneOf
from ..schedule.schedule import Schedule
from .dp import Dp
from .greedy import Greedy
from .kernel import Kernel
from .naive import Naive
from .polymage import Polymage
from .posttile import PostTile
from .report import Report
from .reuse import Reuse
from .search.alternatives import alternatives, together
from .search.crossing import crossings
from .search.priced import Candidate, Priced
from .search.resizing import resizings
from .strategy import Found, Problem, Strategy

Changes = Callable[[Candidate], Iterator[tuple[str, Schedule]]]
# Who proposes, and for how many stages at most: some search among sets of stages, which takes longer than to price.
_SOURCES: tuple[tuple[type[Strategy], float], ...] = (
    (Naive, inf), (Greedy, inf), (PostTile, inf), (Kernel, 60), (Reuse, 60), (Polymage, 30), (Dp, 16),
)  # fmt: skip
# What can be left out.
INGREDIENTS = ("crossing", "resizing", *(s.name for s, _ in _SOURCES))
Ingredient = Annotated[str, OneOf(*INGREDIENTS)]


@dataclass(frozen=True)
class Auto(Strategy):
    """`steps`: schedules that are priced beyond what strategies propose. `worth`: the part by which a change must be
    cheaper to be made. `without`: what is left out of INGREDIENTS, to see what it contributes."""

    name: ClassVar[str] = "auto"
    steps: Annotated[int, Between(0, 1 << 20)] = 96
    worth: Annotated[float, Between(0, 1)] = 0.02
    without: tuple[Ingredient, ...] | None = None

    def find(self, problem: Problem) -> Found:
        search = _Search(problem, self.steps, self.worth, self.without or ())
        best = search.best()
        costs = {c.name: c.price.seconds for c in search.proposed}
        groups = together(best)
        inlined = tuple(n for n, s in best.schedule.items() if any(d.verb == "compute_inline" for d in s.directives))
        return Found(
            best.schedule,
            Report(
                self.name, problem.machine.name, {"steps": self.steps, "worth": self.worth}, groups, inlined,
                {"schedules priced": len(search.priced.known), "predicted seconds": best.price.seconds},
                (f"{best.name}; proposed: {', '.join(f'{n} {s * 1e3:.3g} ms' for n, s in costs.items())}",),
                alternatives(search.priced.known.values(), best),
            ),
        )  # fmt: skip


class _Search:
    def __init__(self, problem: Problem, steps: int, worth: float, without: Collection[str] = ()) -> None:
        self.problem, self.steps, self.worth, self.without = problem, steps, worth, without
        self.priced = Priced(problem)
        self.proposed = list(self._proposed())

    def _proposed(self) -> Iterator[Candidate]:
        seen: set[Schedule] = set()
        asked = [s for s, most in _SOURCES if len(self.problem.graph.stages) <= most and s.name not in self.without]
        for source in asked or [Naive]:
            found = self.priced.candidate(source.name, source().find(self.problem).schedule)
            if found is not None and found.schedule not in seen:
                seen.add(found.schedule)
                yield found

    def best(self) -> Candidate:
        best = min(self.proposed, key=lambda c: c.seconds)
        best = self._improved(best, self._crossed)
        return self._improved(best, self._resized)

    def _improved(self, best: Candidate, changes: Changes) -> Candidate:
        """The cheapest that changes, each of the best so far, lead to."""
        while True:
            cheaper = best
            for name, schedule in changes(best):
                if len(self.priced.known) >= self.steps + len(self.proposed):
                    return cheaper
                found = self.priced.candidate(name, schedule)
                if found is not None and found.seconds < cheaper.seconds * (1 - self.worth):
                    cheaper = found
            if cheaper is best:
                return best
            best = cheaper

    def _crossed(self, best: Candidate) -> Iterator[tuple[str, Schedule]]:
        for other in self.proposed:
            if other is not best and "crossing" not in self.without:
                for schedule in crossings(self.problem.graph, best.schedule, other.schedule):
                    yield f"{best.name} with parts of {other.name}", schedule

    def _resized(self, best: Candidate) -> Iterator[tuple[str, Schedule]]:
        for stage, schedule in resizings(best.schedule) if "resizing" not in self.without else ():
            yield f"{best.name}, {stage} resized", schedule
