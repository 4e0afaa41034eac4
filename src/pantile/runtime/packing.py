"""The argument block of a kernel: 8-byte slots, as `codegen.emit` describes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from ..expr.types import DType
from .arguments import NDArray, element_strides, to_bfloat_bits

_FLOAT_FORMATS = {16: "e6x", 32: "f4x", 64: "d"}


class Packing:
    """Packs calls whose arrays have the same shapes and strides: only addresses and numbers differ."""

    def __init__(self, arrays: Sequence[NDArray], numbers: Sequence[DType]) -> None:
        self._slots: list[int] = []
        self._addresses: list[int] = []  # which slots hold them
        for a in arrays:
            self._addresses.append(len(self._slots))
            self._slots += [0, *a.shape, *element_strides(a)]
        self._bfloats = [k for k, t in enumerate(numbers) if t.kind == "bfloat"]
        self._struct = struct.Struct(f"={len(self._slots)}q{''.join(map(_format, numbers))}Q")

    def pack(self, arrays: Iterable[NDArray], numbers: Sequence[bool | int | float], report: int) -> bytes:
        """The block; `report` is the address that a debug build writes to."""
        slots = self._slots.copy()
        for k, a in zip(self._addresses, arrays, strict=True):
            slots[k] = a.ctypes.data
        if self._bfloats:
            numbers = [to_bfloat_bits(v) if k in self._bfloats else v for k, v in enumerate(numbers)]
        return self._struct.pack(*slots, *numbers, report)


def _format(t: DType) -> str:
    """A number's bits at the start of its slot; integers fill it."""
    if t.kind == "bfloat":
        return "H6x"
    if t.is_float:
        return _FLOAT_FORMATS[t.bits]
    return "q" if t.is_signed else "Q"
