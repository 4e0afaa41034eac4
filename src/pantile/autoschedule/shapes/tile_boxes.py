"""The boxes that tile loops compute of every stage, tile by tile.

An extension schedule (6) is any set of instances. `compute_at` computes the box around what the tile reads, as interval
analysis finds it. The cost model and `explain` count that box.

    out[x] = f[4 * x] in tiles of 16: a tile needs 16 points of f, and computes 61
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from ...analysis.interval import Interval
from ...analysis.regions import Box, hull, with_own_updates
from ..common.facts import PipelineFacts
from ..common.footprint import points

PLACES = 64  # starting points of a tile: coarse levels of pyramids move by a point once in several of these
MOST_ALONG = 16  # tiles along one dim that are sampled, from end to end

Numbers = np.ndarray[Any, Any]


class Boxes:
    """The boxes of the stages of a group, for many tiles at once. Stages are added from consumers to producers.

    `common.footprint.boxes` computes the same for a complete group. Here the group may grow: stages that are not added
    cost nothing.
    """

    def __init__(self, facts: PipelineFacts, output: str, box: Box) -> None:
        self.facts = facts
        self.boxes: dict[str, Box] = {output: box}  # of stages and inputs
        self.added: set[str] = set()
        self._read(output)

    def add(self, name: str) -> None:
        """Add a stage, all of whose readers have been added."""
        if name not in self.added:
            grown = with_own_updates(self.facts.graph.stage[name], self.boxes[name], self.facts.scope)
            self.boxes[name] = _within(grown, self.facts.boxes[name])
            self._read(name)

    def _read(self, name: str) -> None:
        self.added.add(name)
        for reads in self.facts.prepared_reads[name]:
            for buffer, box in reads.boxes(self.boxes[name], self.facts.scope, {}).items():
                source = self.facts.source(buffer)
                required = hull(self.boxes[source], box) if source in self.boxes else box
                self.boxes[source] = _within(required, self.facts.boxes[source])


def _within(box: Box, limits: Box) -> Box:
    return tuple(a.meet(b) for a, b in zip(box, limits, strict=True))


class ComputedBoxes(Boxes):
    """The boxes that tiles of one size compute."""

    def __init__(self, facts: PipelineFacts, output: str, tile: Mapping[str, int]) -> None:
        stage = facts.graph.stage[output]
        extents = dict(zip(stage.dims, facts.extents(output), strict=True))
        self.counts = tuple(-(-extents[d] // n) for d, n in tile.items())
        along = [_sample(count) for count in self.counts]
        grid = np.meshgrid(*(at for at, _ in along), indexing="ij")
        self.tiles = [np.asarray(g).ravel() for g in grid]
        weights: Numbers = reduce(np.multiply.outer, (w for _, w in along), np.ones(()))
        self.weights = weights.ravel()
        place = dict(zip(tile, self.tiles, strict=True))
        box = tuple(
            _cut(r, place[d], tile[d]) if d in tile else r for d, r in zip(stage.dims, facts.boxes[output], strict=True)
        )
        super().__init__(facts, output, box)

    def points(self, name: str) -> Numbers:
        """The number of points of a stage that each tile computes."""
        return np.broadcast_to(np.asarray(points(self.boxes[name]), float), self.weights.shape)

    def in_all(self, name: str) -> float:
        """The number of points that all tiles compute."""
        return float(np.sum(self.points(name) * self.weights))

    def without_edges(self, name: str) -> float:
        """The number of points that all tiles compute if those at the edges of an image count as much as their
        neighbours."""
        shape = [len(np.unique(t)) for t in self.tiles]
        count = self.points(name).reshape(shape).copy()
        for along in range(len(shape)):
            rows = np.moveaxis(count, along, 0)
            if len(rows) > 2:
                rows[0], rows[-1] = rows[1], rows[-2]
        return float(np.sum(count.ravel() * self.weights))

    def most(self, name: str) -> int:
        """The number of points of the largest tile."""
        return int(self.points(name).max())

    def largest(self, name: str) -> tuple[tuple[int, ...], tuple[range, ...]]:
        """The tile that computes the most points of a stage (the middle one of several), and its box."""
        count = self.points(name)
        at = np.flatnonzero(count == count.max())
        which = int(at[len(at) // 2])
        sides = ((_of(r.low, which), _of(r.high, which)) for r in self.boxes[name])
        return tuple(int(t[which]) for t in self.tiles), tuple(range(low, high + 1) for low, high in sides)


class KeptBoxes(Boxes):
    """The boxes for which a block of a GPU has memory. They are large enough for a tile wherever it starts, since a
    last tile that is shifted inwards may start at any point.

        out[x] = f[x // 2] in tiles of 16: a tile from an even point on needs 8 points of f, the others need 9
    """

    def __init__(self, facts: PipelineFacts, output: str, tile: Mapping[str, int]) -> None:
        dims = facts.graph.stage[output].dims
        box = tuple(_anywhere(r, tile[d]) if d in tile else r for d, r in zip(dims, facts.boxes[output], strict=True))
        super().__init__(facts, output, box)

    def most(self, name: str) -> int:
        """The number of points of the largest box."""
        return int(np.prod([np.max(np.maximum(r.high - r.low + 1, 0)) for r in self.boxes[name]]))


def _anywhere(whole: Interval, size: int) -> Interval:
    """Tiles that start at consecutive points in the middle."""
    last = max(whole.low, whole.high - size + 1)
    low = np.minimum((whole.low + last) // 2 + np.arange(PLACES), last)
    return Interval(low, np.minimum(low + size - 1, whole.high))


def _sample(count: int) -> tuple[Numbers, Numbers]:
    """A sample of the tiles along a dim, and the number of tiles that each stands for. Those at the ends stand for
    themselves."""
    if count <= MOST_ALONG:
        return np.arange(count), np.ones(count)
    inside = np.unique(np.linspace(1, count - 2, MOST_ALONG - 2).round().astype(np.int64))
    borders = np.concatenate([[0.5], (inside[1:] + inside[:-1]) / 2, [count - 1.5]])
    return np.array([0, *inside, count - 1]), np.array([1.0, *np.diff(borders), 1.0])


def _cut(whole: Interval, place: Numbers, size: int) -> Interval:
    """The interval of each tile. The last one is shifted inwards, as in the loops."""
    last = max(whole.low, whole.high - size + 1)
    low = np.minimum(whole.low + place * size, last)
    return Interval(low, np.minimum(low + size - 1, whole.high))


def _of(end: Any, which: int) -> int:
    return int(end[which]) if isinstance(end, np.ndarray) and end.ndim else int(end)
