"""Names that users type."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

import pantile as pt


class WrongArgument(Exception):
    """What a user can mend by typing something else."""


def check(name: str, names: Collection[str], what: str, listing: str | None = None) -> None:
    """Refuse a name that is none of `names`; `listing` tells more about them."""
    if name not in names:
        there = listing or f"there are: {', '.join(names)}"
        raise WrongArgument(f"there is no {what} {name!r}{suggestion(name, names)}; {there}")


def suggestion(name: str, names: Collection[str]) -> str:
    """What was meant, perhaps, in parentheses."""
    close = get_close_matches(name, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def error_text(error: BaseException) -> str:
    """The error's text; a line that it names is worth telling if it is the user's, and not one of this package."""
    where = getattr(error, "where", None)
    ours = where is not None and Path(where.file).is_relative_to(Path(__file__).parents[1])
    text = str(error).removeprefix(f"{where}: ") if ours else str(error)
    return text or type(error).__name__


def params(pipeline: pt.Pipeline, given: Sequence[str], stated: Collection[str] = ()) -> dict[str, Any]:
    """What is given; each param of the pipeline must be, unless it has a default or is stated elsewhere."""
    known = {p.name: p for p in pipeline.graph.params}
    values: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise WrongArgument(f"--param {item} has no value; write it like --param {item}=1")
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "it has none"
            raise WrongArgument(f"{pipeline.graph.name} has no param {name!r}{suggestion(name, known)}; {there}")
        values[name] = _number(name, text, known[name].dtype.numpy)
    for name, p in known.items():
        if name not in values and name not in stated and p.default is None:
            raise WrongArgument(f"{pipeline.graph.name} needs --param {name}=<{p.dtype}>")
    return values


def _number(name: str, text: str, dtype: np.dtype[Any]) -> bool | int | float:
    try:
        if dtype.kind == "b":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return float(text) if dtype.kind == "f" else int(text)
    except (ValueError, KeyError):
        raise WrongArgument(f"--param {name}={text}: {text!r} is not a {dtype}") from None
