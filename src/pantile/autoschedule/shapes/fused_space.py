"""A live-out space and what is fused with it: its tiling schedule and extension schedules (Mixed Schedules)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import islpy as isl

from ...analysis.polyhedra import AffineStatement, box_set
from ...dataclass import cached_property, dataclass
from ..common.tiles import TiledGroup
from .spaces import PolyhedralProgram, Space
from .tile_boxes import ComputedBoxes, KeptBoxes
from .tile_time import FusedWork, instructions

MOST_COUNTED = 1 << 16  # points of a box in which the needed ones are counted


@dataclass
class FusedSpace:
    """A live-out space with the stages fused into its tiles. Relations hold what tiles need, and more if `simplified`
    had to enlarge them; loops compute boxes."""

    program: PolyhedralProgram
    liveout: Space
    tile: Mapping[str, int]
    stages: tuple[str, ...]  # producers first
    exposed: dict[str, isl.Map] = field(default_factory=dict)  # (4), by stage or input
    extensions: dict[str, isl.Map] = field(default_factory=dict)  # (6), by statement
    load: FusedWork = field(default_factory=FusedWork)
    repeated: dict[str, float] = field(default_factory=dict)  # fused stage -> how often tiles compute a point of it
    remarks: list[str] = field(default_factory=list)

    @property
    def recomputed(self) -> float:
        """The instructions that overlapping tiles repeat, relative to running all once."""
        facts = self.program.problem.facts
        again = sum(instructions(facts, n) * max(0.0, times - 1) for n, times in self.repeated.items())
        return float(again / self.load.once) if self.load.once else 0.0

    @cached_property
    def computed(self) -> ComputedBoxes:
        return ComputedBoxes(self.program.problem.facts, self.liveout.output, self.tile)

    def add(self, name: str) -> None:
        """Compute a stage in the tiles, in which all its readers are computed."""
        self.computed.add(name)
        self._kept.add(name)

    def stored(self, name: str) -> int:
        """The bytes of memory that a tile has for a stage."""
        return self._kept.most(name) * self.program.problem.facts.bytes_per_point(name)

    @cached_property
    def _kept(self) -> ComputedBoxes | KeptBoxes:
        problem = self.program.problem
        return KeptBoxes(problem.facts, self.liveout.output, self.tile) if problem.target.has_blocks else self.computed

    @property
    def cut(self) -> dict[str, int]:
        """The dims that have several tiles."""
        return {d: n for (d, n), count in zip(self.tile.items(), self.computed.counts, strict=True) if count > 1}

    @property
    def group(self) -> TiledGroup:
        members = tuple(n for n in self.stages if n != self.liveout.output)
        return TiledGroup(self.liveout.output, members, (self.cut,) if self.cut else ())

    def tiling(self, statement: AffineStatement) -> isl.Map:
        """(2): the tile of each instance of the live-out stage."""
        facts = self.program.problem.facts
        local = isl.LocalSpace.from_space(statement.domain.get_space())
        dims = facts.graph.stage[statement.stage].dims
        lows = {d: int(r.low) for d, r in zip(dims, facts.boxes[statement.stage], strict=True)}
        relation = isl.Map.from_domain(statement.domain)
        for dim, size in self.tile.items():
            at = isl.Aff.var_on_domain(local, isl.dim_type.set, statement.loops.index(dim))
            place = at.add_constant_val(-lows[dim]).scale_down_val(size).floor()
            relation = relation.flat_range_product(isl.Map.from_aff(place))
        return relation.set_tuple_name(isl.dim_type.out, "tile")

    def at(self, relation: isl.Map, *tile: int) -> isl.Set:
        """The part of a relation from tiles, (4) or (6), for one tile."""
        return relation.intersect_domain(box_set("tile", tuple(range(o, o + 1) for o in tile))).range()

    def shown(self, name: str) -> str:
        """Describe the extension schedule of a stage by its extents for a tile that computes most of it."""
        dims = self.program.problem.graph.stage[name].dims
        tile, box = self.computed.largest(name)
        extents = " x ".join(f"{d} {len(r)}" for d, r in zip(dims, box, strict=True))
        text = f"extension schedule of {name}: {extents} per tile"
        everything = box_set(name, box)
        needed = self.at(self.extensions[self.program.statements[name][0].name], *tile).intersect(everything)
        if not everything.is_subset(needed):
            text += f", the box around {self._count(needed, box)} that it needs"
        return text + self._in_all(name)

    def _count(self, needed: isl.Set, box: tuple[range, ...]) -> str:
        count = 1
        for r in box:
            count *= len(r)
        return f"at most {needed.count_val().to_python()} points" if count <= MOST_COUNTED else "the points"

    def _in_all(self, name: str) -> str:
        times = self.repeated[name]
        if times > 1:
            return f", {times:.3g} times in all"
        dead = round((1 - times) * self.program.problem.facts.points(name))
        return f"; at least {dead} points that no tile needs are not computed" if dead > 0 else ""
