"""Names of a graph: their spelling, names that users gave, and names that Pantile makes, made unique by a number."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Container
from functools import lru_cache

from ..errors import Location, UserError, shown

# Inputs and params are passed by keyword beside these options of a call.
CALL_OPTIONS = frozenset({"out", "num_threads"})

# The most characters of a name: more would only fill listings.
LONGEST = 200


def identifier(name: object, what: str) -> str:
    """Return `name` if it can be a name in Python, or raise an error; `what` says whose name it is."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise UserError(
            f"{shown(name)} cannot be the name of {what}; use letters, digits and _, as for a Python variable"
        )
    if len(name) > LONGEST:
        raise UserError(
            f"{shown(name)} cannot be the name of {what}: it has {len(name)} characters; use at most {LONGEST}"
        )
    if not is_normal(name):
        raise UserError(
            f"{shown(name)} cannot be the name of {what}: Python reads it as {normal(name)!r} where it is written as a "
            "keyword; write that"
        )
    return name


def normal(name: str) -> str:
    """The name as Python reads it: "ﬁ" (one character) is "fi"."""
    return unicodedata.normalize("NFKC", name)


def is_normal(name: str) -> bool:
    """Whether Python reads the name as it is written."""
    return name.isascii() or normal(name) == name


@lru_cache(maxsize=1 << 12)
def is_name(name: str) -> bool:
    """Whether an element of a graph or a loop can have the name: words with dots between."""
    first, *others = name.split(".")
    # After a dot there may be a number, with a suffix for half of a split loop: "r.0_u".
    return _is_word(first) and all(w and _is_word(f"_{w}") for w in others)


def _is_word(word: str) -> bool:
    return word.isidentifier() and is_normal(word)


def derived(name: str, kind: str) -> str:
    """The name of a stage that Pantile makes for something called `name`, such as img_edge or f_sum."""
    return f"{name[: LONGEST - len(kind) - 1]}_{kind}"


class Names:
    """The names of a graph and their owners: a name that is claimed twice is refused, or given a number."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def claim(self, name: str, kind: str, where: Location) -> str:
        """Register a name that a user gave; raise an error if it has an owner already."""
        owner = f"{kind} {name!r} (from {where})"
        if name in self._owners:
            raise UserError(f"{owner} and {self._owners[name]} have the same name; rename one of them")
        self._owners[name] = owner
        return name

    def fresh(self, base: str) -> str:
        """Register and return `base`, or `base` with the first number that makes it new."""
        name = first_free(base, self._owners)
        self._owners[name] = name
        return name


def first_free(base: str, taken: Container[str]) -> str:
    """`base`, or `base` with the first number that makes it new."""
    name, k = base, 0
    while name in taken:
        k += 1
        name = f"{base}{k}"
    return name
