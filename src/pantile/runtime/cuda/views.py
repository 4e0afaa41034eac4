"""Arrays on a device as calls see them: what NumPy's arrays say of themselves, and an address and a device instead of
memory that Python could read."""

from __future__ import annotations

import weakref
from math import gcd, prod
from typing import Any, Protocol

import numpy as np

from ...expr.types import DType
from ..arguments import ALIGNED, WRITEABLE, Array, NDArray
from ..outputs import Shape
from .device import Device
from .driver import checked

LONGEST_ACCESS = 16  # bytes that a thread moves at once; code does not care for larger alignments


class Flags:
    """As of a NumPy array; the number tells devices and alignments apart, too."""

    __slots__ = ("aligned", "alignment", "num", "writeable")

    def __init__(self, ordinal: int, alignment: int, itemsize: int, writeable: bool) -> None:
        self.alignment, self.writeable = alignment, writeable
        self.aligned = alignment % itemsize == 0
        where = (ordinal + 1) << 16 | alignment.bit_length() << 24
        self.num = where | self.aligned * ALIGNED | writeable * WRITEABLE


_flags: dict[tuple[int, int, int, bool], Flags] = {}


def flags(ordinal: int, address: int, itemsize: int, writeable: bool) -> Flags:
    """The same object for the same flags."""
    key = ordinal, gcd(address, LONGEST_ACCESS), itemsize, writeable
    found = _flags.get(key)
    if found is None:
        found = _flags[key] = Flags(*key)
    return found


class View:
    """An array of another library, or of ours. Strides are in bytes, as NumPy's."""

    __slots__ = ("address", "dtype", "flags", "given", "keeps", "library", "ordinal", "shape", "stream", "strides")

    def __init__(
        self, given: Any, library: Library, ordinal: int, address: int, shape: tuple[int, ...],
        strides: tuple[int, ...], dtype: np.dtype[Any], writeable: bool = True, stream: int | None = None,
        keeps: Any = None,
    ) -> None:  # fmt: skip
        self.given, self.library, self.ordinal, self.address = given, library, ordinal, address
        self.shape, self.strides, self.dtype = shape, strides, dtype
        self.flags = flags(ordinal, address, dtype.itemsize, writeable)
        self.stream = stream  # that the array was made in, where it says so itself
        self.keeps = keeps  # what has to be there for as long as this

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        return prod(self.shape)

    def converted(self, name: str, wanted: DType) -> str:
        return self.library.converted(name, wanted)

    def contiguous(self, name: str) -> str:
        return self.library.contiguous(name)

    def span(self) -> tuple[int, int]:
        """The addresses from the first byte to behind the last one; the same twice if there are none."""
        if not self.size:
            return self.address, self.address
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(s for s in steps if s < 0)
        return low, self.address + sum(s for s in steps if s > 0) + self.itemsize

    def stand_in(self) -> NDArray:
        """A NumPy array at the same address, of which nothing may be read: to compare places in memory."""
        return np.asarray(_Place(self))


class Library(Protocol):
    """Whose arrays are given."""

    def view(self, wanted: Array, given: Any) -> View | None:
        """Of an array on a GPU; None where it is somewhere else."""

    def new(self, wanted: DType, shape: Shape, ordinal: int, stream: int) -> View:
        """An uninitialized array in C order, for work in this stream."""

    def stream(self, ordinal: int) -> int:
        """The one that the caller's work is in, on this GPU."""

    def converted(self, name: str, wanted: DType) -> str:
        """How users write an array of theirs in another type."""

    def contiguous(self, name: str) -> str:
        """How they write a contiguous copy of it."""


class _Place:
    """What tells NumPy where an array would be."""

    def __init__(self, view: View) -> None:
        self.__array_interface__ = {
            "version": 3, "shape": tuple(view.shape), "strides": tuple(view.strides), "typestr": view.dtype.str,
            "data": (view.address, True),
        }  # fmt: skip


class Constant:
    """A table that a pipeline brings along: it is copied to each device once."""

    def __init__(self, table: NDArray) -> None:
        self.table = np.ascontiguousarray(table)
        self.shape, self.strides, self.dtype, self.flags = (
            self.table.shape, self.table.strides, self.table.dtype, self.table.flags
        )  # fmt: skip
        self.ndim, self.itemsize, self.size = self.table.ndim, self.table.itemsize, self.table.size
        self._on: dict[int, int] = {}  # addresses by device

    def on(self, device: Device) -> int:
        """The address of the copy there, whose context is entered."""
        found = self._on.get(device.ordinal)
        if found is None:
            cu, size = device.cu, max(1, self.table.nbytes)
            found = int(checked(cu.cuMemAlloc(size)))
            checked(cu.cuMemcpyHtoD(found, self.table.ctypes.data, self.table.nbytes))
            weakref.finalize(self, _free, device, found).atexit = False
            self._on[device.ordinal] = found
        return found


def _free(device: Device, address: int) -> None:
    entered = device.enter()
    device.cu.cuMemFree(address)
    device.leave(entered)
