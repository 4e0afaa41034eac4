"""Several schedules of ours over several apps: who is how fast on what, at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean

from .columns import aligned, milliseconds
from .contender import Label
from .ours import SYSTEM
from .result import Result

BASELINES = ("expert", "default", "naive")  # what strategies are compared with
Times = Mapping[str, Mapping[Label, float]]  # ms of everybody who was measured, by app


def matrix(results: Sequence[Result]) -> Iterator[str]:
    """One line per app, one column per contender; then how far each is from the best strategy on the geometric mean."""
    labels = list(dict.fromkeys(r.label for r in results))
    found = _found(labels)
    if len(found) < 2 or len({label.threads for label in labels}) > 1:
        return
    times: dict[str, dict[Label, float]] = {}
    for r in results:
        times.setdefault(r.app, {})[r.label] = r.ms
    head = [label.schedule if label.system == SYSTEM else f"{label.system} {label.schedule}" for label in labels]
    rows = [["ms", *head]]
    rows += [[app, *(milliseconds(of[x]) if x in of else "" for x in labels)] for app, of in times.items()]
    rows.append(["this/best", *(_mean(times, [label], found) for label in labels)])
    yield from aligned(rows, text_columns=1)
    yield from _best_of_rivals(times, labels, found)


def _found(labels: Sequence[Label]) -> list[Label]:
    """Our schedules that strategies found; the naive one is no match for a rival's."""
    return [x for x in labels if x.system == SYSTEM and x.schedule not in BASELINES]


def _mean(times: Times, some: Sequence[Label], others: Sequence[Label]) -> str:
    """The best time of some over the best of others, on the geometric mean of the apps that both were measured on."""
    ratios = [_least(of, some) / _least(of, others) for of in times.values() if {*some} & {*of} and {*others} & {*of}]
    return f"{geometric_mean(ratios):.2f}" if ratios else ""


def _least(of: Mapping[Label, float], labels: Sequence[Label]) -> float:
    return min(of[x] for x in labels if x in of)


def _best_of_rivals(times: Times, labels: Sequence[Label], found: Sequence[Label]) -> Iterator[str]:
    """Beside each rival's own strategies, too."""
    for system in dict.fromkeys(x.system for x in labels if x.system != SYSTEM):
        strategies = [x for x in labels if x.system == system and x.schedule != "manual"]
        names = ", ".join(x.schedule for x in strategies)
        if mean := _mean(times, strategies, found):
            yield f"the best of {system}'s {names} over the best of our strategies: {mean} on the geometric mean"
