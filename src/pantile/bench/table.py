"""Results as text: a table with ratios, their geometric means, and what was asked for besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from .contender import Label
from .ours import SYSTEM
from .result import Result, geometric_mean, ratio

T = TypeVar("T")


def render(results: Sequence[Result]) -> str:
    """Everything, in paragraphs."""
    paragraphs = (_table(results), _means(results), _speedups(results), _overheads(results), _passes(results))
    return "\n\n".join("\n".join(p) for p in map(list, paragraphs) if p)


def _table(results: Sequence[Result]) -> Iterator[str]:
    """One line per result; the last columns are our time over that line's, per schedule of ours."""
    ours = _unique(r.label.schedule for r in results if r.label.system == SYSTEM)
    head = ["app", "system", "schedule", "threads", "ms", "median", "compile s", "schedule s"]
    rows = [head + [f"{schedule}/this" for schedule in ours]]
    for r in results:
        label = r.label
        numbers = [f"{r.ms:.3f}", f"{r.extra['median_ms']:.3f}", f"{r.compile_s:.3f}", f"{r.schedule_s:.4f}"]
        ratios = [_ratio_cell(results, r, Label(SYSTEM, schedule, label.threads)) for schedule in ours]
        rows.append([r.app, label.system, label.schedule, str(label.threads), *numbers, *ratios])
    return _aligned(rows, text_columns=3)


def _ratio_cell(results: Sequence[Result], r: Result, ours: Label) -> str:
    value = None if r.label == ours else ratio(results, r.app, ours, r.label)
    return "" if value is None else f"{value:.2f}"


def _means(results: Sequence[Result]) -> Iterator[str]:
    """Over the apps that both were measured on."""
    apps = _unique(r.app for r in results)
    labels = _unique(r.label for r in results)
    rows = []
    for ours in (x for x in labels if x.system == SYSTEM):
        for rival in (x for x in labels if x.system != SYSTEM and x.threads == ours.threads):
            ratios = [v for app in apps if (v := ratio(results, app, ours, rival)) is not None]
            if ratios:
                pair = f"{ours.system} {ours.schedule} / {rival.system} {rival.schedule}"
                rows.append([pair, str(ours.threads), str(len(ratios)), f"{geometric_mean(ratios):.3f}"])
    if rows:
        yield from _aligned(
            [["time over time (< 1: ours is faster)", "threads", "apps", "mean"], *rows], text_columns=1
        )


def _speedups(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        speedup = ratio(results, r.app, replace(r.label, threads=1), r.label)
        if speedup is not None and r.label.threads > 1:
            yield f"{r.app}, {r.label}: {speedup:.2f} times as fast as one"


def _overheads(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        if "overhead_us" in r.extra:
            yield f"{r.app}, {r.label}: a call costs {r.extra['overhead_us']:.1f} us beyond its kernel"


def _passes(results: Sequence[Result]) -> Iterator[str]:
    for r in results:
        seconds = r.extra.get("passes_s")
        if isinstance(seconds, dict):
            listed = ", ".join(f"{name} {1e3 * s:.1f}" for name, s in seconds.items())
            yield f"{r.app}, {r.label.schedule}: milliseconds per pass: {listed}"


def _aligned(rows: Sequence[Sequence[str]], text_columns: int) -> Iterator[str]:
    """Columns of equal width, text to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = [c.ljust(w) for c, w in zip(row[:text_columns], widths, strict=False)]
        right = [c.rjust(w) for c, w in zip(row[text_columns:], widths[text_columns:], strict=True)]
        yield "  ".join(left + right).rstrip()


def _unique(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))
