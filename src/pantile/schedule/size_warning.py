"""A word about directives that were followed in part: there was no room for all the code that they ask for."""

from __future__ import annotations

import warnings

from ..graph.nodes import Stage
from .directives import SUFFIX, Directive, StageSchedule

_INSTEAD = {
    "unroll": ("stays a loop", "unroll it by less, or compute fewer stages inside of it"),
    "partition": ("stays whole", 'leave it out, or ask for fewer loops with partition(..., "always")'),
}


def warn_smaller(stage: Stage, schedule: StageSchedule, definition: int, loop: str, verb: str) -> None:
    """Warn that a loop of a definition is not unrolled or partitioned, at the line of the directive, if any."""
    d = _directive_for(schedule, definition, loop, verb)
    if d is None:
        return
    instead, remedy = _INSTEAD[verb]
    where = d.where or stage.where
    message = (
        f"{schedule.head}{d}: that would be too much code to compile, so loop {loop} {instead}; {remedy} ({stage.name} "
        f"is defined at {stage.where})"
    )
    warnings.warn_explicit(message, RuntimeWarning, where.file, where.line)


def _directive_for(schedule: StageSchedule, definition: int, loop: str, verb: str) -> Directive | None:
    """The directive by which a loop is to be unrolled or always partitioned."""
    current = 0
    for d in schedule.directives:
        if d.verb in ("update", "pure"):
            current = int(d.args[0]) + 1 if d.verb == "update" else 0
        elif d.verb == verb and current == definition and loop in (d.args[0], f"{d.args[0]}{SUFFIX.get(verb)}"):
            return d if verb == "unroll" or d.args[1] == "always" else None
    return None
