"""Pantile as a contender: an app's pipeline under a schedule by name, compiled and bound to its arrays."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pantile as pt

from ..apps import App
from .contender import Array, Label, seconds, several

SYSTEM = "pantile"


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
    details: Mapping[str, Any] = field(default_factory=dict)

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


def scheduled(
    app: App, schedule: str, inputs: Mapping[str, Array], target: str | None = None
) -> tuple[pt.Pipeline, float, float]:
    """The pipeline of an app under a schedule, and how many seconds it took to build it and to schedule it."""
    start = time.perf_counter()
    pipeline = app.build() if target is None else app.build().with_options(target=target)
    built = time.perf_counter()
    pipeline = pipeline.with_schedule(app.schedule(schedule, pipeline.options.target), estimates=inputs)
    return pipeline, built - start, time.perf_counter() - built


def prepare(app: App, schedule: str, threads: int, inputs: Mapping[str, Array]) -> PantileContender:
    """Build, schedule and compile an app, and make its outputs."""
    pipeline, build_s, schedule_s = scheduled(app, schedule, inputs)
    compile_s = build_s + seconds(lambda: pipeline.compile(**inputs))
    passes = pipeline.timings  # of this compilation; later ones replace them
    results = several(pipeline(num_threads=threads, **inputs))
    return PantileContender(Label(SYSTEM, schedule, threads), schedule_s, compile_s, passes, pipeline, inputs, results)


def start_seconds() -> float:
    """Start what a process starts once, LLVM and the threads, with a trivial pipeline; how long that takes."""
    (x,) = pt.vars("x")
    out = pt.Func("out")
    out[x] = x
    return seconds(pt.Pipeline(out, shape=(1,), schedule="plain"))
