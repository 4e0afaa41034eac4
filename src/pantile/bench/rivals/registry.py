"""The rivals by name: which apps and schedules each has, and how one of its programs becomes a contender."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from ..contender import Array, Contender, Label, Unavailable
from . import halide


@dataclass(frozen=True)
class Task:
    """What a rival is asked to compute, and how."""

    app: str
    schedule: str
    threads: int
    inputs: Mapping[str, Array]
    output_shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Rival:
    """Another system. `enter` and `require` raise `Unavailable`."""

    schedules: tuple[str, ...]
    apps: frozenset[str]
    require: Callable[[], object]  # complains if the system is not installed
    enter: Callable[[Task], Contender]


class HalideContender:
    """A Halide program in a process of its own."""

    def __init__(self, task: Task) -> None:
        """Start the process and compile."""
        self.label = Label("halide", task.schedule, task.threads)
        self._worker = halide.HalideRival(task.threads)
        (shape,) = task.output_shapes
        schedule = cast(halide.Schedule, task.schedule)
        try:
            preparation = self._worker.prepare(task.app, schedule, task.inputs, shape)
        except halide.HalideError as error:
            self.close()
            raise Unavailable(str(error)) from error
        self.schedule_s = preparation.schedule_s
        self.compile_s = preparation.compile_s

    def outputs(self) -> tuple[Array, ...]:
        """Run, and return the results."""
        try:
            return (self._worker.result(),)
        except halide.HalideError as error:
            raise Unavailable(str(error)) from error

    def time(self, calls: int) -> Sequence[float]:
        """Run once to warm up, then `calls` times: the milliseconds of each, measured in its process."""
        return self._worker.time(calls).runs_ms

    def close(self) -> None:
        """End the process."""
        self._worker.close()


def _require_halide() -> None:
    try:
        halide.find_halide_python()
    except halide.HalideError as error:
        raise Unavailable(str(error)) from error


RIVALS: dict[str, Rival] = {
    "halide": Rival(get_args(halide.Schedule), halide.apps(), _require_halide, HalideContender),
}
