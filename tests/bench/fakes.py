"""A small app and rivals that need nothing installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pantile as pt
from pantile.apps import App
from pantile.bench.contender import Array, Label, Rival, Task, Unavailable


def build() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img = pt.Input("img", "int32", ndim=2)
    twice = pt.Func("twice")
    twice[y, x] = 2 * img[y, x]
    return pt.Pipeline(twice)


def make(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.integers(0, 100, shape, dtype=np.int32)


TWICE = App(
    "twice",
    "twice the image",
    build,
    lambda target, cores: pt.Schedule(pt.on("twice").vectorize("x", target.lanes(32))),
    {"small": {"img": (5, 7)}, "paper": {"img": (9, 11)}},
    make,
)


class FakeContender:
    """Computes what it is told to, takes as long as it is told to, and writes down its calls."""

    def __init__(self, label: Label, ms: float, outputs: tuple[Array, ...] = (), log: list[Any] | None = None) -> None:
        self.label, self.ms, self._outputs, self.log = label, ms, outputs, [] if log is None else log
        self.schedule_s, self.compile_s = 0.25, 0.5
        self.closed = False
        self.differs: str | None = None
        self.details: dict[str, float] = {}
        self.fails_after: int | None = None

    def outputs(self) -> tuple[Array, ...]:
        return self._outputs

    def time(self, calls: int) -> list[float]:
        self.log.append((self.label.schedule, calls))
        if self.fails_after is not None and sum(name == self.label.schedule for name, _ in self.log) > self.fails_after:
            raise Unavailable("it broke")
        return [self.ms] * calls

    def close(self) -> None:
        self.closed = True


def rival(
    compute: Callable[[Array], Array], schedules: tuple[str, ...] = ("best",)
) -> tuple[Rival, list[FakeContender]]:
    """A rival that has the app, and its contenders as they enter."""
    entered: list[FakeContender] = []

    def enter(task: Task) -> FakeContender:
        label = Label("fake", task.schedule, task.threads)
        entered.append(FakeContender(label, 4.0, (compute(task.inputs["img"]),)))
        return entered[-1]

    return Rival(schedules, frozenset({"twice"}), lambda: None, enter), entered


def unavailable(reason: str) -> Callable[..., Any]:
    def complain(*_: object) -> None:
        raise Unavailable(reason)

    return complain
