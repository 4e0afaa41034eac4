"""The three kinds of error, and the user's own source lines.

`UserError`      a mistake in a definition, a schedule or a call; says what to write instead. It is a ValueError, and
                 where something is of a wrong type, a `UserTypeError`, which is a TypeError, too.
`RunError`       a failure while compiled code ran (out of memory, a checked access out of bounds), or that a forked
                 process cannot compile any.
`InternalError`  a bug in Pantile: an invariant between two passes does not hold.

`DefinitionWarning` warns about a definition that is legal, and probably not what was meant.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..dataclass import dataclass

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_HELPERS = (contextlib.__file__, dataclasses.__file__)
_waiting = threading.local()  # `where`: the line that waits for this thread; `alone`: only Pantile's code runs
_SHIPPED_PROGRAMS = (_PACKAGE + "apps" + os.sep, _PACKAGE + "cli" + os.sep, _PACKAGE + "bench" + os.sep)

_OURS: dict[str, bool] = {}  # file -> whether it is Pantile's, cached because each directive of a search looks it up

_MOST_SHOWN = 200  # characters of a value in a message
_MOST_BITS = 128  # bits of an integer that a message writes out


@dataclass(frozen=True)
class Location:
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class PantileError(Exception):
    """Base of every error that Pantile raises."""


class UserError(PantileError, ValueError):
    """A mistake that the user can mend; `where` is the line it was made on, by default the one running now."""

    def __init__(self, message: str, where: Location | None = None) -> None:
        self.where = where or here()
        super().__init__(f"{self.where}: {message}")

    @property
    def reason(self) -> str:
        """The message without the line."""
        return str(self).removeprefix(f"{self.where}: ")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error with its location: constructed anew in another process, it would name a line of that one."""
        return _restore_error, (type(self), self.args[0], self.where)


class UserTypeError(UserError, TypeError):
    """A mistake that the user can mend: something is of a wrong type, or no argument at all."""


def _restore_error(kind: type[UserError], text: str, where: Location) -> UserError:
    error = kind.__new__(kind, text)
    error.where = where
    return error


class RunError(PantileError):
    """Compiled code failed while running."""


class InternalError(PantileError):
    """A bug in Pantile itself."""


class DefinitionWarning(UserWarning):
    """A definition that is legal, and probably not what was meant."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn on the user's own line."""
    where = here()
    warnings.warn_explicit(message, category, where.file, where.line)


def shown(value: object) -> str:
    """A user's value as a message shows it: on one line, and short, whatever it is."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # whatever a foreign __repr__ does, and numbers of thousands of digits inside
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN // 2]}...{text[-_MOST_SHOWN // 4 :]}"


def here() -> Location:
    """The innermost line on the call stack that is not Pantile's own (apps count as user programs)."""
    alone: Location | None = getattr(_waiting, "alone", None)
    if alone is not None:
        return alone
    frame = sys._getframe(1)
    while (back := frame.f_back) is not None:
        file = frame.f_code.co_filename
        if not (_OURS[file] if file in _OURS else is_ours(frame)):
            break
        frame = back
    where: Location | None = getattr(_waiting, "where", None)
    if where is not None and frame.f_code.co_filename == threading.__file__:
        return where
    return Location(frame.f_code.co_filename, frame.f_lineno)


@contextlib.contextmanager
def on_behalf_of(where: Location) -> Iterator[None]:
    """Have errors of this thread, which belongs to Pantile, point at the line of the user's program it works for."""
    _waiting.where = where
    try:
        yield
    finally:
        _waiting.where = None


@contextlib.contextmanager
def working_alone() -> Iterator[None]:
    """Compute `here` once while only Pantile's code runs in this thread: a search makes thousands of directives."""
    before = getattr(_waiting, "alone", None)
    _waiting.alone = here()
    try:
        yield
    finally:
        _waiting.alone = before


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs Pantile's code, or code of contextlib or dataclasses around it."""
    file = frame.f_code.co_filename
    if file == "<string>":
        return str(frame.f_globals.get("__name__")).startswith("pantile.")
    _OURS[file] = file in _HELPERS or (file.startswith(_PACKAGE) and not file.startswith(_SHIPPED_PROGRAMS))
    return _OURS[file]
