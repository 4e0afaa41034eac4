"""How a schedule is refused: the directive as written, its line, the stage and where it is defined, why, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ..errors import Location, UserError
from ..graph.nodes import InputInfo, Stage
from .directives import Directive


def refuse(stage: Stage | InputInfo, directive: Directive | None, why: str, remedy: str) -> UserError:
    """The error for a directive of `stage` that cannot be honoured."""
    written = f'pt.on("{stage.name}"){directive if directive is not None else ""}'
    where: Location | None = directive.where if directive is not None else None
    return UserError(f"{written}: {why}; {remedy} ({stage.name} is defined at {stage.where})", where or stage.where)


def unknown_lanes(stage: Stage, mark: Directive | None, loop: str) -> UserError:
    """The error for a lane loop inside of another whose number of iterations is not constant."""
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
