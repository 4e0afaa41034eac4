"""Timing on a GPU: of many calls at once, as a single one is too short for any clock.

Nothing here needs more than the standard library.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

SAMPLE_MS = 10.0  # of calls one after the other
MOST_CALLS = 1000  # in a sample
MOST_SAMPLES = 5  # at a stretch
CAPTURED_CALLS = 10  # in a graph


class GpuClock(Protocol):
    """What times work on a GPU."""

    def wait(self) -> None:
        """Until it has nothing to do."""

    def elapsed_ms(self, work: Callable[[], object], calls: int) -> float:
        """How long so many calls take there."""

    def captured(self, work: Callable[[], object], calls: int) -> Callable[[], object]:
        """So many calls as one graph."""


class LibraryDevice(GpuClock, Protocol):
    """A library's view of the GPU."""

    def put(self, array: Any) -> Any:
        """A copy there."""

    def get(self, array: Any) -> Any:
        """A copy on the host."""


class TimedWork:
    """Some work on a device, timed in both ways. A graph that cannot be captured is not tried again; `why` says why."""

    def __init__(self, device: GpuClock, work: Callable[[], object]) -> None:
        self._device, self._work = device, work
        self._replay: Callable[[], object] | None = None
        self.why: str | None = None

    def answer(self, repeat: int) -> dict[str, Any]:
        """In both ways, as an answer's fields."""
        called, captured = self.called_ms(repeat), self.captured_ms(repeat)
        return {"runs_ms": called, "captured_ms": captured, "no_graph": self.why}

    def called_ms(self, repeat: int) -> list[float]:
        """Milliseconds of a call among others."""
        return per_call_ms(lambda calls: self._device.elapsed_ms(self._work, calls), repeat)

    def captured_ms(self, repeat: int) -> list[float]:
        """Milliseconds of a call in a graph; none where there is no graph."""
        if self._replay is None and self.why is None:
            try:
                self._replay = self._device.captured(self._work, CAPTURED_CALLS)
                self._replay()
                self._device.wait()
            except Exception as error:  # Whatever a library does that cannot be captured, it can still be called.
                self._replay, self.why = None, f"{type(error).__name__}: {error}"
        replay = self._replay
        if replay is None:
            return []
        times = per_call_ms(lambda calls: self._device.elapsed_ms(replay, calls), repeat)
        return [ms / CAPTURED_CALLS for ms in times]


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
