"""`pantile demo`: more local contrast for a picture, what was done, and the time compared with plain NumPy."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import reduce
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

import pantile as pt

from ..apps.app import PIXELS
from .job import arrays
from .reading import read
from .scenery import scenery
from .writing import Pixels, check_place, type_in_file, write

_RUNS = 20
_BYTES = np.dtype(np.uint8)
RADIUS = 6
STRIP, LANES = 64, 16


def run(options: Namespace) -> int:
    """Run the demo and print about it."""
    source, target, size, amount = options.input, options.output, options.size, options.amount
    check_place(target, [] if source is None else [source])
    type_in_file(target, _BYTES, 3, _BYTES)
    picture = scenery(size[1], size[0]) if source is None else arrays([read(source)], PIXELS, "the demo")[0]
    pipeline = local_contrast()
    arguments: dict[str, Any] = {"img": picture, "amount": amount}
    count = options.threads or pt.get_num_threads()
    compiling, result = _timed(lambda: pipeline(**arguments, num_threads=count))
    running = min(_timed(lambda: pipeline(**arguments, num_threads=count, out=result))[0] for _ in range(_RUNS))
    _tell(picture, source, pipeline)
    _tell_times(picture, compiling - running, pipeline.timings, running, count)
    _tell_reference(pipeline, picture, result, amount, running)
    write(target, np.concatenate([picture, result], axis=1) if options.compare else result, _BYTES)
    print(f"wrote     {target.resolve()}")
    return 0


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _tell(picture: Pixels, source: Path | None, pipeline: pt.Pipeline) -> None:
    height, width, _ = picture.shape
    what = "a picture made up for it" if source is None else str(source)
    print(f"Pantile {pt.__version__}: local contrast of {what}, {width} x {height} RGB")
    print(f"stages    {' -> '.join(s.name for s in pipeline.graph.stages)}")
    print(f"schedule  strips of {STRIP} rows run in parallel; inside one, stages are computed row by row:")
    for line in repr(pipeline.schedule).splitlines()[1:-1]:
        print(f"          {line.strip()}")


def _tell_times(picture: Pixels, compiling: float, timings: dict[str, float], running: float, threads: int) -> None:
    how = "compiled" if "llvm" in timings else "loaded from the compile cache"
    steps = sorted(timings.items(), key=lambda step: -step[1])[:3]
    detail = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in steps)
    print(f"code      {how} in {compiling:.2f} s" + (f" ({detail}, ...)" if "llvm" in timings else ""))
    speed = picture.shape[0] * picture.shape[1] / running / 1e6
    where = "1 thread" if threads == 1 else f"{threads} threads"
    print(f"ran       in {1000 * running:.2f} ms on {where}, the best of {_RUNS}: {speed:.0f} MPixel/s")


def _tell_reference(pipeline: pt.Pipeline, picture: Pixels, result: Pixels, amount: float, running: float) -> None:
    """Evaluate the pipeline's definition in NumPy, and print its time and the differences of the results."""
    seconds, expected = _timed(lambda: pipeline.reference(img=picture, amount=amount))
    most = int(np.abs(expected.astype(int) - result).max())
    levels = f"{most} of 255 levels" if most else "none"
    print(f"NumPy     in {1000 * seconds:.0f} ms, {seconds / running:.0f} times as long; largest difference: {levels}")


def local_contrast() -> pt.Pipeline:
    """img[y, x, c] -> out[y, x, c] of the same size; edge pixels repeat outside."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "uint8", ndim=3)
    amount = pt.Param("amount", "float32", default=0.8)
    src = pt.edge(img, axes=(0, 1))

    gray, blur_y, blur_x = pt.Func("gray"), pt.Func("blur_y"), pt.Func("blur_x")
    gray[y, x] = 0.299 * src[y, x, 0] + 0.587 * src[y, x, 1] + 0.114 * src[y, x, 2]
    blur_y[y, x] = weighted([gray[y + k, x] for k in range(-RADIUS, RADIUS + 1)])
    blur_x[y, x] = weighted([blur_y[y, x + k] for k in range(-RADIUS, RADIUS + 1)])

    boost, out = pt.Func("boost"), pt.Func("out")
    detail = gray[y, x] - blur_x[y, x]
    boost[y, x] = amount * detail / (1 + pt.abs(detail) / 64)  # less at strong edges, which would show halos
    out[y, x, c] = pt.rounding_cast("uint8", img[y, x, c] + boost[y, x])
    return pt.Pipeline(out, shape=(img.shape[0], img.shape[1], 3), schedule=schedule(), name="local_contrast")


def weighted(values: Sequence[pt.Expr]) -> pt.Expr:
    """The mean of values, weighted by a bell curve."""
    weights = [exp(-2 * ((k - RADIUS) / RADIUS) ** 2) for k in range(len(values))]
    return reduce(lambda a, b: a + b, (v * (w / sum(weights)) for v, w in zip(values, weights, strict=True)))


def schedule() -> pt.Schedule:
    """Strips of rows run in parallel; inside of a strip, rows of gray slide, and everything else stays in cache."""
    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "row", STRIP)
        .vectorize("x", LANES)
        .reorder("strip", "row", "x", "c", "x_v")
        .unroll("c")
        .parallel("strip"),
        pt.on("boost").compute_at("out", "row").vectorize("x", LANES),
        pt.on("blur_x").compute_inline(),
        pt.on("blur_y").compute_at("out", "row").vectorize("x", LANES),
        pt.on("gray").store_at("out", "strip").compute_at("out", "row").vectorize("x", LANES),
    )
