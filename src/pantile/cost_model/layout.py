"""How the elements of a stage or input lie in memory: its dims, or parts that a schedule cuts them into, in order."""

from __future__ import annotations

from typing import NamedTuple

from .reads import Box


class MemoryDim(NamedTuple):
    """A dim of memory: the axis that it belongs to, its extent, and how far each step goes along the axis."""

    axis: int
    extent: int
    step: int


def run(parts: list[MemoryDim], box: Box) -> int:
    """The number of consecutive elements of a box in memory."""
    length = 1
    for axis, extent, step in reversed(parts):
        inside = min(extent, -(-box[axis] // step))
        length *= inside
        if inside < extent:
            break
    return length


def far_runs(parts: list[MemoryDim], box: Box, near: float) -> int:
    """The number of places, farther apart than `near` elements, that the runs of a box are in."""
    distance, count = 1, 1
    for axis, extent, step in reversed(parts):
        if distance > near:
            count *= min(extent, -(-box[axis] // step))
        distance *= extent
    return count
