"""Timing in turn: every round gives each contender a slice of a few calls, so that all see the same machine.

The first calls of a slice warm up what the others have cooled down and are not counted. Rounds go through the
contenders forwards and backwards in turn: nobody always follows the same neighbour.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .contender import Contender

SLICE_MS = 20.0
CALLS = (3, 100)  # at least and at most in a slice
LEAST_ROUNDS = 5


@dataclass(frozen=True)
class Limit:
    """When to stop: after a number of rounds, or after so many seconds per contender if no number is given."""

    rounds: int | None
    seconds_each: float = 2.0

    def reached(self, rounds: int, seconds: float, contenders: int) -> bool:
        """Whether to stop now."""
        if self.rounds is not None:
            return rounds >= self.rounds
        return rounds >= LEAST_ROUNDS and seconds >= self.seconds_each * contenders


def race(contenders: Sequence[Contender], limit: Limit, progress: Callable[[int], None]) -> list[list[float]]:
    """The milliseconds of every call, per contender; `progress` is told how many rounds are done."""
    runs: list[list[float]] = [[] for _ in contenders]
    calls = calls_per_slice(contenders)
    start, rounds = time.perf_counter(), 0
    while not limit.reached(rounds, time.perf_counter() - start, len(contenders)):
        numbered = list(enumerate(contenders))
        for k, contender in numbered if rounds % 2 == 0 else reversed(numbered):
            runs[k] += contender.time(calls)
        rounds += 1
        progress(rounds)
    return runs


def calls_per_slice(contenders: Sequence[Contender]) -> int:
    """The same for all, as a minimum of more calls is smaller: enough for the fastest one to fill a slice."""
    fastest = min(min(c.time(1)) for c in contenders)
    least, most = CALLS
    return max(least, min(most, math.ceil(SLICE_MS / max(fastest, 1e-6))))
