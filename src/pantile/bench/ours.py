"""Pantile as a contender: an app's pipeline under a schedule by name, compiled and bound to its arrays."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pantile as pt

from ..apps import App
from .contender import Array, Label, seconds

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


def prepare(app: App, schedule: str, threads: int, inputs: Mapping[str, Array]) -> PantileContender:
    """Build, schedule and compile an app, and make its outputs."""
    start = time.perf_counter()
    unscheduled = app.build()
    built = time.perf_counter()
    chosen = app.schedule(schedule, unscheduled.options.target)
    pipeline = unscheduled.with_schedule(chosen, estimates=inputs)
    scheduled = time.perf_counter()
    pipeline.compile(**inputs)
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
    return seconds(pt.Pipeline(out, shape=(1,), schedule="plain"))
