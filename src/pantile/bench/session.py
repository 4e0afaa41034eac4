"""The benchmark of one app: prepare all contenders, check that they agree, time them in turn."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pantile as pt

from ..apps import App
from .agreement import disagreement
from .console import Console
from .contender import Array, Contender, Unavailable
from .ours import PantileContender, prepare
from .overhead import overhead_us
from .result import Result
from .rivals.registry import RIVALS, Task
from .rounds import Limit, race


@dataclass(frozen=True)
class Settings:
    """What to measure, and how."""

    schedules: tuple[str, ...]
    rivals: tuple[tuple[str, str], ...]  # system and schedule
    threads: tuple[int, ...]  # every contender runs on each of these
    size: str
    limit: Limit
    passes: bool = False
    overhead: bool = False
    check: bool = False


def measure(app: App, settings: Settings, console: Console) -> list[Result]:
    """The results of one app; what goes wrong is told to the console, and the others go on."""
    with ExitStack() as stack:
        contenders = _agreeing(app, _contenders(app, settings, console, stack), settings, console)
        if settings.check or not contenders:
            return []
        console.begin(f"{app.name}: timing {len(contenders)} contenders")
        runs = race(contenders, settings.limit, lambda n: console.progress(f"{app.name}: timing, round {n} done"))
        return [_result(app, c, ms, settings) for c, ms in zip(contenders, runs, strict=True)]


def _contenders(app: App, settings: Settings, console: Console, stack: ExitStack) -> Iterator[Contender]:
    """Ours, then the rivals, each closed with `stack`."""
    inputs = app.inputs(settings.size)
    shapes: tuple[tuple[int, ...], ...] = ()
    for ours in _ours(app, settings, inputs, console):
        shapes = tuple(a.shape for a in ours.results)
        yield from (replace(ours, label=replace(ours.label, threads=n)) for n in settings.threads)
    for system, schedule in settings.rivals if shapes else ():
        if app.name not in RIVALS[system].apps:
            console.note(f"{system} has no {app.name}")
            continue
        for threads in settings.threads:
            console.begin(f"{app.name}: compiling {system} {schedule}")
            try:
                rival = RIVALS[system].enter(Task(app.name, schedule, threads, inputs, shapes))
            except Unavailable as reason:
                console.note(f"{app.name}: {system} {schedule} skipped: {reason}")
                continue
            stack.callback(rival.close)
            yield rival


def _ours(app: App, settings: Settings, inputs: dict[str, Array], console: Console) -> Iterator[PantileContender]:
    """One per schedule, on the most threads."""
    for schedule in settings.schedules:
        console.begin(f"{app.name}: compiling {schedule}")
        try:
            yield prepare(app, schedule, max(settings.threads), inputs)
        except pt.PantileError as error:
            console.error(f"{app.name}: {schedule}: {error}")


def _agreeing(app: App, contenders: Iterator[Contender], settings: Settings, console: Console) -> list[Contender]:
    """Those that compute what the first one does, or with `check` what the reference does."""
    expected: Sequence[Array] | None = None
    agreeing = []
    for contender in contenders:
        if expected is None:
            expected = _expected(app, contender, settings, console)
        try:
            difference = disagreement(contender.outputs(), expected)
        except Unavailable as reason:
            console.note(f"{app.name}: {contender.label} skipped: {reason}")
            continue
        if difference:
            console.error(f"{app.name}: {contender.label} disagrees: {difference}")
        else:
            agreeing.append(contender)
    return agreeing


def _expected(app: App, first: Contender, settings: Settings, console: Console) -> Sequence[Array]:
    """What all must compute; copied, as a contender may write into the same arrays again."""
    if not settings.check:
        return [a.copy() for a in first.outputs()]
    console.begin(f"{app.name}: evaluating the reference")
    results = app.build().reference(**app.inputs(settings.size))
    return results if isinstance(results, tuple) else (results,)


def _result(app: App, contender: Contender, runs_ms: Sequence[float], settings: Settings) -> Result:
    extra: dict[str, object] = {
        "size": settings.size,
        "median_ms": statistics.median(runs_ms),
        "calls": len(runs_ms),
    }
    if isinstance(contender, PantileContender):
        if settings.passes:
            extra["passes_s"] = dict(contender.pipeline.trace.seconds)
        if settings.overhead:
            extra["overhead_us"] = overhead_us(app, contender.pipeline, contender.label.threads)
    return Result(app.name, contender.label, min(runs_ms), contender.compile_s, contender.schedule_s, extra)
