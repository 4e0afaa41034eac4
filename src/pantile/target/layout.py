"""Layouts: which register of which thread holds each element of a box.

An index is written in mixed radix, and each of its digits counts registers or threads:

    64 columns, two adjacent ones per thread    columns: 2 registers, 32 threads
    64 columns, 32 apart in a thread            columns: 32 threads, 2 registers
    a warp of 16 x 2 x 1                        rows: 2 threads of weight 16; columns: 16 threads of weight 1
    a fragment of a matrix instruction          rows: 8 threads of weight 4, 2 registers of weight 2
                                                columns: 2 registers, 4 threads of weight 1, 2 registers of weight 4
    a swizzle                                   rows: 8 registers of weight 8; columns: 8 registers, xor the row

Threads are numbered as in a block: thread 40 is lane 8 of warp 1. If all sizes are powers of two, a layout is a linear
map of the bits of the indices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from ..dataclass import value
from .gpu import WARP_SIZE


class Unit(Enum):
    """The unit that a digit of an index counts."""

    REGISTER = "register"
    THREAD = "thread"


@value()
class Digit:
    """A digit of an index, with values 0 .. size - 1. It adds `weight` times its value to the number of the register or
    thread. In a swizzle, the value is first combined by exclusive or with the lowest bits of the index along dim `xor`,
    and the size must be a power of two."""

    size: int
    unit: Unit
    weight: int = 1
    xor: int | None = None

    def __str__(self) -> str:
        apart = f", {self.weight} apart" if self.weight > 1 and self.unit is Unit.THREAD else ""
        swizzle = "" if self.xor is None else f" xor dim {self.xor}"
        return f"{self.size} {self.unit.value}{'s' if self.size > 1 else ''}{apart}{swizzle}"


class Place(NamedTuple):
    """The thread and register that hold an element: numbers, or arrays of numbers."""

    thread: Any
    register: Any

    @property
    def warp(self) -> Any:
        return self.thread // WARP_SIZE

    @property
    def lane(self) -> Any:
        return self.thread % WARP_SIZE


@value()
class Layout:
    """The digits of the index along every dim of a box, least significant first.

    In the layout of a buffer, the part of an index above its digits counts registers; `of_box` adds those digits.
    """

    dims: tuple[tuple[Digit, ...], ...]

    def __str__(self) -> str:
        dims = [", ".join(map(str, digits)) or "registers" for digits in self.dims]
        return f"over ({'; '.join(dims)})" if any(self.dims) else "of each thread"

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the box."""
        return tuple(math.prod(d.size for d in digits) for digits in self.dims)

    def count(self, unit: Unit) -> int:
        """The number of registers per thread, or of threads, that hold elements."""
        return 1 + sum((d.size - 1) * d.weight for digits in self.dims for d in digits if d.unit is unit)

    def steps(self, dim: int) -> Iterator[tuple[int, Digit]]:
        """The thread digits along a dim, each preceded by the distance between the elements of adjacent threads."""
        step = 1
        for d in self.dims[dim]:
            if d.unit is Unit.THREAD:
                yield step, d
            step *= d.size

    def place(self, *indices: Any) -> Place:
        """The thread and register that hold an element. Indices may be arrays."""
        numbers: dict[Unit, Any] = dict.fromkeys(Unit, 0)
        for index, digits in zip(indices, self.dims, strict=True):
            for d in digits:
                value = index % d.size if d.xor is None else index % d.size ^ indices[d.xor] % d.size
                numbers[d.unit] = numbers[d.unit] + value * d.weight
                index = index // d.size
        return Place(numbers[Unit.THREAD], numbers[Unit.REGISTER])

    def of_box(self, extents: Sequence[int]) -> Layout:
        """The layout of a box of these extents, with all digits filled in; registers are numbered row by row."""
        dims, weight = list[tuple[Digit, ...]](), 1
        for extent, digits in reversed(list(zip(extents, self.dims, strict=True))):
            rest = -(-extent // math.prod(d.size for d in digits))
            made = list[Digit]()
            for d in (*digits, Digit(rest, Unit.REGISTER)):
                made.append(d if d.unit is Unit.THREAD else Digit(d.size, d.unit, weight, d.xor))
                weight *= 1 if d.unit is Unit.THREAD else d.size
            dims.insert(0, tuple(made))
        return Layout(tuple(dims))
