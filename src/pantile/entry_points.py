"""Entry points: every function of `pt` and every method of its classes. The traceback of a user or run error that an
entry point raises shows the user's lines and ends at the entry point, without Pantile's own lines.

PANTILE_VERIFY=1 keeps all lines, for debugging Pantile. Internal errors always keep them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, TracebackType
from typing import Any, TypeVar

from . import verification
from .errors import RunError, UserError, is_ours

F = TypeVar("F", bound=Callable[..., Any])
USER_ERRORS = (UserError, RunError)
# Methods that Python itself calls, or that never raise a user error.
_INSIDE = frozenset((
    "__class_getitem__", "__delattr__", "__getstate__", "__hash__", "__init_subclass__", "__new__", "__post_init__",
    "__reduce__", "__repr__", "__setattr__", "__setstate__", "__str__",
))  # fmt: skip
_MARK = "is_entry"


def of_user(error: BaseException) -> BaseException:
    """Reduce the tracebacks of an error and of its causes to the user's lines, and suppress their contexts."""
    if not verification.is_enabled():
        cause: BaseException | None = error
        while cause is not None:
            cause.__traceback__ = _users_lines(cause.__traceback__)
            cause.__suppress_context__ = True
            cause = cause.__cause__
    return error


def _users_lines(lines: TracebackType | None) -> TracebackType | None:
    frames = []
    while lines is not None:
        if not is_ours(lines.tb_frame):
            frames.append(lines)
        lines = lines.tb_next
    last = None
    for line in reversed(frames):
        last = TracebackType(last, line.tb_frame, line.tb_lasti, line.tb_lineno)
    return last


def entry(function: F) -> F:
    """Make a function an entry point."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args, **options)
        except USER_ERRORS as error:
            raise of_user(error) from error.__cause__

    return called  # type: ignore[return-value]


def marked(function: F) -> F:
    """Mark a function that calls `of_user` itself, because wrapping it in another function would make it too slow."""
    setattr(function, _MARK, True)
    return function


def entries(names: Iterable[str], of: Mapping[str, Any]) -> dict[str, Any]:
    """Entry points by name: functions are wrapped; classes stay as they are, but their methods are wrapped."""
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
