"""Pantile as a contender: an app's pipeline under a schedule by name, compiled and bound to its arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pantile as pt

from ..apps import App
from .contender import Array, Label, seconds

SYSTEM = "pantile"


Shapes = Mapping[str, tuple[int, ...]]


def _expert(app: App, pipeline: pt.Pipeline, _: Shapes) -> pt.Schedule:
    return app.expert(pipeline.options.target.vector_bits)


def _default(app: App, pipeline: pt.Pipeline, _: Shapes) -> pt.Schedule:
    return pt.Schedule()


def _strategy(name: str, app: App, pipeline: pt.Pipeline, shapes: Shapes) -> pt.Schedule:
    return pipeline.with_schedule(name, estimates=shapes).schedule


# What finds a schedule for inputs of such shapes, by the name it is asked for.
SCHEDULES: dict[str, Callable[[App, pt.Pipeline, Shapes], pt.Schedule]] = {
    "expert": _expert,
    "default": _default,
    **{name: partial(_strategy, name) for name in pt.autoschedule.STRATEGIES},
}


@dataclass(frozen=True)
class PantileContender:
    """A compiled pipeline that writes into the same output arrays at every call."""

    label: Label
    schedule_s: float
    compile_s: float
    passes_s: Mapping[str, float]
    pipeline: pt.Pipeline
    inputs: Mapping[str, Array]
    results: tuple[Array, ...]
    differs: str | None = None

    def outputs(self) -> tuple[Array, ...]:
        """Run, and return the results."""
        self._run()
        return self.results

    def time(self, calls: int) -> list[float]:
        """Run once to warm up, then `calls` times: the milliseconds of each."""
        self._run()
        return [1e3 * seconds(self._run) for _ in range(calls)]

    def close(self) -> None:
        """Nothing outlives the pipeline."""

    def _run(self) -> None:
        self.pipeline(out=self.results, num_threads=self.label.threads, **self.inputs)


def prepare(app: App, schedule: str, threads: int, inputs: Mapping[str, Array]) -> PantileContender:
    """Build, schedule and compile an app, and make its outputs."""
    start = time.perf_counter()
    unscheduled = app.build()
    built = time.perf_counter()
    chosen = SCHEDULES[schedule](app, unscheduled, {name: a.shape for name, a in inputs.items()})
    scheduled = time.perf_counter()
    pipeline = unscheduled.with_schedule(chosen).compile(**inputs)
    compiled = time.perf_counter()
    passes = pipeline.timings  # of this compilation; later ones replace them
    results = pipeline(num_threads=threads, **inputs)
    return PantileContender(
        label=Label(SYSTEM, schedule, threads),
        schedule_s=scheduled - built,
        compile_s=(built - start) + (compiled - scheduled),
        passes_s=passes,
        pipeline=pipeline,
        inputs=inputs,
        results=results if isinstance(results, tuple) else (results,),
    )


def start_seconds() -> float:
    """Start what a process starts once, LLVM and the threads, with a trivial pipeline; how long that takes."""
    (x,) = pt.vars("x")
    out = pt.Func("out")
    out[x] = x
    return seconds(pt.Pipeline(out, shape=(1,)))
