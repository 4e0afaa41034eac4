"""Boxes of pixels with integer bounds, as the reference evaluator uses them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..dataclass import dataclass

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Box:
    """The points low <= p <= high, coordinate by coordinate; empty where some high is below its low."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(max(0, high - low + 1) for low, high in zip(self.low, self.high, strict=True))

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    def covers(self, other: Box) -> bool:
        """Whether every point of `other` is a point of this box."""
        return other.is_empty or (
            all(a <= b for a, b in zip(self.low, other.low, strict=True))
            and all(a >= b for a, b in zip(self.high, other.high, strict=True))
        )

    def contains(self, indices: tuple[Array, ...]) -> Array:
        """A mask of the indexed points that lie inside."""
        inside = np.asarray(True)
        for i, low, high in zip(indices, self.low, self.high, strict=True):
            inside = inside & (i >= low) & (i <= high)
        return np.asarray(inside)

    def clip(self, indices: tuple[Array, ...]) -> tuple[Array, ...]:
        """The nearest points inside."""
        return tuple(np.clip(i, low, high) for i, low, high in zip(indices, self.low, self.high, strict=True))

    def coordinates(self) -> list[Array]:
        """One array of coordinates per dim, which together broadcast to the box's shape."""
        ranges = [np.arange(low, low + n, dtype=np.int64) for low, n in zip(self.low, self.shape, strict=True)]
        return [r.reshape([-1 if k == axis else 1 for k in range(len(ranges))]) for axis, r in enumerate(ranges)]


def sized(shape: Iterable[int]) -> Box:
    """The box of the points 0 <= p < shape."""
    extents = tuple(shape)
    return Box((0,) * len(extents), tuple(n - 1 for n in extents))


def spanned(indices: tuple[Array, ...]) -> Box | None:
    """The smallest box around the indexed points; None if there are none."""
    if any(i.size == 0 for i in indices):
        return None
    return Box(tuple(int(i.min()) for i in indices), tuple(int(i.max()) for i in indices))


def hull(a: Box | None, b: Box) -> Box:
    """The smallest box around both."""
    if a is None or a.is_empty:
        return b
    if b.is_empty:
        return a
    return Box(tuple(map(min, a.low, b.low)), tuple(map(max, a.high, b.high)))
