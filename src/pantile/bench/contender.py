"""What takes part in a benchmark: what computes an app on given arrays and times itself, ours or a rival's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
ON_GPU = 0
_LINE = 64  # bytes of a cache line


class Unavailable(Exception):
    """A contender cannot take part; the text says why, and what to install if that helps."""


@dataclass(frozen=True)
class Label:
    """Who it is: a system, the name of one of its schedules, and a number of threads, or ON_GPU."""

    system: str
    schedule: str
    threads: int

    @property
    def on_gpu(self) -> bool:
        """Whether it runs on a GPU."""
        return self.threads == ON_GPU

    def __str__(self) -> str:
        if self.on_gpu:
            return f"{self.system} {self.schedule}"
        return f"{self.system} {self.schedule}, {self.threads} thread{'s' if self.threads > 1 else ''}"


class Contender(Protocol):
    """A compiled program for one app, holding its inputs."""

    @property
    def label(self) -> Label:
        """Who it is."""

    @property
    def schedule_s(self) -> float:
        """Seconds that finding the schedule took."""

    @property
    def compile_s(self) -> float:
        """Seconds from the program's objects to callable code, with nothing cached."""

    @property
    def differs(self) -> str | None:
        """What it computes that is not quite the app, if so: its results are then not compared."""

    @property
    def details(self) -> Mapping[str, Any]:
        """What else is known of its times by now: further keys of its JSON object."""

    def outputs(self) -> tuple[Array, ...]:
        """Run, and return the results."""

    def time(self, calls: int) -> Sequence[float]:
        """Run once to warm up, then `calls` times: the milliseconds of each."""

    def close(self) -> None:
        """Free what it holds, processes of its own among them."""


@dataclass(frozen=True)
class Task:
    """What a rival is asked to compute, and how."""

    app: str
    schedule: str
    threads: int
    inputs: Mapping[str, Array]
    outputs: tuple[Array, ...]  # of the right types and shapes; what is in them does not matter
    limit_s: float  # for compiling, and for each batch of runs


@dataclass(frozen=True)
class Rival:
    """Another system. `enter` and `require` raise `Unavailable`."""

    schedules: tuple[str, ...]
    apps: frozenset[str]
    require: Callable[[], object]  # complains if the system is not installed
    enter: Callable[[Task], Contender]


def seconds(work: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def several(results: Any) -> tuple[Array, ...]:
    """The results of a call of a pipeline, which returns a tuple only of several outputs."""
    return results if isinstance(results, tuple) else (results,)


def on_a_line(a: Array) -> Array:
    """A copy that starts on a cache line, as results do, and as the buffers of compiled rivals do."""
    memory = np.empty(a.nbytes + _LINE, np.uint8)
    copy: Array = np.ndarray(a.shape, a.dtype, memory, -memory.ctypes.data % _LINE)
    copy[...] = a
    return copy
