"""Names that users type."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches


class WrongArgument(Exception):
    """What a user can mend by typing something else."""


def check(name: str, names: Collection[str], what: str, listing: str | None = None) -> None:
    """Refuse a name that is none of `names`; `listing` tells more about them."""
    if name not in names:
        there = listing or f"there are: {', '.join(names)}"
        raise WrongArgument(f"there is no {what} {name!r}{meant(name, names)}; {there}")


def meant(name: str, names: Collection[str]) -> str:
    """What was meant, perhaps, in parentheses."""
    close = get_close_matches(name, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
