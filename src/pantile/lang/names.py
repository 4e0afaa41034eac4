"""Names that users give: their spelling, the order of declarations, and suffixes inside `iterate`."""

from __future__ import annotations

import itertools
import keyword
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import UserError, shown

# Inputs and params are passed by keyword beside these options of a call.
_CALL_OPTIONS = frozenset({"out", "num_threads"})

# Characters of a name: more would only fill listings.
LONGEST = 200

# Inputs and params are listed in the order in which they were declared.
declaration_order = itertools.count()

_suffix: ContextVar[str] = ContextVar("_suffix", default="")


def identifier(name: object, what: str) -> str:
    """`name`, if it can be a name in Python; `what` says whose name it is."""
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


def derived(name: str, kind: str) -> str:
    """The name of what Pantile makes for the sake of something called `name`: img_edge, f_sum."""
    return f"{name[:LONGEST - len(kind) - 1]}_{kind}"


def argument(name: object, what: str) -> str:
    """A name that can be a keyword of a pipeline's call."""
    if identifier(name, what) in _CALL_OPTIONS:
        raise UserError(f"{name!r} cannot be the name of {what}: it is an option of every call; choose another name")
    return str(name)


def words(names: object, what: str) -> tuple[str, ...]:
    """ "y x" or "y, x" or ("y", "x") as checked names."""
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    if not isinstance(names, (tuple, list)):
        raise UserError(
            f"{shown(names)} cannot be the name of {what}; write names with spaces between them, like 'y x'"
        )
    return tuple(identifier(n, what) for n in names)


@contextmanager
def suffixed(suffix: str) -> Iterator[None]:
    """Names of Funcs made inside end in `suffix`, so that a step can be repeated without its names clashing."""
    token = _suffix.set(_suffix.get() + suffix)
    try:
        yield
    finally:
        _suffix.reset(token)


def current_suffix() -> str:
    """What `suffixed` asks for here."""
    return _suffix.get()
