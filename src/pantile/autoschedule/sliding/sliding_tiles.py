"""Tiles of a segment inside which stages slide: the sizes to compare, the loads and recomputation of each, and the
sizes of their buffers (sioutas-thesis §5.3), for all sizes at once.

    blur_x at the rows of tiles of blur_y -> T_x * (T_y + 2) values computed per tile (5.3), T_y + 2 rows loaded (5.6),
                                           3 * T_x values kept (5.9)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np

from ...analysis.regions import Box
from ...dataclass import cached_property
from ...schedule.stage_default import lanes
from ..common.cpu_marking import MOST_UNROLLED
from ..common.facts import PipelineFacts
from ..common.footprint import Footprint, tiles
from ..common.shared_intervals import SharedIntervals
from ..strategy import Problem
from .overlap import WHOLE, Motion, StageReuse, motions
from .sliding_loops import INLINE, Level, SegmentLoops, through_inlined

Numbers = Any


class SlidingTiles:
    """The tiles of a segment: its stages, the output last."""

    def __init__(self, problem: Problem, known: StageReuse, members: tuple[str, ...]) -> None:
        self.problem, self.known, self.members = problem, known, members
        self.facts: PipelineFacts = problem.facts
        self.graph = problem.graph
        self.output = self.graph.stage[members[-1]]
        self.producers = members[:-1]
        self.extents = dict(zip(self.output.dims, self.facts.extents(self.output.name), strict=True))
        self.lanes = lanes(self.output, self.output.definitions[-1], problem.target)
        dims = self.output.dims
        self.column = dims[problem.row(self.output.name)] if dims else ""
        self.short = tuple(d for d in dims if self.extents[d] <= MOST_UNROLLED)
        self.long = tuple(d for d in dims if d not in self.short)
        self._footprints: dict[tuple[frozenset[str], frozenset[str], str], Footprint] = {}
        self._iterations: dict[tuple[frozenset[str], str], Numbers] = {}
        self._asked: Mapping[str, Level] = {}  # the levels of the last query, and which stages slide along each
        self._sliding: dict[int, frozenset[str]] = {}

    @cached_property
    def motions(self) -> dict[str, dict[str, Motion]]:
        return motions(self.graph, self.members, self.output.name)

    # ---- sizes

    @cached_property
    def sizes(self) -> dict[str, Numbers]:
        """The sizes of tiles, one array per loop, each along an axis of its own: values that depend on one loop are
        computed once for each of its sizes, and only products are computed for all combinations."""
        axes = np.meshgrid(*(self._sizes(d) for d in self.long), indexing="ij", sparse=True)
        return dict(zip(self.long, axes, strict=True))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of sizes along each loop."""
        return np.broadcast_shapes(*(a.shape for a in self.sizes.values()))

    @cached_property
    def unit(self) -> int:
        """Tile sizes along the column are multiples of this: lines and vectors."""
        return max(self.problem.cpu.l1.line // max(t.bytes for t in self.output.dtypes), self.lanes)

    def _sizes(self, dim: str) -> list[int]:
        """The sizes along a loop, by the first constraint for the innermost loop and the third for all. There are at
        least two tiles, or one."""
        extent, threads = self.extents[dim], self.problem.cpu.threads
        unit = self.unit if dim == self.column else 1
        powers = [unit << k for k in range(16)]
        shares = [-(-extent // (threads << k)) for k in range(4)]
        rounded = {-(-n // unit) * unit for n in (*powers, *shares)}
        return [*sorted(n for n in rounded if self._least(dim) <= n <= extent // 2), extent]

    def _least(self, dim: str) -> int:
        """Equation 5.15: the largest overlap along a loop."""
        return self._overlaps.get(dim, 1)

    @cached_property
    def _overlaps(self) -> dict[str, int]:
        """The largest overlap along each loop, except for overlaps of the whole extent."""
        largest: dict[str, int] = {}
        for name in self.producers:
            for c, dims in self.known.overlaps[name].items():
                for d, amount in dims.items():
                    if amount < WHOLE and c in self.motions and d in self.motions[c]:
                        loop = self.motions[c][d].dim
                        largest[loop] = max(largest.get(loop, amount), amount)
        return largest

    def keep_threads_busy(self, outermost: str) -> Numbers:
        """Whether all threads have a tile (Equation 5.14): there are at least as many along the outermost loop."""
        return self.extents[outermost] / self.sizes[outermost] >= self.problem.cpu.threads

    def constraints(self, outermost: str) -> tuple[str, ...]:
        """The constraints of tiles, in words."""
        threads, l2 = self.problem.cpu.threads, self.problem.cpu.l2.per_core
        least = [f"{d} >= {self._least(d)} (overlap, 5.15)" for d in self.long if self._least(d) > 1]
        lines = [f"{self.column} a multiple of {self.unit} or whole (lines and vectors)"] * (self.column in self.long)
        busy = f"{self.extents[outermost]} / {outermost} >= {threads} (threads, 5.14)"
        return (*lines, busy, *least, f"other bytes <= {l2} (L2)")

    # ---- costs

    def costs(self, nest: SegmentLoops, levels: Mapping[str, Level]) -> tuple[Numbers, Numbers]:
        """The costs of all stages: loads (Cl), and values that are computed more than once (Cp - Croot)."""
        loads: Numbers = np.zeros(self.shape)
        recomputed = loads.copy()
        for name in self.members:
            level = levels.get(name, Level(nest.tile, nest.tile))
            if level == INLINE:
                continue
            needed = self.footprint(nest, levels, level.store)
            work = self.work(name, levels)
            computed = needed.shared.points(needed.boxes[name]) * self.iterations(nest, level.store)
            recomputed = recomputed + work * (computed - self.facts.points(name))
            loads = loads + sum(self.load_cost(p, nest, levels, level) for p in self.sources(name, levels))
        return loads, recomputed

    def load_cost(self, source: str, nest: SegmentLoops, levels: Mapping[str, Level], level: Level) -> Numbers:
        """Equation 5.6: rows, if the prefetchers can follow; 5.13: values, if contiguous ones are not read one after
        another."""
        at = max(level.store, nest.innermost + 1)
        needed = self.footprint(nest, levels, at)
        box = needed.boxes[source]
        follows = nest.intra[-1] == self.column or nest.level(self.column) < level.compute
        read = box[: self.problem.row(source)] if follows else box
        return needed.shared.points(read) * self.iterations(nest, at)

    def buffers(self, nest: SegmentLoops, levels: Mapping[str, Level]) -> tuple[Numbers, Numbers]:
        """The bytes of folded buffers (equation 5.9: what one iteration of the compute level needs), and of all
        others."""
        folded: Numbers = np.zeros(self.shape)
        unfolded = folded.copy()
        for name in self.producers:
            level = levels[name]
            if level != INLINE:
                needed = self.footprint(nest, levels, level.compute)
                bytes = needed.shared.points(needed.boxes[name]) * self.facts.bytes_per_point(name)
                folded = folded + bytes if level.is_folded else folded
                unfolded = unfolded + bytes if not level.is_folded else unfolded
        return folded, unfolded

    def footprint(self, nest: SegmentLoops, levels: Mapping[str, Level], level: int) -> Footprint:
        """What one iteration of a level needs of every stage. Stages that slide along it keep what they have."""
        inside = nest.inside(level)
        sliding = self.sliding_along(levels, level)
        key = (inside, sliding, nest.intra[-1])
        if key not in self._footprints:
            one = {d: np.minimum(self.step(nest, d), self.sizes[d]) for d in self.long}
            tile = {d: self.sizes[d] if d in inside else one[d] for d in self.long}

            shared = self.known.shared(self.output.name, tile)

            def new(name: str, box: Box) -> Box:
                return self.advanced(name, box, nest, nest.loops[level], shared) if name in sliding else box

            self._footprints[key] = Footprint(self.facts, self.members, self.output.name, tile, new, shared)
        return self._footprints[key]

    def sliding_along(self, levels: Mapping[str, Level], level: int) -> frozenset[str]:
        """The stages that keep what they have from one iteration of a level to the next."""
        if levels is not self._asked:
            by_level: dict[int, list[str]] = {}
            for n in self.producers:
                if levels[n].is_folded:
                    by_level.setdefault(levels[n].compute, []).append(n)
            self._asked, self._sliding = levels, {k: frozenset(names) for k, names in by_level.items()}
        return self._sliding.get(level, frozenset())

    def advanced(self, name: str, box: Box, nest: SegmentLoops, loop: str, shared: SharedIntervals) -> Box:
        """The last rows of a box, which an iteration of a loop adds."""
        stage = self.graph.stage[name]
        moving = self.motions[name]
        return tuple(
            shared.last(r, ceil(moving[d].rate * self.step(nest, loop))) if d in moving and moving[d].dim == loop else r
            for d, r in zip(stage.dims, box, strict=True)
        )

    def step(self, nest: SegmentLoops, loop: str) -> int:
        """The number of points of an iteration of a loop inside a tile."""
        return self.lanes if loop == nest.intra[-1] else 1

    def iterations(self, nest: SegmentLoops, level: int) -> Numbers:
        """The number of iterations of a level."""
        inside = nest.inside(level)
        key = (inside, nest.intra[-1])
        if key not in self._iterations:
            count = tiles(self.facts, self.output.name, self.sizes)
            for d in self.long:
                if d not in inside:
                    count = count * np.ceil(self.sizes[d] / self.step(nest, d))
            self._iterations[key] = count
        return self._iterations[key]

    def work(self, name: str, levels: Mapping[str, Level]) -> float:
        """The operations per point, including those of inlined producers."""
        _, inlined = through_inlined(name, self.facts.producers, levels)
        return self.known.work[name] + sum(self.known.work[p] for p in sorted(inlined))

    def sources(self, name: str, levels: Mapping[str, Level]) -> set[str]:
        """The sources that a stage reads after inlining."""
        return through_inlined(name, self.facts.producers, levels)[0]
