"""The argument block of a kernel: 8-byte slots, as `codegen.emit` describes them.

The address of an array's elements is `a.ctypes.data`, which takes two microseconds; here it is found in a tenth of that
time. In CPython, an array is a structure whose first field, after those of every object, is the address of its
elements. That is part of NumPy's binary interface, which all extensions rely on; it is nevertheless tested here.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..expr.types import DType
from .arguments import NDArray, element_strides, to_bfloat_bits

_FLOAT_FORMATS = {16: "e6x", 32: "f4x", 64: "d"}
_FIRST_FIELD = object.__basicsize__
_at = ctypes.c_size_t.from_address


class Packing:
    """Packs the arguments of calls whose arrays have equal shapes and strides, so that only addresses and numbers
    differ."""

    def __init__(self, arrays: Sequence[NDArray], numbers: Sequence[DType]) -> None:
        layouts = [struct.pack(f"={2 * a.ndim}q", *a.shape, *element_strides(a)) for a in arrays]
        self._slots: list[Any] = [part for layout in layouts for part in (0, layout)]  # zeros stand for addresses
        self._bfloats = [k for k, t in enumerate(numbers) if t.kind == "bfloat"]
        arrays_format = "".join(f"q{len(layout)}s" for layout in layouts)
        self._of_numbers = struct.Struct("=" + "".join(map(_format, numbers)))
        self._pack = struct.Struct(f"={arrays_format}{''.join(map(_format, numbers))}Q").pack

    @property
    def template(self) -> bytes:
        """The block with zeros for addresses and numbers."""
        layouts = b"".join(bytes(8) if part == 0 else part for part in self._slots)
        return layouts + bytes(self._of_numbers.size + 8)

    @property
    def bytes_of_numbers(self) -> int:
        return self._of_numbers.size

    def pack_numbers(self, numbers: Sequence[bool | int | float]) -> bytes:
        """The part of the block that holds the numbers."""
        return self._of_numbers.pack(*self._in_types(numbers))

    def _in_types(self, numbers: Sequence[bool | int | float]) -> Sequence[bool | int | float]:
        if not self._bfloats:
            return numbers
        return [to_bfloat_bits(v) if k in self._bfloats else v for k, v in enumerate(numbers)]

    def pack(self, arrays: Sequence[NDArray], numbers: Sequence[bool | int | float], report: int) -> bytes:
        """The whole block. Code built for debugging writes to the address `report`."""
        slots = self._slots.copy()
        slots[::2] = addresses(arrays)
        return self._pack(*slots, *self._in_types(numbers), report)


def _format(t: DType) -> str:
    """The struct format of a number's slot. The number's bits are at the start of the slot, and integers fill it."""
    if t.kind == "bfloat":
        return "H6x"
    if t.is_float:
        return _FLOAT_FORMATS[t.bits]
    return "q" if t.is_signed else "Q"


def _of_structures(arrays: Sequence[NDArray]) -> list[int]:
    return [_at(id(a) + _FIRST_FIELD).value for a in arrays]


def _of_attributes(arrays: Sequence[NDArray]) -> list[int]:
    return [a.ctypes.data for a in arrays]


def _are_structures() -> bool:
    if sys.implementation.name != "cpython":
        return False
    samples: list[NDArray] = [np.zeros(3), np.zeros((4, 5), np.uint8)[::-1, 1:], np.zeros((2, 0))]
    return _of_structures(samples) == _of_attributes(samples)


# Returns the address of each array. Their class must be NumPy's own, since derived classes may override anything.
addresses = _of_structures if _are_structures() else _of_attributes
