"""Arrays on a device as calls see them. They have the attributes of NumPy arrays, but an address and a device in place
of memory that Python could read."""

from __future__ import annotations

import weakref
from math import gcd, prod
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from ...expr.types import DType
from ...target.gpu import LONGEST_ACCESS
from ..arguments import Array, NDArray
from ..outputs import Shape
from .device import Device
from .driver import checked


class Flags:
    """The flags of an array, as in NumPy."""

    __slots__ = ("aligned", "alignment", "writeable")

    def __init__(self, alignment: int, itemsize: int, writeable: bool) -> None:
        self.alignment, self.writeable = alignment, writeable
        self.aligned = alignment % itemsize == 0


class ArrayLayout:
    """The description of an array except its address. Arrays with equal layouts share one object, so that calls can be
    compared by identity. Strides are in bytes, as in NumPy."""

    __slots__ = ("dtype", "flags", "high", "itemsize", "low", "ndim", "ordinal", "shape", "size", "strides")

    def __init__(
        self,
        ordinal: int,
        alignment: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        writeable: bool,
    ) -> None:
        self.ordinal, self.shape, self.strides, self.dtype = ordinal, shape, strides, dtype
        self.flags = Flags(alignment, dtype.itemsize, writeable)
        self.ndim, self.itemsize, self.size = len(shape), dtype.itemsize, prod(shape)
        # The offsets of its first byte and of the end of its last one; equal if there are none.
        steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)] if self.size else []
        self.low = sum(s for s in steps if s < 0)
        self.high = sum(s for s in steps if s > 0) + self.itemsize if self.size else 0


_MOST_LAYOUTS = 4096
_layouts: dict[tuple[object, ...], ArrayLayout] = {}


def layout(
    ordinal: int,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    writeable: bool = True,
) -> ArrayLayout:
    """The layout of an array at this address."""
    key = ordinal, gcd(address, LONGEST_ACCESS), shape, strides, dtype, writeable
    known = _layouts.get(key)
    if known is None:
        if len(_layouts) >= _MOST_LAYOUTS:
            _layouts.clear()
        # If several threads create the layout, all use the first one.
        known = _layouts.setdefault(key, ArrayLayout(*key))
    return known


class View:
    """A view of an array of another library, or of one of our own arrays."""

    __slots__ = ("address", "keeps", "layout", "library", "original", "stream")

    def __init__(
        self,
        original: Any,
        library: Library,
        layout: ArrayLayout,
        address: int,
        stream: int | None = None,
        keeps: Any = None,
    ) -> None:
        self.original, self.library, self.layout, self.address = original, library, layout, address
        self.stream = stream  # the stream in which the array was made, if the array reports it
        self.keeps = keeps  # an object that must live as long as this view

    ordinal = property(attrgetter("layout.ordinal"))
    shape = property(attrgetter("layout.shape"))
    strides = property(attrgetter("layout.strides"))
    dtype = property(attrgetter("layout.dtype"))
    flags = property(attrgetter("layout.flags"))
    ndim = property(attrgetter("layout.ndim"))
    itemsize = property(attrgetter("layout.itemsize"))
    size = property(attrgetter("layout.size"))

    def converted(self, name: str, wanted: DType) -> str:
        return self.library.converted(name, wanted)

    def contiguous(self, name: str) -> str:
        return self.library.contiguous(name)

    def span(self) -> tuple[int, int]:
        """The addresses of the first byte and of the end of the last one; equal if there are none."""
        return self.address + self.layout.low, self.address + self.layout.high

    def stand_in(self) -> NDArray:
        """A NumPy array with the same address, for comparisons of memory ranges; it must not be read."""
        return np.asarray(_Place(self))


class Library(Protocol):
    """The interface to a library of arrays."""

    def view(self, wanted: Array, original: Any) -> View | None:
        """The view of an array on a GPU; None if it is elsewhere."""

    def new(self, wanted: DType, shape: Shape, ordinal: int, stream: int) -> View:
        """An uninitialized array in C order, for work in this stream."""

    def stream(self, ordinal: int) -> int:
        """The caller's current stream on this GPU."""

    def converted(self, name: str, wanted: DType) -> str:
        """The code with which a user converts an array to another type, for messages."""

    def contiguous(self, name: str) -> str:
        """The code with which a user makes a contiguous copy, for messages."""


class _Place:
    """An array interface for NumPy at an address that the host cannot read."""

    def __init__(self, view: View) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(view.shape),
            "strides": tuple(view.strides),
            "typestr": view.dtype.str,
            "data": (view.address, True),
        }


class Constant:
    """A constant table of a pipeline, copied to each device once."""

    def __init__(self, table: NDArray) -> None:
        self.table = np.ascontiguousarray(table)
        self.shape, self.strides, self.dtype, self.flags = (
            self.table.shape,
            self.table.strides,
            self.table.dtype,
            self.table.flags,
        )
        self.ndim, self.itemsize, self.size = self.table.ndim, self.table.itemsize, self.table.size
        self._on: dict[int, int] = {}  # addresses by device

    def on(self, device: Device) -> int:
        """The address of the copy on a device. The context of the device must be current."""
        address = self._on.get(device.ordinal)
        if address is None:
            cu, size = device.cu, max(1, self.table.nbytes)
            address = int(checked(cu.cuMemAlloc(size)))
            checked(cu.cuMemcpyHtoD(address, self.table.ctypes.data, self.table.nbytes))
            weakref.finalize(self, _free, device, address).atexit = False
            self._on[device.ordinal] = address
        return address


def _free(device: Device, address: int) -> None:
    entered = device.enter()
    device.cu.cuMemFree(address)
    device.leave(entered)
