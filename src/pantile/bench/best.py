"""Beside several rivals: the best of them on each app, over each of our schedules and the best of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from .columns import aligned, ratio
from .ours import SYSTEM
from .result import Result

BEST = "best of ours"


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
        rows.append([app, fastest.label.system, *(ratio(ratios[-1].get(column)) for column in columns)])
    for name, summary in (("geometric mean", geometric_mean), ("least", min)):
        of = [[r[column] for r in ratios if column in r] for column in columns]
        rows.append([name, "", *(ratio(summary(values) if values else None) for values in of)])
    yield from aligned(rows, text_columns=2)
