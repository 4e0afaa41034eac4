"""auto: the union of the strategies' spaces, searched by one price in seconds.

    1. Strategies propose schedules; `price` says what each costs (docs/cost_model.md).
    2. Their groups roll down strips, several rows at a time (`search.rolling`), and the cheapest of these descends: it
       merges and cuts groups, and varies one thing after the other (`search.descent`). All that the last stage needs is
       computed for strips of it at once, too.
    3. The cheapest of all takes parts of the others, all that cost less there, then group by group, while that is
       cheaper (`search.crossing`).
    4. Sums of cells at places that data decides go by blocks of these (`search.cells`), scans by columns
       (`search.bands`), sums of products by blocks that registers hold (`search.sums`), sums of pictures in passes
       over tiles (`search.passes`), and volumes of several quantities by boxes (`search.boxes`).
    5. Its factors are doubled and halved, while that is cheaper (`search.resizing`), and strips become even
       (`search.strips`).
    6. Stages of the same loops that read the same share them (`search.siblings`).
    7. Stages that turn pictures go by small tiles (`search.turned`), those that transpose them by tiles that are copied
       before (`search.transposed`), and groups that wait for memory ask for what they read next (`search.early`).

Where the plain schedule takes hardly longer than to call anything, it is taken at once: nothing would be gained.
A change must promise more than the price is wrong by among neighbours (`worth`). The search ends after `steps`, so that
large graphs stay fast, and finds the same schedule every time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import count
from math import inf
from typing import Annotated, ClassVar

from ..dataclass import dataclass
from ..parameters import Between, OneOf
from ..schedule.groups import groups as groups_of
from ..schedule.schedule import Schedule
from .greedy import Greedy
from .kernel import Kernel
from .naive import Naive
from .report import Report
from .reuse import Reuse
from .search.alternatives import alternatives, together
from .search.bands import bands
from .search.boxes import boxes
from .search.candidates import Candidate, CostedSchedules
from .search.cells import cells
from .search.crossover import cheaper_parts, crossings
from .search.descent import Descent, State
from .search.groups import groups
from .search.passes import passes
from .search.prefetch import asking_early
from .search.resizing import filling_lines, resizings
from .search.siblings import siblings
from .search.slanted_reads import in_tiles
from .search.strips import even_strips
from .search.sums import sums
from .search.transposes import by_copies
from .strategy import Found, Problem, Strategy

AS_DEAR = 0.005  # the part by which prices differ that are the same
MORE_WORK = 0.2  # the part by which tiles may take longer, but for what they read, that spare what prices do not see
WAITING = 0.2  # the part of the time of a stage that waits for memory
Loops = Callable[[Problem, Schedule, str], Iterator[Schedule]]
Changes = Callable[[Candidate], Iterator[tuple[str, Schedule]]]
# Who proposes, and for how many stages at most: some search among sets of stages, which takes longer than to price.
_SOURCES: tuple[tuple[type[Strategy], float], ...] = (
    (Naive, inf),
    (Greedy, inf),
    (Reuse, 128),
    (Kernel, 128),
)
SMALL = 1.5  # times as long as a call that does nothing: what takes no longer is not searched for
MANY = 4  # dear stages of a kind
LOOPS: dict[str, Loops] = {"cells": cells, "bands": bands, "sums": sums, "passes": passes, "boxes": boxes}
# What can be left out.
INGREDIENTS = (
    "crossing", *LOOPS, "resizing", "strips", "siblings", "turned", "transposed", "early", "rolling", "descent",
    *(s.name for s, _ in _SOURCES),
)  # fmt: skip
Ingredient = Annotated[str, OneOf(*INGREDIENTS)]


@dataclass(frozen=True)
class Auto(Strategy):
    """`steps`: stages that are priced beyond what strategies propose, as often as they are. `worth`: the part by which
    a change must be cheaper to be made. `without`: what is left out of INGREDIENTS, to see what it contributes."""

    name: ClassVar[str] = "auto"
    by_size: ClassVar[bool] = True
    reuse_within: ClassVar[float] = 1.3
    steps: Annotated[int, Between(0, 1 << 20)] = 250
    worth: Annotated[float, Between(0, 1)] = 0.03
    without: tuple[Ingredient, ...] | None = None

    def find(self, problem: Problem) -> Found:
        search = _Search(problem, self.steps, self.worth, self.without or ())
        best = search.best()
        costs = {c.name: c.cost.seconds for c in search.proposed}
        inlined = tuple(n for n, s in best.schedule.items() if "compute_inline" in s.verbs)
        return Found(
            best.schedule,
            Report(
                self.name,
                problem.machine.name,
                {"steps": self.steps, "worth": self.worth},
                together(best),
                inlined,
                {"schedules priced": len(search.candidates.known), "predicted seconds": best.cost.seconds},
                (f"{best.name}; proposed: {', '.join(f'{n} {s * 1e3:.3g} ms' for n, s in costs.items())}",),
                alternatives(search.candidates.known.values(), best),
            ),
        )


class _Search:
    def __init__(self, problem: Problem, steps: int, worth: float, without: Collection[str] = ()) -> None:
        self.problem, self.steps, self.worth, self.without = problem, steps, worth, without
        self.candidates = CostedSchedules(problem)
        self.proposed = list(self._proposed())
        self.besides = len(self.proposed)  # schedules that no step is kept for
        self.descent = Descent(problem, self.candidates, self.is_over, worth)

    def _proposed(self) -> Iterator[Candidate]:
        seen: set[Schedule] = set()
        asked = [s for s, most in _SOURCES if len(self.problem.graph.stages) <= most and s.name not in self.without]
        for source in asked or [Naive]:
            found = self.candidates.candidate(source.name, source().find(self.problem).schedule)
            if found is not None and found.schedule not in seen:
                seen.add(found.schedule)
                yield found
                if self._is_small(found):
                    return

    def _is_small(self, proposed: Candidate) -> bool:
        return proposed.cost.seconds <= SMALL * self.problem.machine.costs.call_s

    def is_over(self) -> bool:
        """A graph of more stages than steps has what was proposed for it. What is not legal was hardly looked at."""
        legal = sum(c is not None for c in self.candidates.known.values())
        looked_at = legal + len(self.descent.passed) - self.besides
        each = len(self.problem.graph.stages)
        return each > self.steps or looked_at * each >= self.steps

    def best(self) -> Candidate:
        if self._is_small(self.proposed[-1]):
            return self.proposed[-1]
        rolled = list(self._rolled())
        found = [*self.proposed, *(s.candidate for s in rolled), *self._in_strips()]
        if rolled and "descent" not in self.without:
            found.append(self.descent.descended(self._start(rolled)).candidate)
        best = self._joined(found, min(found, key=lambda c: c.seconds))
        best = self._improved(best, partial(self._crossed, found))
        for kind in LOOPS:
            best = self._in_other_loops(best, kind)
        best = self._by_lines(self._in_even_strips(self._improved(best, self._resized)))
        return self._early(self._by_copies(self._in_tiles(self._with_siblings(best))))

    def _rolled(self) -> Iterator[State]:
        """All groups of what was proposed, cheapest first, rolling alike."""
        seen = set()
        for c in sorted(self.proposed, key=lambda c: c.seconds) if "rolling" not in self.without else ():
            found = tuple(groups(self.problem.graph, c.schedule))
            if found not in seen and not self.is_over():
                seen.add(found)
                state = self.descent.rolling(c)
                if state is not None:
                    yield state

    def _in_strips(self) -> Iterator[Candidate]:
        """The cheapest that was proposed, with all that the last stage needs in strips of it. No start for a descent:
        prices do not see what becomes of halves in tiles that begin anywhere."""
        least = min(self.proposed, key=lambda c: c.seconds)
        cut = self.descent.in_strips(least) if "rolling" not in self.without and not self.is_over() else None
        if cut is not None:
            self.besides += 1
            yield cut.candidate

    def _start(self, rolled: list[State]) -> State:
        """The cheapest; of those that are as good as that the one with the fewest groups, which can be cut again."""
        least = min(s.candidate.seconds for s in rolled)
        return min((s for s in rolled if s.candidate.seconds * (1 - self.worth) <= least), key=lambda s: len(s.rolls))

    # ---- crossing and resizing

    def _improved(self, best: Candidate, changes: Changes) -> Candidate:
        """The cheapest that changes, each of the best so far, lead to."""
        while True:
            cheaper = best
            for name, schedule in changes(best):
                if self.is_over():
                    return cheaper
                found = self.candidates.candidate(name, schedule)
                if found is not None and found.seconds < cheaper.seconds * (1 - self.worth):
                    cheaper = found
            if cheaper is best:
                return best
            best = cheaper

    def _joined(self, candidates: list[Candidate], best: Candidate) -> Candidate:
        """With all parts of each other that have cost less there: one more price for each, so that no step is kept."""
        graph = self.problem.graph
        for other in sorted(candidates, key=lambda c: c.seconds) if "crossing" not in self.without else ():
            schedule = cheaper_parts(graph, best.schedule, other.schedule, partial(_gained, best, other))
            name = f"{best.name} with parts of {other.name}"
            found = self.candidates.candidate(name, schedule) if schedule is not None else None
            if found is not None and found.seconds < best.seconds * (1 - self.worth):
                best = found
        return best

    def _crossed(self, candidates: list[Candidate], best: Candidate) -> Iterator[tuple[str, Schedule]]:
        for other in candidates if "crossing" not in self.without else ():
            if other is not best:
                for schedule in crossings(self.problem.graph, best.schedule, other.schedule, self._may_matter(best)):
                    yield f"{best.name} with parts of {other.name}", schedule

    def _in_other_loops(self, best: Candidate, kind: str) -> Candidate:
        """With dear stages of a kind in other loops, one after the other, or where there are many, all alike: few
        pipelines have any, so that no step is kept for them. What a change must promise is a part of what these take:
        one of three products that are alike is a third of the time."""
        before, names = best, self._dear(best, kind)
        for some in [names] if len(names) > MANY else [[name] for name in names]:
            ways = [
                self.candidates.candidate(f"{before.name}, {some[0]} in {kind}", schedule)
                for schedule in self._alike(LOOPS[kind], best.schedule, some)
            ]
            cheapest = min((c for c in ways if c is not None), key=lambda c: c.seconds, default=best)
            seconds = _by_stage(best)
            of_these = sum(seconds[name] for name in some)  # changes before inline only what comes before these
            if best.seconds - cheapest.seconds > max(self.worth * of_these, AS_DEAR * best.seconds):
                best = cheapest
        return best

    def _alike(self, of: Loops, schedule: Schedule, names: Sequence[str]) -> Iterator[Schedule]:
        """The schedule with the first way for all of some stages, with the second, and so on."""
        for number in count():
            found, any_more = schedule, False
            for name in names:
                ways = list(of(self.problem, found, name))
                any_more = any_more or number < len(ways)
                found = ways[min(number, len(ways) - 1)] if ways else found
            if not any_more:
                return
            yield found

    def _resized(self, best: Candidate) -> Iterator[tuple[str, Schedule]]:
        may_matter = self._may_matter(best)
        together = {name: (g.root, *g.members) for g in groups_of(best.schedule) for name in (g.root, *g.members)}
        for stage, schedule in resizings(best.schedule, self._extents) if "resizing" not in self.without else ():
            if may_matter(together.get(stage, (stage,))):
                yield f"{best.name}, {stage} resized", schedule

    def _extents(self, name: str) -> dict[str, int]:
        """Of the dims of a stage; of none, if it is one that a schedule makes."""
        stage = self.problem.graph.stage.get(name)
        return {} if stage is None else dict(zip(stage.dims, self.problem.facts.extents(name), strict=True))

    def _dear(self, best: Candidate, ingredient: str) -> list[str]:
        """Stages of the pipeline, not copies that a schedule makes, that an ingredient is tried on, producers first."""
        if ingredient in self.without:
            return []
        dear = {s.name for s in best.cost.stages if s.seconds > self.worth * best.cost.seconds}
        return [s.name for s in self.problem.graph.stages if s.name in dear]

    def _may_matter(self, best: Candidate) -> Callable[[Collection[str]], bool]:
        """Whether a change of some stages can be worth it: if they took no time at all, would that be seen?"""
        seconds = _by_stage(best)
        return lambda names: sum(seconds.get(n, 0.0) for n in names) >= self.worth * best.cost.seconds

    def _in_even_strips(self, best: Candidate) -> Candidate:
        """With dear stages in strips of other lengths, where that is cheaper at all: the same loops run less often."""
        for name in self._dear(best, "strips"):
            for schedule in even_strips(self.problem, best.schedule, name):
                found = self.candidates.candidate(f"{best.name}, {name} in even strips", schedule)
                best = found if found is not None and found.seconds < best.seconds * (1 - AS_DEAR) else best
        return best

    def _by_lines(self, best: Candidate) -> Candidate:
        """With outputs that memory keeps waiting in vectors that fill its lines, where that is not dearer. If nothing
        else is computed, and inputs are larger, all wait for these, and longer vectors of them come later (`mask`: 3 %;
        `sobel` gains 8 %)."""
        before, stages = best.name, best.cost.stages
        waits = {s.name for s in stages if s.causes.traffic >= WAITING * s.causes.seconds}
        waits = waits if len(stages) > 1 or self._writes_most() else set()
        for name in [n for n in self.problem.graph.output if n in waits and "resizing" not in self.without]:
            schedule = filling_lines(self.problem, best.schedule, name)
            found = self.candidates.candidate(f"{before}, {name} by lines", schedule) if schedule is not None else None
            if found is not None and found.seconds <= best.seconds * (1 + AS_DEAR):
                best = found
        return best

    def _writes_most(self) -> bool:
        """Whether outputs are as many bytes as inputs."""
        graph, points = self.problem.graph, self.problem.facts.points
        read = sum(points(i.name) * i.dtype.bytes for i in graph.inputs)
        written = sum(points(name) * t.bytes for name in graph.output for t in graph.stage[name].dtypes)
        return written >= read

    def _in_tiles(self, best: Candidate) -> Candidate:
        """With dear stages that turn pictures in tiles, where these are not much more work: what moves is not known."""
        for name in self._dear(best, "turned"):
            ways = [
                self.candidates.candidate(f"{best.name}, {name} in tiles", schedule)
                for schedule in in_tiles(self.problem, best.schedule, name)
            ]
            found = min((c for c in ways if c is not None), key=lambda c: c.seconds, default=best)
            if _work(found) <= _work(best) * (1 + MORE_WORK):
                best = found
        return best

    def _by_copies(self, best: Candidate) -> Candidate:
        """With dear stages that transpose pictures in tiles of copies: what that spares is not in the price."""
        for name in self._dear(best, "transposed"):
            schedule = by_copies(self.problem, best.schedule, name)
            if schedule is not None:
                best = self.candidates.candidate(f"{best.name}, {name} by copies", schedule) or best
        return best

    def _with_siblings(self, best: Candidate) -> Candidate:
        """With stages that read the same sharing loops, where that is cheaper at all: little else can change by it."""
        may_matter = self._may_matter(best)
        for chains in siblings(self.problem, best.schedule) if "siblings" not in self.without else ():
            if may_matter([c.name for c in chains]):
                name = f"{best.name}, {chains[0].name} with its siblings"
                found = self.candidates.candidate(name, best.schedule.replace(*chains))
                best = found if found is not None and found.seconds < best.seconds * (1 - AS_DEAR) else best
        return best

    def _early(self, best: Candidate) -> Candidate:
        """With groups that wait for memory asking for what they read next."""
        waits = {s.name for s in best.cost.stages if s.causes.traffic >= WAITING * s.causes.seconds}
        for group in groups(self.problem.graph, best.schedule) if "early" not in self.without else ():
            is_waiting = not waits.isdisjoint((group.output, *group.members))
            schedule = asking_early(self.problem, best.schedule, group) if is_waiting else None
            if schedule is not None:
                best = self.candidates.candidate(f"{best.name}, {group.output} early", schedule) or best
        return best


def _work(candidate: Candidate) -> float:
    """Seconds of all cores that memory has no part in."""
    causes = candidate.cost.causes
    return causes.seconds - causes.traffic


def _gained(mine: Candidate, other: Candidate, names: Collection[str]) -> float:
    """The seconds by which some stages are cheaper in another schedule."""
    before, after = _by_stage(mine), _by_stage(other)
    return sum(before.get(n, 0.0) - after.get(n, 0.0) for n in names)


def _by_stage(candidate: Candidate) -> dict[str, float]:
    """What each stage costs; inlined ones cost nothing."""
    return {s.name: s.seconds for s in candidate.cost.stages}
