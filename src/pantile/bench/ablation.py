"""What each ingredient of `auto` contributes: its time without it over its time with it, app by app.

Ingredients are what strategies propose, crossing and resizing (`pt.autoschedule.Auto.without`), and algebra, which goes
before all of them. Where the same schedule comes out without one, nothing is measured: it contributes nothing there.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pantile as pt

from ..apps import App
from ..autoschedule.auto import INGREDIENTS
from .agreement import disagreement
from .console import Console
from .contender import Array, Label, on_a_line, several
from .ours import SYSTEM, PantileContender
from .result import aligned, two_digits
from .rounds import Limit, race

ALGEBRA = "algebra"


@dataclass(frozen=True)
class AblationResult:
    """An app: milliseconds of `auto`, and without each ingredient that changes something."""

    app: str
    ms: float
    without_ms: Mapping[str, float]

    def ratio(self, ingredient: str) -> float | None:
        """How many times as long it takes without; None if that changes nothing."""
        return self.without_ms[ingredient] / self.ms if ingredient in self.without_ms else None


def ablate(apps: Sequence[App], size: str, threads: int, limit: Limit, console: Console) -> list[AblationResult]:
    """Each app with and without each ingredient, timed in turn."""
    results = []
    for app in console.each(apps):
        console.begin(f"{app.name}: making inputs")
        inputs = {name: on_a_line(a) for name, a in app.inputs(size).items()} | dict(app.params)
        try:
            measured = _app(app, inputs, threads, limit, console)
        except pt.PantileError as error:
            console.error(f"{app.name}: {error}")
            continue
        results.append(measured)
        ratios = [f"{name} {measured.ratio(name):.2f}" for name in measured.without_ms]
        console.done(f"{app.name}: {measured.ms:.3g} ms; without: {', '.join(ratios) or 'the same'}")
    return results


def _app(app: App, inputs: Mapping[str, Array], threads: int, limit: Limit, console: Console) -> AblationResult:
    contenders: dict[str, PantileContender] = {}
    for name in ("auto", ALGEBRA, *INGREDIENTS):
        console.begin(f"{app.name}: compiling {name if name == 'auto' else f'without {name}'}")
        pipeline = _pipeline(app, name, inputs)
        first = contenders.get("auto")
        if first is not None and pipeline.schedule == first.pipeline.schedule:
            continue
        ready = _contender(pipeline, name, threads, inputs)
        rounding = pipeline.rounding
        wrong = first and disagreement(ready.results, first.results, rounding, app.tolerance, app.off_by)
        if wrong:
            console.error(f"{app.name}: without {name} results differ: {wrong}")
            continue
        contenders[name] = ready
    console.begin(f"{app.name}: timing {len(contenders)}")
    runners = race(list(contenders.values()), limit, lambda k: console.progress(f"{app.name}: round {k} done"))
    ms = {r.contender.label.schedule: min(r.runs_ms) for r in runners}
    return AblationResult(app.name, ms.pop("auto"), ms)


def _pipeline(app: App, name: str, inputs: Mapping[str, Array]) -> pt.Pipeline:
    pipeline = app.build()
    if name == ALGEBRA:
        pipeline = pipeline.with_options(algebra=False)
    without = (name,) if name in INGREDIENTS else None
    return pipeline.with_schedule(pt.autoschedule.Auto(without=without), estimates=inputs)


def _contender(pipeline: pt.Pipeline, name: str, threads: int, inputs: Mapping[str, Array]) -> PantileContender:
    results = several(pipeline(num_threads=threads, **inputs))
    return PantileContender(Label(SYSTEM, name, threads), 0.0, 0.0, {}, pipeline, inputs, results)


def table(results: Sequence[AblationResult]) -> Iterator[str]:
    """A row per app, a column per ingredient, and the geometric means."""
    names = [n for n in (ALGEBRA, *INGREDIENTS) if any(n in r.without_ms for r in results)]
    rows = [["time without / with", "auto ms", *names]]
    for r in results:
        rows.append([r.app, f"{r.ms:.3g}", *(two_digits(r.ratio(n)) for n in names)])
    if len(results) > 1:
        means = [statistics.geometric_mean([r.ratio(n) or 1.0 for r in results]) for n in names]
        rows.append(["geometric mean", "", *(f"{m:.2f}" for m in means)])
    yield from aligned(rows, text_columns=1)
    changed = {n for r in results for n in r.without_ms}
    unchanged = [n for n in (ALGEBRA, *INGREDIENTS) if n not in changed]
    everywhere = f"; so everywhere for {', '.join(unchanged)}" if unchanged else ""
    yield f"an empty cell: the same schedule without it{everywhere}"
