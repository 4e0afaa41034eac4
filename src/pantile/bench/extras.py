"""Further numbers of a result: the memory that compiling takes, the overhead of a call, and the least time of one.

Memory is the peak of a process that does nothing else. The overhead is what calling a compiled pipeline costs beyond
its kernel, in microseconds. The kernel's time grows with the number of pixels; checking and passing the arguments does
not. So the same pipeline is called on images of 64 rows and of several widths from 64 on, and a line is fitted to the
fastest call at each width: its value at width zero is the overhead. What the kernel spends whatever the width is
counted in, so that the true overhead is no larger.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pantile as pt

from ..apps import APPS, App
from ..cost_model import arithmetic_seconds
from .contender import Unavailable, seconds

STATUS = Path("/proc/self/status")
MACHINE = Path("/proc/meminfo")
ROWS = 64
WIDTHS = (64, 128, 192, 256)
ROUNDS = 20
CALLS = 50


def peak_megabytes(app: str, schedule: str, size: str) -> float:
    """Of a new process that builds, schedules and compiles the app, with nothing cached and no arrays."""
    if app not in APPS:
        raise Unavailable("it is measured for apps, not for pipelines in files")
    program = f"from {__name__} import main; main(*{(app, schedule, size)!r})"
    environment = {**os.environ, "PANTILE_CACHE_DIR": os.devnull, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    if finished.returncode != 0:
        raise Unavailable(finished.stderr.strip().splitlines()[-1])
    return float(finished.stdout) / 1e6


def main(app: str, schedule: str, size: str) -> None:
    """Compile, and print the bytes."""
    pipeline = APPS[app].build()
    chosen = APPS[app].schedule(schedule, pipeline.options.target)
    pipeline.with_schedule(chosen).compile(**APPS[app].sizes[size])
    print(peak_bytes())


def peak_bytes() -> int:
    """The most memory this process has held; `ru_maxrss` includes that of the process it was forked from."""
    kilobytes = _kilobytes(STATUS, "VmHWM")
    if kilobytes is not None:
        return kilobytes << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def free_bytes() -> int | None:
    """What processes can still get, where the system tells."""
    kilobytes = _kilobytes(MACHINE, "MemAvailable")
    return None if kilobytes is None else kilobytes << 10


def _kilobytes(file: Path, key: str) -> int | None:
    """The number behind `key:` in one of Linux's files."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{key}:")), None)


def overhead_us(app: App, pipeline: pt.Pipeline, threads: int) -> float:
    """The time of a call on an image of no width."""
    callers = [_caller(app, pipeline, threads, width) for width in WIDTHS]
    best = [float("inf")] * len(callers)
    for _ in range(ROUNDS):
        for k, call in enumerate(callers):
            best[k] = min(best[k], *(seconds(call) for _ in range(CALLS)))
    _, intercept = np.polyfit(WIDTHS, best, 1)
    return 1e6 * float(intercept)


def _caller(app: App, pipeline: pt.Pipeline, threads: int, width: int) -> Callable[[], object]:
    """A compiled call on images of this width: the last two axes of an app's inputs are rows and columns."""
    rng = np.random.default_rng(0)
    shapes = {name: (*shape[:-2], ROWS, width) for name, shape in app.sizes["small"].items()}
    inputs = {name: app.make(name, shape, rng) for name, shape in shapes.items()} | dict(app.params)
    out = pipeline(num_threads=threads, **inputs)
    return lambda: pipeline(out=out, num_threads=threads, **inputs)


@dataclass(frozen=True)
class Bound:
    """Milliseconds to move the bytes, and to do the operations."""

    memory_ms: float
    arithmetic_ms: float

    @property
    def ms(self) -> float:
        """Both happen at once: the longer of the two."""
        return max(self.memory_ms, self.arithmetic_ms)

    @property
    def limit(self) -> str:
        """Which of the two it is."""
        return "memory" if self.memory_ms >= self.arithmetic_ms else "arithmetic"


def bound(pipeline: pt.Pipeline, arguments: Mapping[str, object], machine: pt.machine.Cpu, threads: int) -> Bound:
    """Of a call of the pipeline on so many threads."""
    work = pipeline.work(**arguments)
    memory = work.bytes / machine.memory_bandwidth(threads)
    return Bound(1e3 * memory, 1e3 * arithmetic_seconds(work, machine, threads))
