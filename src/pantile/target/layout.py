"""Layouts: which register of which lane of which warp holds an element of a box.

An index is written in mixed radix, and each of its digits counts registers, lanes or warps:

    64 columns, two side by side per lane     columns: 2 registers, 32 lanes
    64 columns, the lanes' first ones first   columns: 32 lanes, 2 registers
    a warp of 16 x 2 x 1                      rows: 2 lanes of weight 16; columns: 16 lanes of weight 1
    a fragment of a matrix instruction        rows: 8 lanes of weight 4, 2 registers of weight 2
                                              columns: 2 registers, 4 lanes of weight 1, 2 registers of weight 4

Where all sizes are powers of two, a layout is a linear map of the bits of the indices.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, NamedTuple

from ..dataclass import value


class Unit(Enum):
    """What a digit of an index counts."""

    REGISTER = "register"
    LANE = "lane"
    WARP = "warp"


@value()
class Digit:
    """A digit of an index, of values 0 .. size - 1: `weight` times the digit is added to the number of its unit."""

    size: int
    unit: Unit
    weight: int = 1


class Place(NamedTuple):
    """Where an element is held. Numbers, or arrays of numbers."""

    warp: Any
    lane: Any
    register: Any


@value()
class Layout:
    """The digits of the index along every dim of a box, the least significant one first."""

    dims: tuple[tuple[Digit, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the box."""
        return tuple(math.prod(d.size for d in digits) for digits in self.dims)

    def count(self, unit: Unit) -> int:
        """The number of registers of a lane, of lanes of a warp or of warps that hold elements."""
        return 1 + sum((d.size - 1) * d.weight for digits in self.dims for d in digits if d.unit is unit)

    def place(self, *indices: Any) -> Place:
        """Where an element is held. Indices may be arrays."""
        numbers: dict[Unit, Any] = dict.fromkeys(Unit, 0)
        for index, digits in zip(indices, self.dims, strict=True):
            for d in digits:
                numbers[d.unit] = numbers[d.unit] + index % d.size * d.weight
                index = index // d.size
        return Place(numbers[Unit.WARP], numbers[Unit.LANE], numbers[Unit.REGISTER])
