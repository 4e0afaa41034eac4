"""Timing in turn: every round gives each contender a slice of a few calls, so that all see the same machine.

The first calls of a slice warm up what the others have cooled down and are not counted. Rounds go through the
contenders forwards and backwards in turn: nobody always follows the same neighbour.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .contender import Contender, Unavailable

SLICE_MS = 20.0
SLOW_MS = 500.0  # nobody makes more calls in a slice than fit into this, beyond the first
CALLS = (3, 100)  # at least and at most in a slice
LEAST_ROUNDS = 5


@dataclass(frozen=True)
class Limit:
    """When to stop: after a number of rounds, or after so many seconds per contender if no number is given."""

    rounds: int | None
    seconds_each: float = 2.0
    most_seconds: float = 8.0  # a contender that has run for so long, in two rounds or more, sits out the others

    def reached(self, rounds: int, seconds: float, contenders: int) -> bool:
        """Whether to stop now."""
        if self.rounds is not None:
            return rounds >= self.rounds
        return rounds >= LEAST_ROUNDS and seconds >= self.seconds_each * contenders

    def sits_out(self, rounds: int, seconds: float) -> bool:
        """Whether a contender has been timed long enough, though others have not."""
        return self.rounds is None and rounds >= 2 and seconds >= self.most_seconds


@dataclass
class Runner:
    """A contender and its times so far; none, if it could not run."""

    contender: Contender
    runs_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    trial_ms: float = math.inf
    failure: Unavailable | None = None

    def time(self, calls: int) -> Sequence[float]:
        """Some calls; not a single one once it has failed."""
        if self.failure:
            return []
        start = time.perf_counter()
        try:
            return self.contender.time(calls)
        except Unavailable as failure:
            self.failure = failure
            self.runs_ms.clear()
            return []
        finally:
            self.seconds += time.perf_counter() - start


def race(contenders: Sequence[Contender], limit: Limit, progress: Callable[[int], None]) -> list[Runner]:
    """Time all of them; `progress` is told how many rounds are done."""
    runners = [Runner(c) for c in contenders]
    calls = calls_per_slice(runners)
    start, rounds = time.perf_counter(), 0
    while not limit.reached(rounds, time.perf_counter() - start, len(runners)):
        for runner in runners if rounds % 2 == 0 else reversed(runners):
            if not limit.sits_out(rounds, runner.seconds):
                runner.runs_ms += runner.time(min(calls, max(1, int(SLOW_MS / runner.trial_ms))))
        rounds += 1
        progress(rounds)
    return runners


def calls_per_slice(runners: Sequence[Runner]) -> int:
    """How many calls every contender makes in a slice, which the fastest fills: a minimum of more calls is smaller."""
    for runner in runners:
        runner.trial_ms = max(min(runner.time(1), default=math.inf), 1e-6)
    least, most = CALLS
    return max(least, min(most, math.ceil(SLICE_MS / min(r.trial_ms for r in runners))))
