"""What calling a compiled pipeline costs beyond its kernel, in microseconds.

The kernel's time grows with the number of pixels; checking and passing the arguments does not. So the same pipeline
is called on images of 64 rows and of several widths from 64 on, and a line is fitted to the fastest call at each
width: its value at width zero is the overhead. What the kernel spends whatever the width is counted in, so that the
true overhead is no larger.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import pantile as pt

from ..apps import App
from .contender import seconds

ROWS = 64
WIDTHS = (64, 128, 192, 256)
ROUNDS = 20
CALLS = 50


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
