"""The address of an array's elements: `a.ctypes.data`, in a tenth of its two microseconds.

In CPython, an array is a structure whose first field, after those of every object, is the address of its elements. That
is part of NumPy's binary interface, which all extensions rely on; it is tested here nevertheless.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

import numpy as np

from .arguments import NDArray

_FIRST_FIELD = object.__basicsize__
_at = ctypes.c_size_t.from_address


def _of_structures(arrays: Sequence[NDArray]) -> list[int]:
    return [_at(id(a) + _FIRST_FIELD).value for a in arrays]


def _of_attributes(arrays: Sequence[NDArray]) -> list[int]:
    return [a.ctypes.data for a in arrays]


def _are_structures() -> bool:
    if sys.implementation.name != "cpython":
        return False
    samples: list[NDArray] = [np.zeros(3), np.zeros((4, 5), np.uint8)[::-1, 1:], np.zeros((2, 0))]
    return _of_structures(samples) == _of_attributes(samples)


# The address of each array, whose class must be NumPy's own: derived classes may override anything.
addresses = _of_structures if _are_structures() else _of_attributes
