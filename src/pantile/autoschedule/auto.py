"""auto: the union of the strategies' spaces, searched by predicted seconds.

    1. Strategies propose schedules; `predict_cost` predicts the cost of each (docs/cost_model.md).
    2. Their groups roll down strips, several rows at a time (`search.rolling`), and the cheapest of these descends: it
       merges and cuts groups, and varies one parameter at a time (`search.descent`). A schedule that computes all that
       the last stage requires for strips of it at once is tried, too.
    3. The cheapest of all takes over parts of the others: first all that cost less there, then group by group, as long
       as that is cheaper (`search.crossover`).
    4. Sums into cells that data select are computed in blocks of cells (`search.cells`), scans by columns
       (`search.bands`), sums of products in register blocks (`search.sums`), sums of pictures in passes over tiles
       (`search.passes`), and volumes of several quantities in boxes (`search.boxes`).
    5. Its factors are doubled and halved, as long as that is cheaper, and strips become even (`search.resizing`).
    6. Stages with the same loops that read the same values share their loops (`search.siblings`).
    7. Stages that rotate pictures are computed in small tiles (`search.slanted_reads`), those that transpose them in
       tiles that are copied first (`search.transposes`), and groups that wait for memory prefetch what they read next
       (`search.prefetch`).

On a GPU, step 3 follows step 1, and expensive kernels get other thread tiles (`search.on_gpus`, `search.thread_tiles`).

If the plain schedule takes hardly longer than an empty call, it is taken at once, since nothing could be gained. A
change must promise more than the error of the cost model for similar schedules (`worth`). The search ends after
`steps`, so that it stays fast for large graphs, and finds the same schedule every time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import count
from math import inf
from typing import Annotated, ClassVar

from ..dataclass import dataclass
from ..forks import importing
from ..parameters import Between, OneOf
from ..schedule.schedule import Schedule
from ..schedule.schedule import groups as groups_of
from .greedy import Greedy
from .kernel import Kernel
from .naive import Naive
from .reuse import Reuse
from .search.bands import bands
from .search.boxes import boxes
from .search.candidates import Candidate
from .search.cells import cells
from .search.crossover import crossings
from .search.descent import Descent, State
from .search.groups import groups
from .search.passes import passes
from .search.prefetch import prefetching
from .search.proposals import ProposalSearch, seconds_by_stage
from .search.resizing import even_strips, filling_lines, resizings
from .search.siblings import siblings
from .search.slanted_reads import in_tiles
from .search.sums import sums
from .search.transposes import by_copies
from .strategy import Found, Problem, Strategy

EQUAL_COST = 0.005  # the relative difference of costs that count as equal
MORE_WORK = 0.2  # the fraction by which tiles may take longer, without traffic, to save what the cost model ignores
WAITING = 0.2  # the fraction of the time of a stage that waits for memory
Loops = Callable[[Problem, Schedule, str], Iterator[Schedule]]
Changes = Callable[[Candidate], Iterator[tuple[str, Schedule]]]
# The strategies that propose schedules, and the most stages for which they do: some search sets of stages, which takes
# longer than predicting costs.
_SOURCES: tuple[tuple[type[Strategy], float], ...] = (
    (Naive, inf),
    (Greedy, inf),
    (Reuse, 128),
    (Kernel, 128),
)
SMALL = 1.5  # times as long as an empty call: there is no search for pipelines that take no longer
MANY_STAGES = 4  # expensive stages of a kind
LOOPS: dict[str, Loops] = {"cells": cells, "bands": bands, "sums": sums, "passes": passes, "boxes": boxes}
# What can be left out, by module of `search`.
INGREDIENTS = (
    "crossover", *LOOPS, "resizing", "strips", "siblings", "slanted_reads", "transposes", "prefetch", "rolling",
    "descent", "merging", "inlining", "thread_tiles", *(s.name for s, _ in _SOURCES),
)  # fmt: skip
Ingredient = Annotated[str, OneOf(*INGREDIENTS)]


@dataclass(frozen=True)
class Auto(Strategy):
    """`steps`: the number of stages whose cost is predicted beyond the proposals, counting each prediction. `worth`:
    the fraction of the time that a change must save. `without`: the INGREDIENTS that are left out, to see what they
    contribute."""

    name: ClassVar[str] = "auto"
    for_gpus: ClassVar[bool] = True
    by_size: ClassVar[bool] = True
    reuse_within: ClassVar[float] = 1.3
    steps: Annotated[int, Between(0, 1 << 20)] = 250
    worth: Annotated[float, Between(0, 1)] = 0.03
    without: tuple[Ingredient, ...] | None = None

    def find(self, problem: Problem) -> Found:
        if problem.target.has_blocks:
            with importing:  # programs without a GPU do not need it
                on_gpus = import_module(".search.on_gpus", __package__)
            found: Found = on_gpus.find(problem, self.name, self.worth, self.without or ())
            return found
        search = _AutoSearch(problem, self.steps, self.worth, self.without or ())
        return search.found(self.name, {"steps": self.steps, "worth": self.worth})


class _AutoSearch(ProposalSearch):
    def __init__(self, problem: Problem, steps: int, worth: float, without: Collection[str] = ()) -> None:
        sources = [s for s, most in _SOURCES if len(problem.graph.stages) <= most and s.name not in without]
        super().__init__(problem, sources or [Naive], worth, without)
        self.steps = steps
        self.uncounted = len(self.proposed)  # schedules that do not count as steps
        self.descent = Descent(problem, self.candidates, self.is_over, worth)

    def is_enough(self, proposed: Candidate) -> bool:
        return proposed.cost.seconds <= SMALL * self.problem.cpu.costs.call_s

    def is_over(self) -> bool:
        """Whether all steps are spent. A graph with more stages than steps gets a proposal. Illegal schedules do not
        count."""
        legal = sum(c is not None for c in self.candidates.known.values())
        looked_at = legal + len(self.descent.passed) - self.uncounted
        each = len(self.problem.graph.stages)
        return each > self.steps or looked_at * each >= self.steps

    def best(self) -> Candidate:
        if self.is_enough(self.proposed[-1]):
            return self.proposed[-1]
        rolled = list(self._rolling_starts())
        candidates = [*self.proposed, *(s.candidate for s in rolled), *self._in_strips()]
        if rolled and "descent" not in self.without:
            candidates.append(self.descent.descend(self._start(rolled)).candidate)
        best = self.take_parts(candidates, min(candidates, key=lambda c: c.seconds))
        best = self._improve(best, partial(self._crossovers, candidates))
        for kind in LOOPS:
            best = self._in_other_loops(best, kind)
        best = self._filling_lines(self._in_even_strips(self._improve(best, self._resizings)))
        return self._prefetching(self._by_copies(self._in_tiles(self._with_siblings(best))))

    def _rolling_starts(self) -> Iterator[State]:
        """Yield the proposals, cheapest first, with all their groups rolling."""
        seen = set()
        for c in sorted(self.proposed, key=lambda c: c.seconds) if "rolling" not in self.without else ():
            rolling_groups = tuple(groups(self.problem.graph, c.schedule))
            if rolling_groups not in seen and not self.is_over():
                seen.add(rolling_groups)
                state = self.descent.rolling(c)
                if state is not None:
                    yield state

    def _in_strips(self) -> Iterator[Candidate]:
        """Yield the cheapest proposal with all that the last stage requires in strips of it. A descent does not start
        from it, since the cost model ignores how unaligned tiles slow down reads at x // 2."""
        least = min(self.proposed, key=lambda c: c.seconds)
        cut = self.descent.in_strips(least) if "rolling" not in self.without and not self.is_over() else None
        if cut is not None:
            self.uncounted += 1
            yield cut.candidate

    def _start(self, rolled: list[State]) -> State:
        """The cheapest start. Of about equal ones, it is the one with the fewest groups, which can be cut again."""
        least = min(s.candidate.seconds for s in rolled)
        return min((s for s in rolled if s.candidate.seconds * (1 - self.worth) <= least), key=lambda s: len(s.rolls))

    # ---- crossover and resizing

    def _improve(self, best: Candidate, changes: Changes) -> Candidate:
        """The cheapest schedule that changes lead to, each applied to the best one so far."""
        while True:
            cheaper = best
            for name, schedule in changes(best):
                if self.is_over():
                    return cheaper
                cheaper = self.if_cheaper(cheaper, name, schedule, self.worth)
            if cheaper is best:
                return best
            best = cheaper

    def _crossovers(self, candidates: list[Candidate], best: Candidate) -> Iterator[tuple[str, Schedule]]:
        for other in candidates if "crossover" not in self.without else ():
            if other is not best:
                for schedule in crossings(self.problem.graph, best.schedule, other.schedule, self._may_matter(best)):
                    yield f"{best.name} with parts of {other.name}", schedule

    def _in_other_loops(self, best: Candidate, kind: str) -> Candidate:
        """The schedule with expensive stages of a kind in other loops, one after the other, or all alike if there are
        many. Few pipelines have any, so they do not count as steps. A change must save a fraction of the time of these
        stages, not of the whole: one of three equal products takes a third of the time."""
        before, names = best, self._expensive(best, kind)
        for some in [names] if len(names) > MANY_STAGES else [[name] for name in names]:
            ways = [
                self.candidates.candidate(f"{before.name}, {some[0]}: {kind}", schedule)
                for schedule in self._all_alike(LOOPS[kind], best.schedule, some)
            ]
            cheapest = min((c for c in ways if c is not None), key=lambda c: c.seconds, default=best)
            seconds = seconds_by_stage(best)
            of_these = sum(seconds[name] for name in some)  # earlier changes only inline producers of these stages
            if best.seconds - cheapest.seconds > max(self.worth * of_these, EQUAL_COST * best.seconds):
                best = cheapest
        return best

    def _all_alike(self, loops: Loops, schedule: Schedule, names: Sequence[str]) -> Iterator[Schedule]:
        """Yield the schedule with the first alternative for all of some stages, with the second, and so on."""
        for number in count():
            changed, any_more = schedule, False
            for name in names:
                ways = list(loops(self.problem, changed, name))
                any_more = any_more or number < len(ways)
                changed = ways[min(number, len(ways) - 1)] if ways else changed
            if not any_more:
                return
            yield changed

    def _resizings(self, best: Candidate) -> Iterator[tuple[str, Schedule]]:
        may_matter = self._may_matter(best)
        together = {name: (g.root, *g.members) for g in groups_of(best.schedule) for name in (g.root, *g.members)}
        for stage, schedule in resizings(best.schedule, self._extents) if "resizing" not in self.without else ():
            if may_matter(together.get(stage, (stage,))):
                yield f"{best.name}, {stage}: resized", schedule

    def _extents(self, name: str) -> dict[str, int]:
        """The extents of the dims of a stage; none for a stage that a directive makes."""
        stage = self.problem.graph.stage.get(name)
        return {} if stage is None else dict(zip(stage.dims, self.problem.facts.extents(name), strict=True))

    def _expensive(self, best: Candidate, ingredient: str) -> list[str]:
        """The expensive stages of the pipeline, without copies that a schedule makes, producers first; none if the
        ingredient is left out."""
        if ingredient in self.without:
            return []
        expensive = {s.name for s in best.cost.stages if s.seconds > self.worth * best.cost.seconds}
        return [s.name for s in self.problem.graph.stages if s.name in expensive]

    def _may_matter(self, best: Candidate) -> Callable[[Collection[str]], bool]:
        """Return a function that tells whether a change of some stages can be worth it: whether it would if they took
        no time."""
        seconds = seconds_by_stage(best)
        return lambda names: sum(seconds.get(n, 0.0) for n in names) >= self.worth * best.cost.seconds

    def _in_even_strips(self, best: Candidate) -> Candidate:
        """The schedule with expensive stages in strips of other lengths, if that is cheaper at all."""
        for name in self._expensive(best, "strips"):
            for schedule in even_strips(self.problem, best.schedule, name):
                best = self.if_cheaper(best, f"{best.name}, {name}: even strips", schedule, EQUAL_COST)
        return best

    def _filling_lines(self, best: Candidate) -> Candidate:
        """The schedule with memory-bound outputs in vectors that fill cache lines, if that is not more expensive. If
        nothing else is computed, and inputs are larger, longer vectors of these arrays arrive later (`mask` takes 3 %
        longer; `sobel` gains 8 %)."""
        before, stages = best.name, best.cost.stages
        waits = {s.name for s in stages if s.causes.traffic >= WAITING * s.causes.seconds}
        waits = waits if len(stages) > 1 or self._writes_most() else set()
        for name in [n for n in self.problem.graph.output if n in waits and "resizing" not in self.without]:
            schedule = filling_lines(self.problem, best.schedule, name)
            candidate = (
                self.candidates.candidate(f"{before}, {name}: vectors of whole cache lines", schedule)
                if schedule is not None
                else None
            )
            if candidate is not None and candidate.seconds <= best.seconds * (1 + EQUAL_COST):
                best = candidate
        return best

    def _writes_most(self) -> bool:
        """Whether outputs have at least as many bytes as inputs."""
        graph, points = self.problem.graph, self.problem.facts.points
        read = sum(points(i.name) * i.dtype.bytes for i in graph.inputs)
        written = sum(points(name) * t.bytes for name in graph.output for t in graph.stage[name].dtypes)
        return written >= read

    def _in_tiles(self, best: Candidate) -> Candidate:
        """The schedule with expensive stages that rotate pictures in tiles, if these are not much more work. The cost
        model ignores what they save."""
        for name in self._expensive(best, "slanted_reads"):
            ways = [
                self.candidates.candidate(f"{best.name}, {name}: tiled", schedule)
                for schedule in in_tiles(self.problem, best.schedule, name)
            ]
            cheapest = min((c for c in ways if c is not None), key=lambda c: c.seconds, default=best)
            if _work(cheapest) <= _work(best) * (1 + MORE_WORK):
                best = cheapest
        return best

    def _by_copies(self, best: Candidate) -> Candidate:
        """The schedule with expensive stages that transpose pictures in tiles of copies. The cost model ignores what
        they save."""
        for name in self._expensive(best, "transposes"):
            schedule = by_copies(self.problem, best.schedule, name)
            if schedule is not None:
                best = self.candidates.candidate(f"{best.name}, {name}: tiles of copies", schedule) or best
        return best

    def _with_siblings(self, best: Candidate) -> Candidate:
        """The schedule with stages that read the same values in shared loops, if that is cheaper at all."""
        may_matter = self._may_matter(best)
        for chains in siblings(self.problem, best.schedule) if "siblings" not in self.without else ():
            if may_matter([c.name for c in chains]):
                name = f"{best.name}, {chains[0].name}: loops shared with siblings"
                best = self.if_cheaper(best, name, best.schedule.replace(*chains), EQUAL_COST)
        return best

    def _prefetching(self, best: Candidate) -> Candidate:
        """The schedule with memory-bound groups prefetching what they read next."""
        waits = {s.name for s in best.cost.stages if s.causes.traffic >= WAITING * s.causes.seconds}
        for group in groups(self.problem.graph, best.schedule) if "prefetch" not in self.without else ():
            is_waiting = not waits.isdisjoint((group.output, *group.members))
            schedule = prefetching(self.problem, best.schedule, group) if is_waiting else None
            if schedule is not None:
                best = self.candidates.candidate(f"{best.name}, {group.output}: prefetching", schedule) or best
        return best


def _work(candidate: Candidate) -> float:
    """The seconds of all cores without memory traffic."""
    causes = candidate.cost.causes
    return causes.seconds - causes.traffic
