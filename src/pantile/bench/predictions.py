"""Predicted and measured times of many schedules of each app: does the cost model put them in the right order?

Each app runs under schedules of its own and of strategies, and under random changes of these. On CPUs, sizes are such
that a run takes milliseconds on one thread, in seconds of the processor, so that other processes disturb little.

A change takes another factor for a split, a vector or an unrolled loop, or another place for a stage; one that is not
legal is not made.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

import pantile as pt

from ..apps import App
from .console import Console
from .plot import matplotlib
from .result import aligned

ROUNDS = 3  # in which all schedules of an app run in turn, so that what else happens then slows down all of them
RUNS, MOST_RUNS = 2, 8  # of each schedule in a round
ENOUGH_S = 0.06  # of running it
FAR = 2.0  # a prediction is near that is off by less than this factor
WIDE = 50.0  # times as long as the shortest: times that only powers of ten are marked for
LONGEST_S = 2.0  # what is predicted to take longer is not tried


Results = np.ndarray | tuple[np.ndarray, ...] | None
MOST_POINTS = 1 << 21  # of an input: enough to leave the caches of a core, and quick to run
SHORT = 80  # axes that are left as they are
LARGEST_VECTOR = 64
_ATTEMPTS = 40  # per schedule that is wanted
_CHANGED = ", changed"  # after the name of what was changed
_WITH_FACTORS = ("split", "tile", "vectorize", "unroll", "parallel")
_PLACES = ("compute_at", "store_at", "compute_root", "compute_inline", "store_root", "compute_with")


@dataclass(frozen=True)
class PredictionResult:
    """One schedule of an app."""

    app: str
    schedule: str
    predicted_ms: float
    measured_ms: float

    @property
    def ratio(self) -> float:
        """The prediction over what was measured."""
        return self.predicted_ms / self.measured_ms


class Runner(Protocol):
    """Runs an app where its times are measured."""

    target: str | None  # that of pipelines; None if it is the one they have
    arguments: Mapping[str, Any]  # of calls; shapes may stand for arrays

    def predicted(self, pipeline: pt.Pipeline) -> float:
        """The predicted seconds of a call."""

    def timed(self, pipeline: pt.Pipeline) -> Callable[[], float]:
        """Compile a pipeline and run it once. What is returned runs it again, and tells the seconds of a call."""


class OnOneThread:
    """Runs an app on this CPU, at a size like the one that is named."""

    target: str | None = None

    def __init__(self, app: App, size: str) -> None:
        self.arguments: Mapping[str, Any] = app.random(reduced(app.sizes[size])) | dict(app.params)
        self._out: Results = None

    def predicted(self, pipeline: pt.Pipeline) -> float:
        return pipeline.predict(num_threads=1, **self.arguments).seconds

    def timed(self, pipeline: pt.Pipeline) -> Callable[[], float]:
        self._out = pipeline(num_threads=1, out=self._out, **self.arguments)
        return partial(_seconds, pipeline, self.arguments, self._out)


def compare(apps: Sequence[App], count: int, console: Console, on: Callable[[App], Runner]) -> list[PredictionResult]:
    """So many schedules of each app."""
    results: list[PredictionResult] = []
    for app in console.each(apps):
        console.begin(f"{app.name}: making inputs")
        runner = on(app)
        ready: list[tuple[str, float, Callable[[], float]]] = []
        for how, pipeline in variations(app, runner.arguments, count, runner.target):
            console.begin(f"{app.name}: {how} ({len(ready) + 1} of {count})")
            try:
                predicted = runner.predicted(pipeline)
                if predicted <= LONGEST_S:
                    ready.append((how, predicted, runner.timed(pipeline)))
            except pt.PantileError as error:
                if not (how.endswith(_CHANGED) and isinstance(error, pt.UserError)):  # not every change is legal
                    console.error(f"{app.name}: {how}: {error}")
        times: list[list[float]] = [[] for _ in ready]
        for number_of_round in range(1, ROUNDS + 1):
            console.begin(f"{app.name}: round {number_of_round} of {ROUNDS}")
            for k, (_, _, seconds) in enumerate(ready):
                times[k].append(seconds())
        mine = [
            PredictionResult(app.name, how, 1e3 * p, 1e3 * min(t)) for (how, p, _), t in zip(ready, times, strict=True)
        ]
        results += mine
        if mine:
            console.done(" ".join(_row(app.name, mine)))
    return results


def _seconds(pipeline: pt.Pipeline, arguments: Mapping[str, Any], out: Results) -> float:
    """Of the processor, at best."""
    times: list[float] = []
    while len(times) < RUNS or (sum(times) < ENOUGH_S and len(times) < MOST_RUNS):
        start = time.process_time()
        pipeline(num_threads=1, out=out, **arguments)
        times.append(time.process_time() - start)
    return min(times)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """The correlation of ranks: 1 if both put everything in the same order."""
    if len(a) < 2 or len(set(a)) < 2 or len(set(b)) < 2:
        return 1.0
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def regret(results: Sequence[PredictionResult]) -> float:
    """How much longer the schedule takes that is predicted to be the fastest than the one that is."""
    chosen = min(results, key=lambda r: r.predicted_ms)
    return chosen.measured_ms / min(r.measured_ms for r in results)


def _ranks(values: Sequence[float]) -> list[float]:
    """Equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [(ordered.index(v) + len(ordered) - 1 - ordered[::-1].index(v)) / 2 for v in values]


def table(results: Sequence[PredictionResult]) -> Iterator[str]:
    """A line per app, and one for all."""
    rows = [["app", "schedules", "spearman", "regret", "within 2x", "median", "least", "most"]]
    apps = list(dict.fromkeys(r.app for r in results))
    each = {app: [r for r in results if r.app == app] for app in apps}
    rows += [_row(app, of) for app, of in each.items()]
    if len(apps) > 1:
        mean = sum(float(row[2]) for row in rows[1:]) / len(apps)
        worst = max(map(regret, each.values()))
        rows.append(["all", str(len(results)), f"{mean:.2f}", f"{worst:.2f}", *_row("", results)[4:]])
    yield from aligned(rows, text_columns=1)
    yield "regret: the time of what is predicted to be fastest, over that of what is"
    yield "median, least, most: of predicted over measured times; of all: the mean of spearman, the largest regret"


def _row(name: str, results: Sequence[PredictionResult]) -> list[str]:
    ratios = [r.ratio for r in results]
    near = sum(1 / FAR < r < FAR for r in ratios) / len(ratios)
    correlation = spearman([r.predicted_ms for r in results], [r.measured_ms for r in results])
    ends = [f"{x:.2f}" for x in (median(ratios), min(ratios), max(ratios))]
    return [name, str(len(results)), f"{correlation:.2f}", f"{regret(results):.2f}", f"{100 * near:.0f} %", *ends]


def draw(path: Path, results: Sequence[PredictionResult], caption: str) -> None:
    """A point per schedule, a panel per app; between the dashed lines a prediction is near."""
    pyplot, ticker = matplotlib()
    apps = list(dict.fromkeys(r.app for r in results))
    columns = min(4, len(apps))
    rows = -(-len(apps) // columns)
    figure, panels = pyplot.subplots(
        rows, columns, figsize=(3 * columns, 3 * rows), layout="constrained", squeeze=False
    )
    for panel, app in zip(panels.flat, apps, strict=False):
        mine = [r for r in results if r.app == app]
        low, high = (f(x for r in mine for x in (r.predicted_ms, r.measured_ms)) for f in (min, max))
        ends = [low / 1.2, high * 1.2]
        panel.plot(ends, ends, color="black", linewidth=0.8)
        for factor in (1 / FAR, FAR):
            panel.plot(ends, [factor * e for e in ends], color="#999999", linewidth=0.8, linestyle="--")
        panel.scatter([r.measured_ms for r in mine], [r.predicted_ms for r in mine], s=9, color="#c1440e")
        panel.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        steps = (1, 2, 5) if high < WIDE * low else (1,)  # of ten, as many as there is room for
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(ticker.LogLocator(subs=steps))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(ticker.NullLocator())
        panel.set_title(f"{app}: {_row(app, mine)[2]}", fontsize=9)
    for panel in panels.flat[len(apps) :]:
        panel.axis("off")
    figure.supxlabel("measured, ms")
    figure.supylabel("predicted, ms")
    figure.suptitle(caption, fontsize=9, color="#555555")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def reduced(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Shapes like these, but so small that runs are short: long axes are halved, of all inputs alike."""
    result = dict(shapes)
    while max(map(prod, result.values())) > MOST_POINTS:
        smaller = {name: tuple(n // 2 if n > SHORT else n for n in shape) for name, shape in result.items()}
        if smaller == result:
            break
        result = smaller
    return result


def variations(
    app: App, arguments: Mapping[str, Any], wanted: int, target: str | None = None
) -> Iterator[tuple[str, pt.Pipeline]]:
    """So many pipelines under different schedules, each with the name of the one it is a change of."""
    draw = random.Random(f"{app.name} 0")
    plain = app.build() if target is None else app.build().with_options(target=target)
    on_gpu = plain.options.target.has_blocks
    strategies = pt.autoschedule.STRATEGIES.items()
    named = [n for n, s in strategies if (s.for_gpus if on_gpu else s.for_cpus) and not s.measures]
    bases: list[tuple[str, pt.Pipeline]] = []
    seen: set[pt.Schedule] = set()
    for how in dict.fromkeys(["expert" if on_gpu else app.called("expert"), "plain", *named]):
        p = plain.with_schedule(app.schedule(how, plain.options.target), estimates=arguments)
        if p.schedule not in seen:
            seen.add(p.schedule)
            bases.append((how, p))
    yield from bases
    for _ in range(_ATTEMPTS * wanted):
        if len(seen) >= wanted:
            return
        how, p = draw.choice(bases)
        schedule = p.schedule
        for _ in range(draw.choice((1, 2, 3, 4, 6, 8))):
            schedule = changed(draw, schedule)
        if schedule in seen:
            continue
        try:
            other = p.with_schedule(schedule)
        except pt.PantileError:
            continue
        seen.add(schedule)
        yield f"{how}{_CHANGED}", other


def changed(draw: random.Random, schedule: pt.Schedule) -> pt.Schedule:
    """One stage of it in another way; perhaps not a legal one."""
    stage = draw.choice(list(schedule.values()))
    places = [k for k, d in enumerate(stage.directives) if d.verb in (*_WITH_FACTORS, "compute_at", "store_at")]
    k = draw.choice(places) if places and draw.random() > 0.15 else None
    if k is None or stage.directives[k].verb not in _WITH_FACTORS:
        return schedule.replace(_at_root_or_inlined(draw, stage))
    if stage.directives[k].verb == "vectorize" and draw.random() < 0.2:  # element by element
        return schedule.replace(replace(stage, directives=(*stage.directives[:k], *stage.directives[k + 1 :])))
    return schedule.replace(_resized(draw, stage, k))


def _resized(draw: random.Random, stage: pt.StageSchedule, k: int) -> pt.StageSchedule:
    """With another factor in one of its directives."""
    d = stage.directives[k]
    numbers = [j for j, a in enumerate(d.args) if isinstance(a, int)]
    if not numbers:
        return stage
    j = draw.choice(numbers)
    factor = max(1, int(int(d.args[j]) * draw.choice((0.125, 0.25, 0.5, 2, 4, 8))))
    if d.verb == "vectorize":
        factor = max(2, min(LARGEST_VECTOR, factor))
    return stage.with_factor(k, j, factor)


def _at_root_or_inlined(draw: random.Random, stage: pt.StageSchedule) -> pt.StageSchedule:
    """At root, or inlined."""
    if draw.random() < 0.3:
        return pt.on(stage.name).compute_inline()
    others = tuple(d for d in stage.directives if d.verb not in _PLACES)
    return replace(stage, directives=others).compute_root()
