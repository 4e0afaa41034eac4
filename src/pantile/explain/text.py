"""An explanation as text: the time, the schedule and its reasons, the runners-up, and the changes by algebra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..autoschedule import Alternative
from ..calls import MeasuredTime
from ..cost_model.result import levels, named, time
from ..schedule.schedule import Schedule
from .differences import differences
from .explanation import Explanation, Timing

MOST_ALTERNATIVES = 4
LEAST_SHARE = 0.01  # of the time, for a cause to be listed
_LONGEST = 40  # characters of a name
_BAR = 20  # characters of a full bar


def as_text(e: Explanation) -> str:
    parts = [] if e.timing is None else [_timing(e.name, e.timing)]
    if e.launched is not None:
        parts.append("\n".join([str(e.launched), *([] if e.measured is None else [f"  {waited(e.measured)}"])]))
    if e.report is None:
        parts.append(f"{e.name} runs under a hand-written schedule or the default one:\n{e.scheduled.schedule}")
    else:
        parts.append(str(e.report))
        if e.report.alternatives:
            parts.append(_alternatives(e.scheduled.schedule, e.report.alternatives))
    if e.rewritten.changes:
        parts.append(str(e.rewritten))
    return "\n\n".join(parts)


def _timing(name: str, t: Timing) -> str:
    threads = f"{t.threads} thread{'' if t.threads == 1 else 's'}"
    took = f"{time(t.cost.seconds)} predicted"
    if t.measured is not None:
        took = f"{time(t.measured.seconds)} measured ({_calls(t.measured)}), {took}"
    lines = [f"{name}, {sizes(t.arguments)}, {threads}: {took}"]
    for cause, share in shares(t):
        lines.append(f"  {cause:<10} {100 * share:3.0f} %  {'#' * max(1, round(_BAR * share))}")
    return "\n".join([*lines, f"  {bound(t)}"])


def _calls(t: MeasuredTime) -> str:
    return "one call" if t.calls == 1 else f"best of {t.calls} calls"


def waited(t: MeasuredTime) -> str:
    """The time of calls that waited for their results from a GPU."""
    return f"calls with NumPy arrays took {time(t.seconds)} ({_calls(t)}), including copies to the GPU and back"


def sizes(arguments: Mapping[str, Any]) -> str:
    """Shapes and numbers for a sentence."""
    return ", ".join(f"{name} {_size(value)}" for name, value in arguments.items()) or "without arguments"


def _size(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def shares(t: Timing) -> list[tuple[str, float]]:
    """The shares of the predicted time by cause, the largest first."""
    total = max(t.cost.causes.seconds, 1e-12)
    parts = sorted(((cause, s / total) for cause, s in named(t.cost.causes)), key=lambda part: -part[1])
    return [part for part in parts if part[1] >= LEAST_SHARE]


def bound(t: Timing) -> str:
    """The lower bound of the time under this schedule, and how close the time is to it."""
    by, least = t.limits.by, t.limits.least
    moved = dict(zip(levels(t.cost), t.cost.bytes, strict=True))
    what = "all operations" if by == "arithmetic" else f"{moved[by] / 1e6:.3g} MB"
    times = t.seconds / max(least, 1e-12)
    return f"bound by {by}: {what} at full speed take {time(least)}; the call takes {times:.1f} times as long"


def _alternatives(chosen: Schedule, others: Sequence[Alternative]) -> str:
    """The reasons why the runners-up lost."""
    lines = ["next best schedules, predicted:"]
    for other in others[:MOST_ALTERNATIVES]:
        why = f" ({other.why})" if other.why else ""
        lines.append(f"  {time(other.seconds):>8}  {_short(other.name)}{why}: {differences(chosen, other.schedule)}")
    return "\n".join(lines)


def _short(name: str) -> str:
    """The origin of a schedule, and the last of many changes."""
    first, *changes = name.split(", ")
    return name if len(name) <= _LONGEST or len(changes) < 2 else f"{first}, ..., {changes[-1]}"
