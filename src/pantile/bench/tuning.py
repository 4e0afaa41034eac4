"""Tuning: measure the schedules that are predicted to be fast, and save the fastest for `schedule="tuned"`.

    1. What `auto` chooses runs first: others are compared with its results and its time.
    2. Then what was next best, and what each strategy proposes, in the order of predicted times.
    3. Then the best so far with factors doubled and halved, while that is faster.
    4. At the end the fastest few run in turn, so that all see the same machine; the best call counts.

The time is that of the others, and each part has its share. A schedule whose results differ does not count, and one
that would take longer to compile than there is time left is not tried. Interrupted, the best so far wins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import inf
from typing import Any

import pantile as pt

from ..tuning_results import Winner
from .agreement import disagreement
from .contender import Array, seconds, several

FINDING, PROPOSALS, NEIGHBOURS = 0.2, 0.5, 0.8  # of the time, when each part ends
PREDICTING = 0.3  # of the time for neighbours, to predict what they take
FINALISTS = 4
CLOSE = 1.15  # times the best: who may still win
WORTH = 0.01  # by which a winner must be faster than what auto chooses
SLICE_S, MOST_CALLS = 0.02, 50  # of calls in a row
LEAST_ROUNDS = 3


@dataclass
class Trial:
    """A schedule, ready to run, and its best time."""

    name: str
    schedule: pt.Schedule
    run: Callable[[], Any]
    seconds: float = inf
    wrong: str | None = None  # how its results differ

    def time(self, budget: float) -> None:
        """Some calls in a row, the first of which warms up what others have cooled down."""
        once = seconds(self.run)
        calls = max(1, min(MOST_CALLS, int(min(SLICE_S, budget) / max(once, 1e-9))))
        self.seconds = min(self.seconds, *(seconds(self.run) for _ in range(calls)))


@dataclass
class Tuning:
    """Of one pipeline, for such a call. `trying` is entered with what is being tried; `trials` are those so far."""

    pipeline: pt.Pipeline
    arguments: Mapping[str, Array | float]
    seconds: float
    threads: int
    trying: Callable[[str], AbstractContextManager[object]] = nullcontext
    clock: Callable[[], float] = time.monotonic
    tolerance: float | None = None
    off_by: int = 0

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.trials: list[Trial] = []
        self.expected: Sequence[Array] = ()
        self._seen: set[pt.Schedule] = set()

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return self.clock() - self.began

    @property
    def counted(self) -> list[Trial]:
        """Those that compute the right thing, and were timed."""
        return [t for t in self.trials if t.wrong is None and t.seconds < inf]

    @property
    def best(self) -> Trial:
        """The fastest so far; what auto chooses, unless another one is noticeably faster."""
        first = self.trials[0]
        fastest = min(self.counted, key=lambda t: t.seconds)
        return fastest if fastest.seconds < first.seconds * (1 - WORTH) else first

    def run(self) -> None:
        """Measure, until the time is over."""
        with self.trying("auto"):
            auto = self.pipeline.with_schedule("auto", estimates=self.arguments)
        self._try("auto's choice", auto.schedule, auto)
        self.began = self.clock()  # whoever runs the pipeline at all waits for what was done so far
        for _, name, schedule in sorted(self._proposals(auto), key=lambda p: p[0]):
            if schedule not in self._seen and self._is_left(PROPOSALS):
                self._try(name, schedule)
        self._climb()
        self._decide()

    def winner(self) -> Winner | None:
        """What there is to keep; None if not even the first was measured."""
        if not self.counted or self.counted[0] is not self.trials[0]:
            return None
        best, first = self.best, self.trials[0]
        return Winner(best.schedule, best.name, best.seconds, first.seconds, len(self.counted))

    # ---- the parts

    def _proposals(self, auto: pt.Pipeline) -> Iterator[tuple[float, str, pt.Schedule]]:
        """What was next best to auto, and what the strategies find that have time for it, with predicted seconds."""
        yield from ((a.seconds, a.name, a.schedule) for a in (auto.report.alternatives if auto.report else ()))
        for name, strategy in pt.autoschedule.STRATEGIES.items():
            if strategy.for_cpus and not strategy.measures and name != "auto" and self._is_left(FINDING):
                with self.trying(f"{name}'s schedule"):
                    scheduled = self.pipeline.with_schedule(name, estimates=self.arguments)
                    cost = scheduled.predict(num_threads=self.threads, **self.arguments)
                yield cost.seconds, name, scheduled.schedule

    def _climb(self) -> None:
        """Neighbours of the best, the cheapest first, as long as one is better."""
        while self._is_left(NEIGHBOURS):
            best = self.best
            for name, schedule in self._neighbours(best):
                if not self._is_left(NEIGHBOURS):
                    return
                self._try(name, schedule)
                if self.best is not best:
                    break
            else:
                return

    def _neighbours(self, best: Trial) -> Iterator[tuple[str, pt.Schedule]]:
        """By predicted time; what would be much slower is left out, and what there is no time to predict."""
        predicted = []
        until = self.elapsed + (NEIGHBOURS * self.seconds - self.elapsed) * PREDICTING
        for _, schedule in pt.autoschedule.resizings(best.schedule):
            pipeline = self._scheduled(schedule) if schedule not in self._seen and self.elapsed < until else None
            if pipeline is not None:
                predicted.append((pipeline.predict(num_threads=self.threads, **self.arguments).seconds, schedule))
        predicted.sort(key=lambda p: p[0])
        name = f"{best.name.removesuffix(', resized')}, resized"
        yield from ((name, schedule) for cost, schedule in predicted if cost < CLOSE * predicted[0][0])

    def _decide(self) -> None:
        """The fastest in turn, forwards and backwards."""
        first = self.trials[0]
        near = sorted((t for t in self.counted if t is not first), key=lambda t: t.seconds)
        finalists = [first, *(t for t in near[:FINALISTS] if t.seconds < CLOSE * self.best.seconds)]
        rounds = 0
        while len(finalists) > 1 and (rounds < LEAST_ROUNDS or self._is_left(1.0)):
            with self.trying(f"the fastest {len(finalists)} in turn"):
                for t in finalists if rounds % 2 == 0 else reversed(finalists):
                    t.time(SLICE_S)
            rounds += 1

    # ---- one schedule

    def _try(self, name: str, schedule: pt.Schedule, pipeline: pt.Pipeline | None = None) -> None:
        """Compile it, compare its results with those of the first, and time it."""
        self._seen.add(schedule)
        pipeline = pipeline or self._scheduled(schedule)
        if pipeline is None:
            return
        compiling = pipeline.predict(num_threads=self.threads, **self.arguments).compile_seconds
        if self.trials and compiling > self.seconds - self.elapsed:
            return
        with self.trying(name):
            self._measure(name, schedule, pipeline)

    def _measure(self, name: str, schedule: pt.Schedule, pipeline: pt.Pipeline) -> None:
        try:
            results = several(pipeline(num_threads=self.threads, **self.arguments))
        except pt.PantileError:
            if not self.trials:
                raise
            return
        trial = Trial(name, schedule, lambda: pipeline(num_threads=self.threads, out=results, **self.arguments))
        if not self.trials:
            self.expected = [a.copy() for a in results]
        trial.wrong = disagreement(results, self.expected, pipeline.rounding, self.tolerance, self.off_by)
        rivals = {id(t): t for t in (self.trials[0], self.best)} if self.trials else {}
        self.trials.append(trial)
        if trial.wrong is None:
            trial.time(self.seconds)
            for rival in rivals.values():  # they see the same machine, however busy it is now
                rival.time(self.seconds)

    def _scheduled(self, schedule: pt.Schedule) -> pt.Pipeline | None:
        """The pipeline under a schedule that strategies could have found; None if it is not legal."""
        try:
            return self.pipeline.with_schedule(pt.autoschedule.Given(schedule), estimates=self.arguments)
        except pt.PantileError:
            return None

    def _is_left(self, part: float) -> bool:
        return self.elapsed < part * self.seconds
