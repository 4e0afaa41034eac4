"""The argument block of a kernel: 8-byte slots, as `codegen.emit` describes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..expr.types import DType
from .addresses import addresses
from .arguments import NDArray, element_strides, to_bfloat_bits

_FLOAT_FORMATS = {16: "e6x", 32: "f4x", 64: "d"}


class Packing:
    """Packs calls whose arrays have the same shapes and strides: only addresses and numbers differ."""

    def __init__(self, arrays: Sequence[NDArray], numbers: Sequence[DType]) -> None:
        layouts = [struct.pack(f"={2 * a.ndim}q", *a.shape, *element_strides(a)) for a in arrays]
        self._slots = [part for layout in layouts for part in (0, layout)]  # zeros stand for addresses
        self._bfloats = [k for k, t in enumerate(numbers) if t.kind == "bfloat"]
        arrays_format = "".join(f"q{len(layout)}s" for layout in layouts)
        self._pack = struct.Struct(f"={arrays_format}{''.join(map(_format, numbers))}Q").pack

    def pack(self, arrays: Sequence[NDArray], numbers: Sequence[bool | int | float], report: int) -> bytes:
        """The block; `report` is the address that a debug build writes to."""
        slots = self._slots.copy()
        slots[::2] = addresses(arrays)
        if self._bfloats:
            numbers = [to_bfloat_bits(v) if k in self._bfloats else v for k, v in enumerate(numbers)]
        return self._pack(*slots, *numbers, report)


def _format(t: DType) -> str:
    """A number's bits at the start of its slot; integers fill it."""
    if t.kind == "bfloat":
        return "H6x"
    if t.is_float:
        return _FLOAT_FORMATS[t.bits]
    return "q" if t.is_signed else "Q"
