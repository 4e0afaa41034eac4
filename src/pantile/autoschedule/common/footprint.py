"""Footprints: the region of every stage and input that a tile of a group's output requires, for many tile sizes at
once.

    boxes(facts, {"blur_x", "out"}, "out", {"y": np.array([16, 32]), "x": 64})["blur_x"]  ->  extents ([18, 34], 64)

Tiles lie on the grid of their sizes, near the middle of the output, where clamps at the edges do not narrow them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from ... import progress
from ...analysis.interval import Interval
from ...analysis.regions import Box, with_own_updates
from .facts import PipelineFacts
from .shared_intervals import SharedIntervals

# One number, or one per tile size.
Numbers = Any


def boxes(
    facts: PipelineFacts,
    members: Collection[str],
    output: str,
    tile: Mapping[str, Numbers],
    new: Callable[[str, Box], Box] | None = None,
) -> dict[str, Box]:
    """Return the boxes of the members that were not inlined, and of the stages and inputs that they read. `tile` is by
    loops of the output, its dims and reduction loops; loops that it does not name are whole. `new` returns the part of
    a member's box that is computed, if the rest is kept from before; without it, the whole box is computed.
    """
    return Footprint(facts, members, output, tile, new).boxes


class Footprint:
    """The boxes of a group, and what they become when others join it."""

    def __init__(
        self,
        facts: PipelineFacts,
        members: Collection[str],
        output: str,
        tile: Mapping[str, Numbers],
        new: Callable[[str, Box], Box] | None = None,
        shared: SharedIntervals | None = None,
    ) -> None:
        """`shared` has the intervals that were found for other groups of the same output, in the same tiles."""
        self.facts, self.output, self.new = facts, output, new
        self.shared = SharedIntervals() if shared is None else shared

        def side(loop: str, whole: Interval) -> Interval:
            return self.shared.tile(loop, lambda: _middle(whole, tile[loop])) if loop in tile else whole

        self.parts = {r: side(r, whole) for r, whole in facts.reductions(output).items() if r in tile}
        sides = zip(facts.graph.stage[output].dims, facts.boxes[output], strict=True)
        self.boxes: dict[str, Box] = {output: tuple(side(d, r) for d, r in sides)}
        self._follow(members, self.boxes, {})

    def joined(self, members: Collection[str]) -> dict[str, Box]:
        """The boxes that are new or different if these members join, which only they themselves and the group read:
        their own boxes, and those of what they read."""
        changed: dict[str, Box] = {}
        self._follow(members, dict(self.boxes), changed)
        return changed

    def _follow(self, members: Collection[str], boxes: dict[str, Box], changed: dict[str, Box]) -> None:
        """Add the boxes of what members read, consumers first, and record them in `changed`."""
        progress.count("groups evaluated")
        limits = self.facts.boxes
        position = self.facts.position
        for name in sorted((m for m in members if m in position), key=position.__getitem__, reverse=True):
            if name not in boxes:
                continue
            box = boxes[name]
            if name != self.output:
                whole = with_own_updates(self.facts.graph.stage[name], box, self.facts.scope)
                if whole is not box:  # which is within the limits
                    box = self.shared.within(whole, limits[name])
                boxes[name] = changed[name] = box
            computed = box if self.new is None else self.new(name, box)
            parts = self.parts if name == self.output else {}
            for reads in self.facts.prepared_reads[name]:
                for buffer, b in reads.boxes(computed, self.facts.scope, parts, self.shared).items():
                    source = self.facts.source(buffer)
                    required = self.shared.hull(boxes[source], b) if source in boxes else b
                    boxes[source] = changed[source] = self.shared.within(required, limits[source])


def _middle(whole: Interval, size: Numbers) -> Interval:
    """The tile of this size, at least one point, that holds the middle. Tiles are counted from the low end."""
    size, count = np.maximum(size, 1), whole.high - whole.low + 1
    low = whole.low + (count // 2) // size * size
    return Interval(low, np.minimum(low + size - 1, whole.high))


def points(box: Box) -> Numbers:
    """How many points a box has."""
    count: Numbers = 1
    for r in box:
        count = count * np.maximum(r.high - r.low + 1, 0)
    return count


def size(facts: PipelineFacts, name: str, box: Box) -> Numbers:
    """The bytes of a box of a stage or input."""
    return points(box) * facts.bytes_per_point(name)


def tiles(facts: PipelineFacts, output: str, tile: Mapping[str, Numbers]) -> Numbers:
    """How many tiles cover the output, along its reduction loops too."""
    extents = facts.every_loop(output)
    count: Numbers = 1
    for loop, size in tile.items():
        count = count * -(-extents[loop] // np.asarray(size))
    return count
