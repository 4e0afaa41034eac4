"""A set of stages in one space: which of their dims go along which, how densely, and how far dependences reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from ...analysis.alignment import Alignment
from ...cached import cached_property

if TYPE_CHECKING:
    from .aligned import Stages

Distance = tuple[tuple[float, float], ...]  # per dim of the space: from, to


class Space:
    """An alignment in floats, to look up in."""

    def __init__(self, alignment: Alignment) -> None:
        self.axes = {n: {d: (k, float(s)) for d, (k, s) in a.items()} for n, a in alignment.axes.items()}
        self.distance = {
            (d.producer, d.consumer): tuple((float(a), float(b)) for a, b in d.distance) for d in alignment.dependences
        }

    def has(self, name: str, dims: Iterable[str]) -> bool:
        """Whether these dims of a stage go along some of the space."""
        return all(d in self.axes[name] for d in dims)


@dataclass(frozen=True)
class AlignedGroup:
    """A connected set of stages in one space, whose dims are those of the last stage, the output, in their order."""

    stages: Stages
    names: tuple[str, ...]
    space: Space

    @property
    def output(self) -> str:
        return self.names[-1]

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return self.stages.problem.graph.stage[self.output].dims

    @property
    def extents(self) -> tuple[int, ...]:
        return self.stages.extents[self.output]

    @cached_property
    def _place(self) -> dict[int, int]:
        """Which dim of the output an axis of the space is."""
        own = self.space.axes[self.output]
        return {own[d][0]: k for k, d in enumerate(self.dims) if d in own}

    @cached_property
    def _units(self) -> dict[int, float]:
        return dict(self.space.axes[self.output].values())

    @cached_property
    def axes(self) -> dict[str, dict[str, int]]:
        """Stage -> its dim -> dim of the output that it goes along; all points of other dims belong to any tile."""
        place = self._place
        found = {n: self.space.axes[n].items() for n in self.names}
        return {n: {d: place[axis] for d, (axis, _) in axes if axis in place} for n, axes in found.items()}

    @cached_property
    def density(self) -> dict[str, dict[int, float]]:
        """Stage -> dim of the output -> its points per point of the output."""
        place, units = self._place, self._units
        found = {n: self.space.axes[n].values() for n in self.names}
        return {
            n: {place[axis]: units[axis] / scale for axis, scale in axes if axis in place} for n, axes in found.items()
        }

    @cached_property
    def dependences(self) -> dict[tuple[str, str], Distance]:
        """Of (producer, consumer), in points of the output."""
        members, units = set(self.names), self._units
        found: dict[tuple[str, str], Distance] = {}
        for name in self.names:
            for producer in self.stages.facts.producers[name]:
                if producer in members:
                    far = self.space.distance[producer, name]
                    along = {k: (far[a][0] / units[a], far[a][1] / units[a]) for a, k in self._place.items()}
                    found[producer, name] = tuple(along.get(k, (0.0, 0.0)) for k in range(len(self.dims)))
        centred = _centred(self.names, len(self.dims), found)
        return {(p, c): _narrowed(d, self.density[p], self.density[c]) for (p, c), d in centred.items()}

    def along(self, name: str) -> dict[int, int]:
        """The extent of a stage along each dim of the space that it has."""
        axes, dims = self.axes[name], self.stages.problem.graph.stage[name].dims
        return {axes[d]: n for d, n in zip(dims, self.stages.extents[name], strict=True) if d in axes}

    def beside(self, name: str) -> int:
        """Points of a stage at one point of the space, in dims that the space does not have."""
        axes, dims = self.axes[name], self.stages.problem.graph.stage[name].dims
        return prod(n for d, n in zip(dims, self.stages.extents[name], strict=True) if d not in axes)

    def same_points(self, a: str, b: str) -> bool:
        """Whether two stages have the same dims of the space, as densely."""
        return self.density[a] == self.density[b]


def _centred(
    names: Sequence[str], rank: int, found: Mapping[tuple[str, str], Distance]
) -> dict[tuple[str, str], Distance]:
    """Every stage is shifted to the middle of its consumers: what is only read elsewhere does not overlap."""
    shifts = dict.fromkeys(names, (0.0,) * rank)
    ways: dict[str, list[tuple[str, Distance]]] = {n: [] for n in names}
    for (p, c), distance in found.items():
        ways[p].append((c, distance))
    centred = {}
    for name in reversed(names):
        mine = [(c, _moved(distance, shifts[c])) for c, distance in ways[name]]
        if mine:
            ends = [(min(d[k][0] for _, d in mine), max(d[k][1] for _, d in mine)) for k in range(rank)]
            shifts[name] = tuple((low + high) / 2 for low, high in ends)
        back = tuple(-s for s in shifts[name])
        centred.update({(name, c): _moved(distance, back) for c, distance in mine})
    return centred


def _narrowed(distance: Distance, producer: Mapping[int, float], consumer: Mapping[int, float]) -> Distance:
    """A consumer that is coarser than its producer steps over what its last point has read: that does not overlap."""
    steps = [max(0.0, 1 / consumer.get(k, 1.0) - 1 / producer.get(k, 1.0)) / 2 for k in range(len(distance))]
    middles = [(low + high) / 2 for low, high in distance]
    return tuple(
        (min(low + s, m), max(high - s, m)) for (low, high), s, m in zip(distance, steps, middles, strict=True)
    )


def _moved(distance: Distance, shift: Sequence[float]) -> Distance:
    return tuple((low + s, high + s) for (low, high), s in zip(distance, shift, strict=True))
