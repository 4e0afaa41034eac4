"""The frame of arguments of a kernel of blocks: an 8-byte slot for each value that the kernel captures.

Scalars come first, in the kernel's order, then the addresses of buffers. An index is as wide as the target's indices, a
condition is a byte, and a bfloat16 is its 16 bits.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from ..dataclass import cached_property, dataclass
from ..errors import InternalError
from ..expr.nodes import Number
from ..expr.types import INDEX, DType
from ..ir.nodes import Kernel, Program
from .function import SLOT, ClosureSlot
from .indices import index_type
from .types import bfloat_pattern, scalar_type

_LARGEST = 4096  # bytes of a frame that every driver accepts
_FLOATS = {16: "e", 32: "f", 64: "d"}
_INTEGERS = {8: "b", 16: "h", 32: "i", 64: "q"}


def global_pointer(buffer: str) -> str:
    """The name under which the address of a captured buffer is bound."""
    return f"&{buffer}"


class KernelFrame:
    """The layout of the frame from which a kernel loads its captures."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel.name
        captures = [*(v.name for v in kernel.scalars), *(global_pointer(b.name) for b in kernel.buffers)]
        self._places = {name: k * SLOT for k, name in enumerate(captures)}
        self.size = max(SLOT * len(captures), SLOT)
        if self.size > _LARGEST:
            raise InternalError(f"{kernel.name} captures {len(captures)} values, more than a launch can pass")
        if any(v.lanes > 1 for v in kernel.scalars):
            raise InternalError(f"{kernel.name} captures a vector")

    def place(self, name: str, type_: str) -> int:
        if name not in self._places:
            raise InternalError(f"{self._kernel} uses {name}, which it does not capture")
        return self._places[name]


@dataclass(frozen=True)
class KernelEntry:
    """The properties of a kernel that a launch needs."""

    kernel: str  # its name in the program
    symbol: str  # its name in the code
    threads: int  # threads per block
    shared: int  # bytes of shared memory per block
    scalars: tuple[DType, ...]
    slots: tuple[ClosureSlot, ...]  # name, LLVM type and byte offset of each scalar, then of each buffer

    @property
    def size(self) -> int:
        """The size of the frame in bytes."""
        return max(SLOT * len(self.slots), SLOT)

    def pack(self, scalars: Sequence[Number], addresses: Sequence[int]) -> bytes:
        """Pack the frame of a launch from the captured values, in order. Raises struct.error if an index is too
        large."""
        values = [bfloat_pattern(float(v)) if k in self._bfloats else v for k, v in enumerate(scalars)]
        return self._struct.pack(*values, *addresses)

    @cached_property
    def _struct(self) -> struct.Struct:
        scalars = "".join([_format(t, slot.type_) for t, slot in zip(self.scalars, self.slots, strict=False)])
        addresses = len(self.slots) - len(self.scalars)
        return struct.Struct(f"<{scalars}{addresses}Q" if self.slots else f"<{SLOT}x")

    @cached_property
    def _bfloats(self) -> frozenset[int]:
        return frozenset(k for k, t in enumerate(self.scalars) if t.kind == "bfloat")


def entries(program: Program, index_bits: int) -> tuple[KernelEntry, ...]:
    """The entries of all kernels of a program, in order."""
    return tuple([_entry(kernel, k, index_bits) for k, kernel in enumerate(program.kernels)])


def _entry(kernel: Kernel, number: int, index_bits: int) -> KernelEntry:
    types = [_slot_type(v.dtype, index_bits) for v in kernel.scalars]
    named = [*zip([v.name for v in kernel.scalars], types, strict=True), *((b.name, "ptr") for b in kernel.buffers)]
    slots = tuple([ClosureSlot(name, type_, k * SLOT) for k, (name, type_) in enumerate(named)])
    scalars = tuple([v.dtype for v in kernel.scalars])
    return KernelEntry(kernel.name, _symbol(kernel.name, number), kernel.threads, kernel.shared, scalars, slots)


def _symbol(kernel: str, number: int) -> str:
    """A name that PTX accepts, whatever the kernel's name is. The number makes it unique."""
    return f"k{number}_{re.sub('[^A-Za-z0-9]+', '_', kernel)[:64]}"


def _slot_type(t: DType, index_bits: int) -> str:
    if t.kind == "bfloat":
        return "i16"
    return scalar_type(index_type(index_bits) if t is INDEX else t)


def _format(t: DType, type_: str) -> str:
    """The struct format of a slot."""
    if t.kind == "bfloat":
        code, size = "H", 2
    elif t.is_float:
        code, size = _FLOATS[t.bits], t.bytes
    elif t.is_bool:
        code, size = "?", 1
    else:
        bits = int(type_[1:])
        code, size = _INTEGERS[bits], bits // 8
        code = code if t.is_signed else code.upper()
    return f"{code}{SLOT - size}x"
