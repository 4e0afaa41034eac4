"""The cost of a group of stages per tile, for many tiles at once, and what it becomes if another group joins.

A cost is a sum over the stages and inputs of a footprint. If a stage reads two hundred others, each of which might
join, only the terms that change with the one that joins are computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ...analysis.regions import Box
from ...dataclass import cached_property, dataclass
from ..strategy import Problem
from .footprint import Footprint
from .shared_intervals import SharedIntervals

Numbers = Any


@dataclass(frozen=True)
class TileNeeds:
    """The loads and the footprint of one tile (group_tile_loads and group_tile_footprint of Listing 2,
    halide-autoscheduler §4.2.3)."""

    loaded: Numbers = 0  # values of other groups and inputs, and partial results of an update
    kept: Numbers = 0  # bytes of all that, and of what members keep for each other
    redone: Numbers = 0.0  # operations of members other than the output

    def plus(self, other: TileNeeds) -> TileNeeds:
        return TileNeeds(self.loaded + other.loaded, self.kept + other.kept, self.redone + other.redone)

    def minus(self, other: TileNeeds) -> TileNeeds:
        return TileNeeds(self.loaded - other.loaded, self.kept - other.kept, self.redone - other.redone)


class TiledCosts:
    """A group, whose last member is the output, in tiles of many sizes."""

    def __init__(
        self,
        problem: Problem,
        members: tuple[str, ...],
        tiles: Mapping[str, Numbers],
        lanes: int,
        shared: SharedIntervals | None = None,
    ) -> None:
        self.problem, self.members, self.lanes = problem, frozenset(members), lanes
        self.facts = problem.facts
        self.output = problem.graph.stage[members[-1]]
        self.footprint = Footprint(self.facts, members, self.output.name, tiles, shared=shared)

    @cached_property
    def terms(self) -> dict[str, TileNeeds]:
        return {name: self._needs(name, box, name in self.members) for name, box in self.footprint.boxes.items()}

    @cached_property
    def needs(self) -> TileNeeds:
        total = TileNeeds()
        for term in self.terms.values():
            total = total.plus(term)
        return total

    @cached_property
    def fills_vectors(self) -> Numbers:
        return self._fill_vectors(self.members, self.footprint.boxes)

    def with_others(self, others: Collection[str]) -> tuple[TileNeeds, Numbers]:
        """The loads and the footprint of tiles if others join, and whether all members then fill vectors."""
        changed = self.footprint.joined(others)
        total = self.needs
        for name, box in changed.items():
            total = total.plus(self._needs(name, box, name in others))
            if name in self.terms:
                total = total.minus(self.terms[name])
        return total, self.fills_vectors & self._fill_vectors(others, changed)

    def _needs(self, name: str, box: Box, is_member: bool) -> TileNeeds:
        points = self.footprint.shared.points(box)
        if name == self.output.name:
            return TileNeeds(points, points * self.facts.bytes_per_point(name)) if self.output.updates else TileNeeds()
        kept = points * self.facts.bytes_per_point(name)
        if not is_member:
            return TileNeeds(points, kept)
        return TileNeeds(0, kept, points * (self.facts.work(name) / self.facts.points(name)))

    def _fill_vectors(self, members: Collection[str], boxes: Mapping[str, Box]) -> Numbers:
        """Whether the innermost dims of all members fill a vector, as §4.2.3 requires of the output."""
        result: Numbers = True
        for name in members:
            if boxes.get(name):
                row = self.problem.row(name)
                last, whole = boxes[name][row], self.facts.extents(name)[row]
                result = result & np.asarray(self.footprint.shared.extent(last) >= min(self.lanes, whole))
        return result
