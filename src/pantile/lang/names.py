"""Names that users give: what arguments may be called, the order of declarations, and suffixes inside `iterate`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import UserError, shown
from ..graph.names import CALL_OPTIONS, identifier

# Inputs and params are listed in the order in which they were declared.
declaration_order = itertools.count()

_suffix: ContextVar[str] = ContextVar("_suffix", default="")


def argument(name: object, what: str) -> str:
    """A name that can be a keyword of a pipeline's call."""
    if identifier(name, what) in CALL_OPTIONS:
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
    """Have the names of Funcs made inside end in `suffix`, so that a step can be repeated without name clashes."""
    token = _suffix.set(_suffix.get() + suffix)
    try:
        yield
    finally:
        _suffix.reset(token)


def current_suffix() -> str:
    """The suffix that `suffixed` has set."""
    return _suffix.get()
