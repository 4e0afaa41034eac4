"""How the elements of a stage or input lie in memory: its dims, or parts that a schedule cuts them into, in order."""

from __future__ import annotations

from typing import NamedTuple

from .nest import Nests
from .reads import Box


class MemoryDim(NamedTuple):
    """A dim of memory: the axis that it belongs to, its extent, and how far each step goes along the axis."""

    axis: int
    extent: int
    step: int


def layout(nests: Nests, name: str) -> list[MemoryDim]:
    """The dims of memory, the contiguous one last; for a stage that is stored in a loop, those of what it has there."""
    return _layout(nests, name, nests.stored(name) if name in nests.plan.stages else nests.facts.whole[name])


def whole_layout(nests: Nests, name: str) -> list[MemoryDim]:
    """The layout of a stage if all of it were stored."""
    return _layout(nests, name, nests.facts.whole[name])


def _layout(nests: Nests, name: str, box: Box) -> list[MemoryDim]:
    if (name, box) not in nests.layouts:
        nests.layouts[name, box] = _find_layout(nests, name, box)
    parts: list[MemoryDim] = nests.layouts[name, box]
    return parts


def _find_layout(nests: Nests, name: str, whole: Box) -> list[MemoryDim]:
    p = nests.plan.stages.get(name)
    if p is None:
        return [MemoryDim(axis, n, 1) for axis, n in enumerate(whole)]
    dims = nests.facts.graph.stage[name].dims
    parts = {d: MemoryDim(axis, n, 1) for axis, (d, n) in enumerate(zip(dims, whole, strict=True))}
    for s in p.storage_splits:
        axis, n, step = parts[s.dim]
        outer, inner = MemoryDim(axis, -(-n // s.factor), step * s.factor), MemoryDim(axis, min(n, s.factor), step)
        parts[s.outer], parts[s.inner] = outer, inner
    return [parts[d] for d in p.storage]


def memory_strides(nests: Nests, name: str) -> Box:
    """The strides in memory of neighbours along each axis, in elements, where all is stored."""
    if name not in nests.strides:
        nests.strides[name] = _memory_strides(nests, name)
    return nests.strides[name]


def _memory_strides(nests: Nests, name: str) -> Box:
    strides, distance = [0] * len(nests.facts.whole[name]), 1
    for part in reversed(whole_layout(nests, name)):
        if part.step == 1:
            strides[part.axis] = distance
        distance *= part.extent
    return tuple(strides)


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
