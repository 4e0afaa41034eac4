"""Names that users type."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path


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
