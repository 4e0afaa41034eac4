"""Pantile as a contender on a GPU: arrays are there before, and calls are timed by events, as those of rivals are."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

import pantile as pt

from ..apps import App
from ..runtime.cuda import graphs
from .contender import ON_GPU, Array, Label, Unavailable, several
from .ours import SYSTEM, scheduled
from .rivals.gpu_timing import LibraryDevice, TimedWork, better, least

DEVICES = {"torch": "torch_device", "cupy": "cupy_device"}  # whose arrays are given to pipelines, if installed


@dataclass(frozen=True)
class GpuContender:
    """A compiled pipeline that writes into the same arrays on the GPU at every call."""

    label: Label
    schedule_s: float
    compile_s: float
    device: LibraryDevice
    work: Callable[[], object]
    on_device: tuple[Any, ...]  # the results
    differs: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def results(self) -> tuple[Array, ...]:
        """Copies of the results."""
        self.device.wait()
        return tuple(self.device.get(a) for a in self.on_device)

    def outputs(self) -> tuple[Array, ...]:
        """Run, and return the results."""
        self.work()
        return self.results

    def time(self, calls: int) -> Sequence[float]:
        """Samples of many warm calls: the milliseconds of one in each, called or captured, whichever is faster."""
        called, captured = self._timed.called_ms(calls), self._timed.captured_ms(calls)
        with without_graphs():
            launched = self._timed.called_ms(calls)
        self.details.update(least(self.details, called_ms=called, captured_ms=captured, launched_ms=launched))
        if self._timed.why:
            self.details["no_graph"] = self._timed.why
        return better(called, captured)

    def close(self) -> None:
        """Nothing outlives the pipeline."""

    @cached_property
    def _timed(self) -> TimedWork:
        return TimedWork(self.device, self.work)


def prepare_on_gpu(app: App, schedule: str, target: str, inputs: Mapping[str, Array]) -> GpuContender:
    """Build, schedule and compile an app, and make its outputs. Compiling includes the driver's part."""
    device = library()
    given: dict[str, Any] = {name: device.put(a) if isinstance(a, np.ndarray) else a for name, a in inputs.items()}
    pipeline, build_s, schedule_s = scheduled(app, schedule, inputs, target)
    start = time.perf_counter()
    pipeline.compile(**given)
    results = several(pipeline(**given))
    device.wait()
    compile_s = build_s + time.perf_counter() - start

    def work() -> None:
        pipeline(out=results, **given)

    work()
    device.wait()
    return GpuContender(Label(SYSTEM, schedule, ON_GPU), schedule_s, compile_s, device, work, results)


class OnGpu:
    """Runs an app on the GPU, for comparing predicted times with measured ones."""

    def __init__(self, app: App, size: str, target: str) -> None:
        self.target: str | None = target
        self.device = library()
        made = app.random(app.sizes[app.size_called(size)])
        self.arguments: Mapping[str, Any] = {name: a.shape for name, a in made.items()} | dict(app.params)
        self._given = {name: self.device.put(a) for name, a in made.items()} | dict(app.params)
        self._out: tuple[Any, ...] | None = None

    def predicted(self, pipeline: pt.Pipeline) -> float:
        return pipeline.predict(**self.arguments).seconds

    def timed(self, pipeline: pt.Pipeline) -> Callable[[], float]:
        out = self._out = several(pipeline(out=self._out, **self._given))
        self.device.wait()
        timed = TimedWork(self.device, lambda: pipeline(out=out, **self._given))
        return lambda: min(better(timed.called_ms(1), timed.captured_ms(1))) / 1e3


def library() -> Any:
    """Who makes arrays on the GPU and has events."""
    for package, module in DEVICES.items():
        if find_spec(package) is not None:
            return importlib.import_module(f".rivals.{module}", __package__)
    raise Unavailable("arrays on a GPU are those of PyTorch or CuPy; install one with `pip install torch`")


@contextmanager
def without_graphs() -> Iterator[None]:
    """Calls launch their kernels one by one."""
    before, graphs.enabled = graphs.enabled, False
    try:
        yield
    finally:
        graphs.enabled = before
