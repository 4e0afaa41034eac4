"""How long strategies take to find schedules, beside what their documents report; nothing is compiled or run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pantile as pt

from ..apps import App
from .console import Console
from .result import aligned

STRATEGIES = tuple(name for name, s in pt.autoschedule.STRATEGIES.items() if s.for_cpus and not s.measures)
FOR_GPUS = tuple(name for name, s in pt.autoschedule.STRATEGIES.items() if s.for_gpus and not s.measures)
UNSEARCHED = {"expert": "written by hand", "plain": "the same for all machines and sizes"}
QUICK_S = 0.5  # what takes less is tried again: the best of three counts

# Seconds as printed, by strategy and app: Table 1 of halide-autoscheduler; Table 4.5 of sioutas-thesis, at its sizes.
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "greedy": {
        "unsharp": 0.020, "harris": 0.021, "camera_pipe": 0.650, "nl_means": 0.049, "max_filter": 0.015,
        "interpolate": 2.6, "local_laplacian": 3.9, "lens_blur": 55.0, "bilateral_grid": 0.026, "hist_eq": 0.002,
        "conv_layer": 0.009, "vgg16": 6.9, "matmul": 0.001,
    },
    "kernel": {
        "conv_layer": 7.604, "doitgen": 0.153, "matmul": 0.006, "mm3": 0.006, "gemm": 0.006, "trmm": 0.005,
        "syrk": 0.009, "syr2k": 0.012, "tpm": 0.002, "tp": 0.002, "copy": 0.002, "mask": 0.002,
    },
}  # fmt: skip
# Table 6.3 of the thesis, which counts compilation, too; Table 2 of polymage-gpu, for the versions of PolyMage.
PUBLISHED_FOR_GPUS: Mapping[str, Mapping[str, float]] = {
    "autogpu": {
        "bilateral_grid": 24, "camera_pipe": 47, "harris": 3, "hist_eq": 4, "iir_blur": 3, "interpolate": 10,
        "local_laplacian": 21, "max_filter": 15, "unsharp": 2, "nl_means": 28, "stencil_chain": 28, "lens_blur": 51,
        "matmul": 1, "conv_layer": 2,
    },
    "polymage_gpu": {
        "unsharp_polymage": 0.05, "harris_polymage": 0.15, "bilateral_grid_polymage": 0.02, "interpolate_polymage": 10,
        "camera_pipe_polymage": 17, "pyramid_blend_polymage": 28,
    },
}  # fmt: skip


@dataclass(frozen=True)
class SchedulingTime:
    """How long a strategy took on an app, in seconds of processor time."""

    app: str
    strategy: str
    seconds: float
    published: float | None = None

    def to_json(self) -> dict[str, object]:
        """As an object of the file's "scheduling"."""
        paper = {} if self.published is None else {"published_s": self.published}
        return {"app": self.app, "schedule": self.strategy, "seconds": self.seconds, **paper}


def measure(
    apps: Sequence[App], strategies: Sequence[str], size: str, target: str | None, console: Console
) -> list[SchedulingTime]:
    """Every strategy on every app, for sizes of that name; for a GPU if a target is given, or else for this CPU."""
    results = []
    published = PUBLISHED if target is None else PUBLISHED_FOR_GPUS
    for name in strategies:
        if name in UNSEARCHED:
            console.error(f"{name} is {UNSEARCHED[name]}: there is nothing to find")
    strategies = [name for name in strategies if name not in UNSEARCHED]
    for app in console.each(apps):
        for strategy in strategies:
            console.begin(f"{app.name}: {strategy}")
            try:
                seconds = _seconds(app, strategy, app.size_called(size), target)
                results.append(SchedulingTime(app.name, strategy, seconds, published.get(strategy, {}).get(app.name)))
            except pt.PantileError as error:
                console.error(f"{app.name}: {strategy}: {error}")
    return results


def _seconds(app: App, strategy: str, size: str, target: str | None) -> float:
    pipeline = app.build()
    if target is not None:
        pipeline = pipeline.with_options(target=target)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        pipeline.with_schedule(strategy, estimates=app.sizes[size])
        best = min(best, time.process_time() - start)
        if best > QUICK_S:
            break
    return best


def table(results: Sequence[SchedulingTime]) -> Iterator[str]:
    """One line per app, one column per strategy, a published time behind ours; then the longest of each."""
    strategies = list(dict.fromkeys(r.strategy for r in results))
    cells = {(r.app, r.strategy): _cell(r.seconds, r.published) for r in results}
    rows = [["s", *strategies]]
    for app in dict.fromkeys(r.app for r in results):
        rows.append([app, *(cells.get((app, s), "") for s in strategies)])
    longest = [max((r.seconds for r in results if r.strategy == s), default=None) for s in strategies]
    rows.append(["longest", *(_cell(s, None) for s in longest)])
    yield from aligned(rows, text_columns=1)


def _cell(ours: float | None, published: float | None) -> str:
    text = "" if ours is None else f"{ours:.3f}"
    return text if published is None else f"{text} ({published:g})"
