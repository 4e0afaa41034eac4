"""What NumPy is told when one of its arrays is indexed with an expression, `array[e]`.

It asks for `__index__` first, swallows whatever that raises, and asks for `__array__` next, from where it passes errors
on. It also asks for `__array__`, and for nothing else, when an array of objects is filled with expressions.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from ..errors import is_ours

_Place = tuple[int, int, int]  # the expression, the frame of the user's code and the instruction that runs in it

_asked_for_index: list[_Place] = []  # the last


def note_index(e: object) -> None:
    """Called by the `__index__` of an expression, before it refuses."""
    _asked_for_index[:] = [_place(e)]


def is_index(e: object) -> bool:
    """Whether the `__array__` of an expression is called for the index of an array."""
    return _asked_for_index == [_place(e)]


def as_object(e: object) -> np.ndarray[Any, np.dtype[Any]]:
    """An expression as an array that holds it."""
    array = np.empty((), object)
    array[()] = e
    return array


def _place(e: object) -> _Place:
    caller: FrameType | None = sys._getframe(2)
    while caller is not None and is_ours(caller):
        caller = caller.f_back
    return id(e), id(caller), -1 if caller is None else caller.f_lasti
