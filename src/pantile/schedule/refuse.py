"""Errors for refused schedules: they show the directive as written, its line, the stage and where it is defined, the
reason, and a remedy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from difflib import get_close_matches

from ..errors import Location, UserError
from ..graph.nodes import InputInfo, Stage
from .directives import SUFFIX, Directive, StageSchedule

_INSTEAD = {
    "unroll": ("stays a loop", "unroll it by less, or compute fewer stages inside of it"),
    "partition": ("stays whole", 'leave it out, or ask for fewer loops with partition(..., "always")'),
}


def refuse(stage: Stage | InputInfo, directive: Directive | None, why: str, remedy: str) -> UserError:
    """The error for a directive of `stage` that cannot be honoured."""
    written = f'pt.on("{stage.name}"){directive if directive is not None else ""}'
    where: Location | None = directive.where if directive is not None else None
    return UserError(f"{written}: {why}; {remedy} ({stage.name} is defined at {stage.where})", where or stage.where)


def unknown_lanes(stage: Stage, mark: Directive | None, loop: str) -> UserError:
    """The error for a lane loop inside of another lane loop if its number of iterations is not constant."""
    return refuse(
        stage,
        mark,
        f"loop {loop} lies in another lane loop, and how many lanes it takes is not constant",
        f'split it by a constant, as in .split("{loop}", "outer", "inner", 16), and mark the inner one',
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that does not exist."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"


def warn_smaller(stage: Stage, schedule: StageSchedule, definition: int, loop: str, verb: str) -> None:
    """Warn that a loop of a definition is not unrolled or partitioned, at the line of the directive if there is one."""
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
    """The directive that requests to unroll or always to partition a loop, or None."""
    current = 0
    for d in schedule.directives:
        if d.verb in ("update", "pure"):
            current = int(d.args[0]) + 1 if d.verb == "update" else 0
        elif d.verb == verb and current == definition and loop in (d.args[0], f"{d.args[0]}{SUFFIX.get(verb)}"):
            return d if verb == "unroll" or d.args[1] == "always" else None
    return None
