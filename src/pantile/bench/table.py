"""Results as text: a table with ratios, their geometric means, and what was asked for besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import geometric_mean
from typing import TypeVar

from .contender import Label
from .matrix import matrix
from .ours import SYSTEM
from .result import Result, aligned, microseconds, milliseconds, ratio, two_digits

T = TypeVar("T")
# Ways to run on a GPU, as keys of results and as headings.
WAYS = {"called_ms": "called", "captured_ms": "graph", "launched_ms": "launched"}
MOST_RATIOS = 3  # columns; with more schedules, `matrix` shows them better
BEST = "best of ours"


def render(results: Sequence[Result]) -> str:
    """Everything, in paragraphs."""
    parts = (_table, matrix, _means, best_rivals, _differences, _speedups, _overheads, _memory, _passes)
    paragraphs = [list(part(results)) for part in parts]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


def brief(results: Sequence[Result]) -> str:
    """One app in one line, while others are still to be measured."""
    threads = {r.label.threads for r in results}
    unit = "us" if results[0].label.on_gpu else "ms"
    names = [str(r.label) if len(threads) > 1 else f"{r.label.system} {r.label.schedule}" for r in results]
    each = [f"{name} {_time(r, r.ms)} {unit}" for name, r in zip(names, results, strict=True)]
    return f"{results[0].app}: {', '.join(each)}"


def _time(r: Result, ms: object) -> str:
    """In the unit of its kind."""
    return microseconds(ms) if r.label.on_gpu else milliseconds(ms)


def _table(results: Sequence[Result]) -> Iterator[str]:
    """One line per result; the last columns are that line's time over ours, per schedule of ours."""
    ours = _unique(r.label.schedule for r in results if r.label.system == SYSTEM)
    bounds = any("bound_ms" in r.extra for r in results)
    on_gpu = all(r.label.on_gpu for r in results)
    ways = [key for key in WAYS if any(key in r.extra for r in results)]
    head = ["app", "system", "schedule", *(["us"] if on_gpu else ["threads", "ms"]), "median"]
    head += [*(WAYS[key] for key in ways), "compile s", "schedule s"]
    head += ["bound", "reached"] if bounds else []
    predicted = any("predicted_ms" in r.extra for r in results)
    head += ["predicted"] if predicted else []
    ours = ours if len({r.label for r in results}) > 1 and len(ours) <= MOST_RATIOS else []
    rows = [head + [f"this/{schedule}" for schedule in ours]]
    for r in results:
        label, system = r.label, r.label.system + ("*" if "differs" in r.extra else "")
        numbers = [_time(r, r.ms), _time(r, r.extra["median_ms"])]
        numbers += [_time(r, r.extra[key]) if key in r.extra else "" for key in ways]
        numbers += [f"{r.compile_s:.2f}", f"{r.schedule_s:.2f}"]
        numbers += _bound_cells(r) if bounds else []
        numbers += [milliseconds(r.extra["predicted_ms"]) if "predicted_ms" in r.extra else ""] if predicted else []
        ratios = [_ratio_cell(results, r, Label(SYSTEM, schedule, label.threads)) for schedule in ours]
        rows.append([r.app, system, label.schedule, *([] if on_gpu else [str(label.threads)]), *numbers, *ratios])
    apps = ["", *(r.app for r in results)]
    for line, app, before in zip(aligned(rows, text_columns=3), apps, ["", "", *apps[1:]], strict=False):
        if app != before and app != apps[1]:
            yield ""
        yield line


def _bound_cells(r: Result) -> list[str]:
    if "bound_ms" not in r.extra:
        return ["", ""]
    limit = {"memory": "mem", "arithmetic": "ops"}[str(r.extra["bound_by"])]
    return [f"{milliseconds(r.extra['bound_ms'])} {limit}", f"{100 * r.extra['bound_ms'] / r.ms:.0f} %"]


def _ratio_cell(results: Sequence[Result], r: Result, ours: Label) -> str:
    value = None if r.label == ours else ratio(results, r.app, r.label, ours)
    return "" if value is None else f"{value:.2f}"


def _means(results: Sequence[Result]) -> Iterator[str]:
    """Over the apps that both were measured on."""
    apps = _unique(r.app for r in results)
    labels = _unique(r.label for r in results)
    rows = []
    for ours in (x for x in labels if x.system == SYSTEM):
        for rival in (x for x in labels if x.system != SYSTEM and x.threads == ours.threads):
            ratios = {app: v for app in apps if (v := ratio(results, app, rival, ours)) is not None}
            if ratios:
                pair = f"{rival.system} {rival.schedule} / {ours.system} {ours.schedule}"
                least = min(ratios, key=lambda app: ratios[app])
                mean = f"{geometric_mean(ratios.values()):.2f}"
                threads = "" if ours.on_gpu else str(ours.threads)
                rows.append([pair, threads, str(len(ratios)), mean, f"{ratios[least]:.2f} {least}"])
    if rows:
        threads = "threads" if any(row[1] for row in rows) else ""
        head = ["their time over ours (> 1: ours is faster)", threads, "apps", "geometric mean", "least"]
        yield from aligned([head, *rows], text_columns=1)


def _differences(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        if "differs" in r.extra:
            yield f"* {r.app}, {r.label.system}: {r.extra['differs']}"


def _speedups(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        speedup = ratio(results, r.app, replace(r.label, threads=1), r.label)
        if speedup is not None and r.label.threads > 1:
            yield f"{r.app}, {r.label}: {speedup:.2f} times as fast as one"


def _overheads(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        if "overhead_us" in r.extra:
            yield f"{r.app}, {r.label}: a call takes {r.extra['overhead_us']:.1f} us beyond its kernel"


def _memory(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        if "memory_mb" in r.extra:
            yield f"{r.app}, {r.label.schedule}: compiling takes {r.extra['memory_mb']:.0f} MB at most"


def _passes(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        seconds = r.extra.get("passes_s")
        if isinstance(seconds, dict):
            listed = ", ".join(f"{name} {1e3 * s:.1f}" for name, s in seconds.items())
            yield f"{r.app}, {r.label.schedule}: milliseconds per pass: {listed}"


def _unique(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def best_rivals(results: Sequence[Result]) -> Iterator[str]:
    """One line per app that some rival has, one column per schedule; then the geometric mean and the least of each."""
    threads = max(r.label.threads for r in results)
    measured = [r for r in results if r.label.threads == threads]
    if len({r.label for r in measured if r.label.system != SYSTEM}) < 2:
        return
    columns = list(dict.fromkeys(r.label.schedule for r in measured if r.label.system == SYSTEM))
    columns += [BEST] if len(columns) > 1 else []
    rows, ratios = [["best rival / ours", "rival", *columns]], []
    for app in dict.fromkeys(r.app for r in measured):
        theirs = [r for r in measured if r.app == app and r.label.system != SYSTEM]
        ours = {r.label.schedule: r.ms for r in measured if r.app == app and r.label.system == SYSTEM}
        if not theirs or not ours:
            continue
        fastest = min(theirs, key=lambda r: r.ms)
        ours[BEST] = min(ours.values())
        ratios.append({column: fastest.ms / ours[column] for column in columns if column in ours})
        rows.append([app, fastest.label.system, *(two_digits(ratios[-1].get(column)) for column in columns)])
    for name, summary in (("geometric mean", geometric_mean), ("least", min)):
        of = [[r[column] for r in ratios if column in r] for column in columns]
        rows.append([name, "", *(two_digits(summary(values) if values else None) for values in of)])
    yield from aligned(rows, text_columns=2)
