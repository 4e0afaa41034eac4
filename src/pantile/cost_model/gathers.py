"""Gathers: the bytes of the cache lines that are touched at places which data decide, or floats of coordinates.

table[img[y, x], c]                     a line for each pixel, whatever the number of channels
table[img[y, x], c] + table[img[y, x] + 1, c]       the same one, where these lie side by side
img[floor(a*x + b*y), floor(c*x + d*y)] neighbours lead to neighbours: a line for each pixel at the border of a tile
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ..dataclass import dataclass
from .reads import MemoryAccess

NEAR = 8  # elements, at most, from one to the next along an axis that stays in a line, such as that of channels


@dataclass(frozen=True)
class GatheredAccesses:
    """The gathered accesses of one source: the number of places in lines of their own, the loops by which these differ,
    the loops that continue from there within a line, and the bytes of an element. `is_smooth`: no data take part."""

    places: int
    variables: frozenset[str]
    near: frozenset[str]
    element: int
    is_smooth: bool

    def bytes(self, extents: Mapping[str, int], line: int) -> float:
        """The most bytes that are touched while loops run over such extents."""
        count = self.places * prod(extents.get(v, 1) for v in self.variables)
        each = self.element * prod(extents.get(v, 1) for v in self.near)
        apart = count * max(line, each)
        if not self.is_smooth:
            return apart
        border = self.places * line * sum(extents.get(v, 1) for v in self.variables)
        return min(apart, count * each + border)


def scattered(accesses: Sequence[MemoryAccess], strides: Sequence[int]) -> GatheredAccesses:
    """Summarize the accesses of a source with such strides along each axis."""
    far = [axis for axis, stride in enumerate(strides) if stride > NEAR]
    places = {tuple(_place(a, axis, axis in far) for axis in range(len(strides))) for a in accesses}
    variables = frozenset(v for a in accesses for v in a.variables)
    moved = {v for a in accesses for v in a.variables if v in a.decided or any(a.forms[k].slope(v) for k in far)}
    smooth = all(a.is_smooth for a in accesses)
    return GatheredAccesses(len(places), variables & moved, variables - moved, accesses[0].dtype.bytes, smooth)


def _place(a: MemoryAccess, axis: int, is_far: bool) -> object:
    """The place of an index; along an axis whose neighbours are in the same line, only what it is computed from."""
    return (a.family[1 + axis], a.forms[axis].low) if is_far else a.origins[axis]
