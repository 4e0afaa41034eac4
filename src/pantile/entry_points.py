"""Where users come in: every function of `pt` and every method of its classes. Errors that are theirs to mend leave
through here, and the traceback shows their own lines, not those of Pantile below; it ends at the one that was called.

PANTILE_VERIFY=1 keeps all lines, as those who look for a mistake of ours want them. Internal errors always do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, TracebackType
from typing import Any, TypeVar

from . import verification
from .errors import RunError, UserError, is_ours

F = TypeVar("F", bound=Callable[..., Any])
THEIRS = (UserError, RunError)
# Python itself calls these, or nothing of theirs is the user's mistake.
_INSIDE = frozenset((
    "__class_getitem__", "__delattr__", "__getstate__", "__hash__", "__init_subclass__", "__new__", "__post_init__",
    "__reduce__", "__repr__", "__setattr__", "__setstate__", "__str__",
))  # fmt: skip
_MARK = "is_entry"


def of_user(error: BaseException) -> BaseException:
    """The error, and what caused it, with a traceback of the user's lines alone; of what it was raised instead of,
    nothing is shown."""
    if not verification.is_asked():
        cause: BaseException | None = error
        while cause is not None:
            cause.__traceback__ = _users_lines(cause.__traceback__)
            cause.__suppress_context__ = True
            cause = cause.__cause__
    return error


def _users_lines(lines: TracebackType | None) -> TracebackType | None:
    kept = []
    while lines is not None:
        if not is_ours(lines.tb_frame):
            kept.append(lines)
        lines = lines.tb_next
    last = None
    for line in reversed(kept):
        last = TracebackType(last, line.tb_frame, line.tb_lasti, line.tb_lineno)
    return last


def entry(function: F) -> F:
    """A function that users call."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args, **options)
        except THEIRS as error:
            raise of_user(error) from error.__cause__

    return called  # type: ignore[return-value]


def marked(function: F) -> F:
    """A function that lets go of errors by `of_user` itself: another one around it would take too long."""
    setattr(function, _MARK, True)
    return function


def entries(names: Iterable[str], of: Mapping[str, Any]) -> dict[str, Any]:
    """Functions as entries, by name. Classes stay what they are, and their methods become entries."""
    for thing in map(of.get, names):
        if isinstance(thing, type) and not issubclass(thing, BaseException):
            _open(thing)
    return {name: entry(of[name]) for name in names if isinstance(of[name], FunctionType)}


def _open(kind: type) -> None:
    for name, method in list(vars(kind).items()):
        is_special = name.startswith("__") and name.endswith("__")
        is_public = name not in _INSIDE and (is_special or not name.startswith("_"))
        if is_public and isinstance(method, FunctionType) and not hasattr(method, _MARK):
            setattr(kind, name, entry(method))
        elif is_public and isinstance(method, (classmethod, staticmethod)):
            setattr(kind, name, type(method)(entry(method.__func__)))
