"""auto: the union of the strategies' spaces, searched by predicted seconds.

    1. Strategies propose schedules; `predict_cost` says what each costs (docs/cost_model.md).
    2. Their groups roll down strips, several rows at a time (`search.rolling`), and the cheapest of these descends: it
       merges and cuts groups, and varies one thing after the other (`search.descent`). A schedule that computes all
       that the last stage requires for strips of it at once is tried, too.
    3. The cheapest of all takes parts of the others, all that cost less there, then group by group, while that is
       cheaper (`search.crossover`).
    4. Sums of cells at places that data decides go by blocks of these (`search.cells`), scans by columns
       (`search.bands`), sums of products by blocks that registers hold (`search.sums`), sums of pictures in passes
       over tiles (`search.passes`), and volumes of several quantities by boxes (`search.boxes`).
    5. Its factors are doubled and halved, while that is cheaper, and strips become even (`search.resizing`).
    6. Stages of the same loops that read the same share them (`search.siblings`).
    7. Stages that rotate pictures go by small tiles (`search.slanted_reads`), those that transpose them by tiles that
       are copied before (`search.transposes`), and groups that wait for memory prefetch what they read next
       (`search.prefetch`).

On a GPU, kernels are lowered to predict what they cost, which takes longer. There the cheapest of the proposals, one of
which is the plain schedule, takes the parts of the others that cost less, and that is all. Of many stages nothing is
predicted: they run by what `greedy` finds.

Where the plain schedule takes hardly longer than an empty call, it is taken at once: nothing would be gained. A change
must promise more than the error of the cost model among neighbours (`worth`). The search ends after `steps`, so that
large graphs stay fast, and finds the same schedule every time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import count
from math import inf, isfinite
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
from .search.candidates import Candidate, CostedSchedules, alternatives, together
from .search.cells import cells
from .search.crossover import cheaper_parts, crossings
from .search.descent import Descent, State
from .search.groups import groups
from .search.passes import passes
from .search.prefetch import prefetching
from .search.resizing import even_strips, filling_lines, resizings
from .search.siblings import siblings
from .search.slanted_reads import in_tiles
from .search.sums import sums
from .search.transposes import by_copies
from .strategy import Found, Problem, Report, Strategy

EQUAL_COST = 0.005  # the relative difference of costs that count as equal
MORE_WORK = 0.2  # the part by which tiles may take longer, without traffic, if they save what the cost model ignores
WAITING = 0.2  # the part of the time of a stage that waits for memory
Loops = Callable[[Problem, Schedule, str], Iterator[Schedule]]
Changes = Callable[[Candidate], Iterator[tuple[str, Schedule]]]
# The strategies that propose, and for how many stages at most: some search sets of stages, which is slower than
# predicting costs.
_SOURCES: tuple[tuple[type[Strategy], float], ...] = (
    (Naive, inf),
    (Greedy, inf),
    (Reuse, 128),
    (Kernel, 128),
)
_GPU_SOURCES = ("greedy", "autogpu", "posttile")
MOST_LOWERED = 32  # stages whose kernels are lowered several times to compare schedules for a GPU
WORTH_ON_GPU = 0.07  # what `worth` is at least on a GPU, where predictions err by more
SMALL = 1.5  # times as long as an empty call: for what takes no longer, there is no search
MANY_STAGES = 4  # expensive stages of a kind
LOOPS: dict[str, Loops] = {"cells": cells, "bands": bands, "sums": sums, "passes": passes, "boxes": boxes}
# What can be left out, by the modules of `search`.
INGREDIENTS = (
    "crossover", *LOOPS, "resizing", "strips", "siblings", "slanted_reads", "transposes", "prefetch", "rolling",
    "descent", *(s.name for s, _ in _SOURCES),
)  # fmt: skip
Ingredient = Annotated[str, OneOf(*INGREDIENTS)]


@dataclass(frozen=True)
class Auto(Strategy):
    """`steps`: stages whose cost is predicted beyond the proposals, each as often as it is. `worth`: the part by which
    a change must be cheaper to be made. `without`: what is left out of INGREDIENTS, to see what it contributes."""

    name: ClassVar[str] = "auto"
    for_gpus: ClassVar[bool] = True
    by_size: ClassVar[bool] = True
    reuse_within: ClassVar[float] = 1.3
    steps: Annotated[int, Between(0, 1 << 20)] = 250
    worth: Annotated[float, Between(0, 1)] = 0.03
    without: tuple[Ingredient, ...] | None = None

    def find(self, problem: Problem) -> Found:
        if problem.target.has_blocks and len(problem.graph.stages) > MOST_LOWERED:
            return self._unpredicted(problem)
        search = _AutoSearch(problem, self.steps, self.worth, self.without or ())
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
                {"schedules evaluated": len(search.candidates.known), **_predicted(best)},
                (
                    f"derivation: {best.name}",
                    f"proposals: {', '.join(f'{n} {s * 1e3:.3g} ms' for n, s in costs.items())}",
                ),
                alternatives(search.candidates.known.values(), best),
            ),
        )

    def _unpredicted(self, problem: Problem) -> Found:
        """What greedy finds, where predictions would take long."""
        found = Greedy().find(problem)
        why = f"more than {MOST_LOWERED} stages, so that no times were predicted: the schedule of {Greedy.name}"
        return replace(found, report=replace(found.report, strategy=self.name, remarks=(why, *found.report.remarks)))


def _for_gpus() -> list[type[Strategy]]:
    """The strategies that propose on GPUs, which programs without one do not need."""
    with importing:
        strategies: Mapping[str, type[Strategy]] = import_module(__package__).STRATEGIES
    return [strategies[name] for name in _GPU_SOURCES]


class _AutoSearch:
    def __init__(self, problem: Problem, steps: int, worth: float, without: Collection[str] = ()) -> None:
        self.problem, self.steps, self.without = problem, steps, without
        self.is_on_gpu = problem.target.has_blocks
        self.worth = max(worth, WORTH_ON_GPU) if self.is_on_gpu else worth
        self.candidates = CostedSchedules(problem)
        self.proposed = list(self._proposals())
        self.uncounted = len(self.proposed)  # schedules that no step is kept for
        self.descent = Descent(problem, self.candidates, self.is_over, worth)

    def _proposals(self) -> Iterator[Candidate]:
        seen: set[Schedule] = set()
        for name, schedule in self._proposed_schedules():
            candidate = self.candidates.candidate(name, schedule)
            if candidate is not None and candidate.schedule not in seen:
                seen.add(candidate.schedule)
                yield candidate
                if self._is_small(candidate):
                    return

    def _proposed_schedules(self) -> Iterator[tuple[str, Schedule]]:
        strategies = [
            s for s, most in _SOURCES if len(self.problem.graph.stages) <= most and s.name not in self.without
        ]
        if self.is_on_gpu:
            self.problem.check_predicted()
            yield "plain", Schedule()
            strategies = [s for s in _for_gpus() if s.name not in self.without]
        for source in strategies or [Naive]:
            yield source.name, source().find(self.problem).schedule

    def _is_small(self, proposed: Candidate) -> bool:
        return not self.is_on_gpu and proposed.cost.seconds <= SMALL * self.problem.cpu.costs.call_s

    def is_over(self) -> bool:
        """Whether all steps are spent. A graph of more stages than steps gets a proposal. Illegal schedules do not
        count."""
        legal = sum(c is not None for c in self.candidates.known.values())
        looked_at = legal + len(self.descent.passed) - self.uncounted
        each = len(self.problem.graph.stages)
        return each > self.steps or looked_at * each >= self.steps

    def best(self) -> Candidate:
        if self._is_small(self.proposed[-1]):
            return self.proposed[-1]
        if self.is_on_gpu:
            return self._take_parts(self.proposed, self._first_cheapest())
        rolled = list(self._rolling_starts())
        candidates = [*self.proposed, *(s.candidate for s in rolled), *self._in_strips()]
        if rolled and "descent" not in self.without:
            candidates.append(self.descent.descend(self._start(rolled)).candidate)
        best = self._take_parts(candidates, min(candidates, key=lambda c: c.seconds))
        best = self._improve(best, partial(self._crossovers, candidates))
        for kind in LOOPS:
            best = self._in_other_loops(best, kind)
        best = self._filling_lines(self._in_even_strips(self._improve(best, self._resizings)))
        return self._prefetching(self._by_copies(self._in_tiles(self._with_siblings(best))))

    def _first_cheapest(self) -> Candidate:
        """The cheapest proposal; an earlier one unless a later one is worth it."""
        best = self.proposed[0]
        for c in self.proposed[1:]:
            best = c if c.seconds < best.seconds * (1 - self.worth) else best
        return best

    def _rolling_starts(self) -> Iterator[State]:
        """The proposals, cheapest first, with all their groups rolling."""
        seen = set()
        for c in sorted(self.proposed, key=lambda c: c.seconds) if "rolling" not in self.without else ():
            rolling_groups = tuple(groups(self.problem.graph, c.schedule))
            if rolling_groups not in seen and not self.is_over():
                seen.add(rolling_groups)
                state = self.descent.rolling(c)
                if state is not None:
                    yield state

    def _in_strips(self) -> Iterator[Candidate]:
        """The cheapest proposal, with all that the last stage requires in strips of it. It is no start for a descent:
        the cost model ignores what becomes of reads at x // 2 in unaligned tiles."""
        least = min(self.proposed, key=lambda c: c.seconds)
        cut = self.descent.in_strips(least) if "rolling" not in self.without and not self.is_over() else None
        if cut is not None:
            self.uncounted += 1
            yield cut.candidate

    def _start(self, rolled: list[State]) -> State:
        """The cheapest start; among equals the one with the fewest groups, which can be cut again."""
        least = min(s.candidate.seconds for s in rolled)
        return min((s for s in rolled if s.candidate.seconds * (1 - self.worth) <= least), key=lambda s: len(s.rolls))

    # ---- crossover and resizing

    def _improve(self, best: Candidate, changes: Changes) -> Candidate:
        """The cheapest schedule that changes lead to, each applied to the best so far."""
        while True:
            cheaper = best
            for name, schedule in changes(best):
                if self.is_over():
                    return cheaper
                cheaper = self._if_cheaper(cheaper, name, schedule, self.worth)
            if cheaper is best:
                return best
            best = cheaper

    def _take_parts(self, candidates: list[Candidate], best: Candidate) -> Candidate:
        """The best schedule with all parts of each other one that cost less there. Each costs one prediction, which
        does not count as a step."""
        graph = self.problem.graph
        for other in sorted(candidates, key=lambda c: c.seconds) if "crossover" not in self.without else ():
            schedule = cheaper_parts(graph, best.schedule, other.schedule, partial(_gain, best, other))
            best = self._if_cheaper(best, f"{best.name} with parts of {other.name}", schedule, self.worth)
        return best

    def _if_cheaper(self, best: Candidate, name: str, schedule: Schedule | None, by: float) -> Candidate:
        """The candidate of a schedule if it is cheaper than the best one, by a part of its time; else the best one."""
        candidate = None if schedule is None else self.candidates.candidate(name, schedule)
        return candidate if candidate is not None and candidate.seconds < best.seconds * (1 - by) else best

    def _crossovers(self, candidates: list[Candidate], best: Candidate) -> Iterator[tuple[str, Schedule]]:
        for other in candidates if "crossover" not in self.without else ():
            if other is not best:
                for schedule in crossings(self.problem.graph, best.schedule, other.schedule, self._may_matter(best)):
                    yield f"{best.name} with parts of {other.name}", schedule

    def _in_other_loops(self, best: Candidate, kind: str) -> Candidate:
        """The schedule with expensive stages of a kind in other loops, one after the other, or where there are many,
        all alike. Few pipelines have any, so they do not count as steps. What a change must promise is a part of the
        time of these stages: one of three products that are alike is a third of the time."""
        before, names = best, self._expensive(best, kind)
        for some in [names] if len(names) > MANY_STAGES else [[name] for name in names]:
            ways = [
                self.candidates.candidate(f"{before.name}, {some[0]}: {kind}", schedule)
                for schedule in self._all_alike(LOOPS[kind], best.schedule, some)
            ]
            cheapest = min((c for c in ways if c is not None), key=lambda c: c.seconds, default=best)
            seconds = _by_stage(best)
            of_these = sum(seconds[name] for name in some)  # changes before inline only what comes before these
            if best.seconds - cheapest.seconds > max(self.worth * of_these, EQUAL_COST * best.seconds):
                best = cheapest
        return best

    def _all_alike(self, loops: Loops, schedule: Schedule, names: Sequence[str]) -> Iterator[Schedule]:
        """The schedule with the first way for all of some stages, with the second, and so on."""
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
        """The expensive stages of the pipeline, without copies that a schedule makes, producers first; none if an
        ingredient is left out."""
        if ingredient in self.without:
            return []
        expensive = {s.name for s in best.cost.stages if s.seconds > self.worth * best.cost.seconds}
        return [s.name for s in self.problem.graph.stages if s.name in expensive]

    def _may_matter(self, best: Candidate) -> Callable[[Collection[str]], bool]:
        """Whether a change of some stages can be worth it: if they took no time at all, would that be seen?"""
        seconds = _by_stage(best)
        return lambda names: sum(seconds.get(n, 0.0) for n in names) >= self.worth * best.cost.seconds

    def _in_even_strips(self, best: Candidate) -> Candidate:
        """The schedule with expensive stages in strips of other lengths, where that is cheaper at all."""
        for name in self._expensive(best, "strips"):
            for schedule in even_strips(self.problem, best.schedule, name):
                best = self._if_cheaper(best, f"{best.name}, {name}: even strips", schedule, EQUAL_COST)
        return best

    def _filling_lines(self, best: Candidate) -> Candidate:
        """The schedule with memory-bound outputs in vectors that fill cache lines, where that is not more expensive. If
        nothing else is computed, and inputs are larger, longer vectors of these arrive later (`mask` takes 3 % longer;
        `sobel` gains 8 %)."""
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
        """Whether outputs are as many bytes as inputs."""
        graph, points = self.problem.graph, self.problem.facts.points
        read = sum(points(i.name) * i.dtype.bytes for i in graph.inputs)
        written = sum(points(name) * t.bytes for name in graph.output for t in graph.stage[name].dtypes)
        return written >= read

    def _in_tiles(self, best: Candidate) -> Candidate:
        """The schedule with expensive stages that rotate pictures in tiles, where these are not much more work. The
        cost model does not see what they save."""
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
        """The schedule with expensive stages that transpose pictures in tiles of copies. The cost model does not see
        what they save."""
        for name in self._expensive(best, "transposes"):
            schedule = by_copies(self.problem, best.schedule, name)
            if schedule is not None:
                best = self.candidates.candidate(f"{best.name}, {name}: tiles of copies", schedule) or best
        return best

    def _with_siblings(self, best: Candidate) -> Candidate:
        """The schedule with stages that read the same values in shared loops, where that is cheaper at all."""
        may_matter = self._may_matter(best)
        for chains in siblings(self.problem, best.schedule) if "siblings" not in self.without else ():
            if may_matter([c.name for c in chains]):
                name = f"{best.name}, {chains[0].name}: loops shared with siblings"
                best = self._if_cheaper(best, name, best.schedule.replace(*chains), EQUAL_COST)
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


def _predicted(best: Candidate) -> dict[str, float]:
    """The predicted seconds, unless data decide them."""
    return {"predicted seconds": best.cost.seconds} if isfinite(best.cost.seconds) else {}


def _work(candidate: Candidate) -> float:
    """The seconds of all cores without memory traffic."""
    causes = candidate.cost.causes
    return causes.seconds - causes.traffic


def _gain(mine: Candidate, other: Candidate, names: Collection[str]) -> float:
    """The seconds by which some stages are cheaper in another schedule."""
    before, after = _by_stage(mine), _by_stage(other)
    return sum(before.get(n, 0.0) - after.get(n, 0.0) for n in names)


def _by_stage(candidate: Candidate) -> dict[str, float]:
    """What each stage costs; inlined ones cost nothing."""
    return {s.name: s.seconds for s in candidate.cost.stages}
