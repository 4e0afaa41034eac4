"""Timing on a GPU: of many calls at once, as a single one is too short for any clock.

Nothing here needs more than the standard library.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

SAMPLE_MS = 10.0  # of calls one after the other
MOST_CALLS = 1000  # in a sample
MOST_SAMPLES = 5  # at a stretch
CAPTURED_CALLS = 10  # in a graph


def per_call_ms(elapsed_ms: Callable[[int], float], repeat: int) -> list[float]:
    """The milliseconds of a call in each of so many samples, but not too many. `elapsed_ms` makes a number of calls and
    tells how long all of them take. Finding how many fill a sample warms up.
    """
    calls, ms = 1, elapsed_ms(1)
    while ms < SAMPLE_MS and calls < MOST_CALLS:
        fitting = int(calls * SAMPLE_MS / max(ms, 1e-3)) + 1
        calls = min(MOST_CALLS, max(2 * calls, fitting))
        ms = elapsed_ms(calls)
    return [elapsed_ms(calls) / calls for _ in range(min(repeat, MOST_SAMPLES))]


def better(called_ms: Sequence[float], captured_ms: Sequence[float]) -> Sequence[float]:
    """Of calls one by one, and of calls that were captured in a graph, if they could be."""
    return min((s for s in (called_ms, captured_ms) if s), key=min)


def least(before: Mapping[str, Any], **times_ms: Sequence[float]) -> dict[str, float]:
    """The least of several kinds of times so far."""
    known = {name: [*([before[name]] if name in before else []), *times] for name, times in times_ms.items()}
    return {name: min(times) for name, times in known.items() if times}
