"""Recognize that a NumPy array is indexed with an expression, `array[e]`, to refuse it with a useful message.

NumPy calls `__index__` first, swallows whatever that raises, and calls `__array__` next, whose errors it passes on. It
also calls `__array__`, but not `__index__`, when an array of objects is filled with expressions.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from ..errors import is_ours

_Place = tuple[int, int, int]  # the expression, the frame of the user's code and the instruction that runs in it

_index_call: list[_Place] = []  # the last call of `__index__`


def note_index(e: object) -> None:
    """Record a call of the `__index__` of an expression, before it raises its error."""
    _index_call[:] = [_place(e)]


def is_index(e: object) -> bool:
    """Whether the `__array__` of an expression is called for the index of an array."""
    return _index_call == [_place(e)]


def as_object(e: object) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of objects that holds an expression."""
    array = np.empty((), object)
    array[()] = e
    return array


def _place(e: object) -> _Place:
    caller: FrameType | None = sys._getframe(2)
    while caller is not None and is_ours(caller):
        caller = caller.f_back
    return id(e), id(caller), -1 if caller is None else caller.f_lasti
