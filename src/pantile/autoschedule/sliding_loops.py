"""A segment with its tile and levels to directives.

    pt.on("blur_y").compute_root().split("y", "y_o", "y_i", 32).vectorize("x", 8).reorder("y_o", ...).parallel("y_o")
    pt.on("blur_x").compute_at("blur_y", "y_i").store_at("blur_y", "y_o").vectorize("x", 8)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..graph.nodes import Stage
from ..schedule.default import lanes
from ..schedule.directives import StageSchedule, on
from ..schedule.updates import pure_dims
from . import footprint
from .legal import Part
from .segment import INLINE, Tiling
from .strategy import Problem
from .tiled_loops import TiledLoops
from .tiles import marked_inside


def directives(problem: Problem, t: Tiling) -> Part:
    """The directives of a segment. `problem`: with all inlining done."""
    if not t.tile:
        return ()
    return _Loops(problem, t).chains()


@dataclass(frozen=True)
class _Loops:
    """The loops of a segment whose tile is known."""

    problem: Problem
    t: Tiling

    @cached_property
    def output(self) -> Stage:
        return self.problem.graph.stage[self.t.output]

    @cached_property
    def short(self) -> tuple[str, ...]:
        return tuple(d for d in self.output.dims if d not in self.t.tile)

    @cached_property
    def intra(self) -> tuple[str, ...]:
        return tuple(d for d in self.t.intra if d not in self.short)

    @cached_property
    def tiled(self) -> TiledLoops:
        extents = self.problem.facts.every_loop(self.t.output)
        reductions = tuple(n for n in extents if n not in self.output.dims)
        return TiledLoops(extents, self.t.tile, self.t.inter, (*self.intra, *reductions, *self.short))

    def chains(self) -> Part:
        stored = [n for n in self.t.members if self.t.levels[n] != INLINE]
        return (self._output(), *(self._member(n) for n in stored))

    def _output(self) -> StageSchedule:
        chain = on(self.t.output).compute_root()
        for k, d in enumerate(self.output.definitions):
            start = chain if k == 0 else chain.update(k - 1)
            own = (*pure_dims(self.output, d), *(r.name for r in d.domain))
            width = lanes(self.output, d, self.problem.machine.vector_bits)
            innermost = self.intra[-1]
            vector = innermost if self.t.tile[innermost] >= width and innermost in self.tiled.inner else None
            marked = self.tiled.applied(start, own, vector, width, {d: self.tiled.extents[d] for d in self.short})
            shared = next(iter(self.tiled.outer.values()), None)
            marked = marked.parallel(shared) if shared is not None else marked
            chain = chain if marked == start else marked
        return chain

    def _member(self, name: str) -> StageSchedule:
        level = self.t.levels[name]
        at, kept = self._loop(level.compute), self._loop(level.store)
        chain = on(name).compute_root() if at is None else on(name).compute_at(self.t.output, at)
        if kept != at:
            chain = chain.store_root() if kept is None else chain.store_at(self.t.output, kept)
        stage = self.problem.graph.stage[name]
        inside = {*self.short, *self.intra[len(self.intra) - max(0, level.compute - len(self.short)) :]}
        width = lanes(self.output, self.output.definitions[-1], self.problem.machine.vector_bits)
        tile = {d: n if d in inside else min(n, width) if d == self.intra[-1] else 1 for d, n in self.t.tile.items()}
        box = footprint.boxes(self.problem.facts, (*self.t.members, self.t.output), self.t.output, tile)[name]
        extents = {d: int(r.high - r.low + 1) for d, r in zip(stage.dims, box, strict=True)}
        return marked_inside(self.problem, stage, chain, extents)

    def _loop(self, level: int) -> str | None:
        """The loop of a level, or the next one further out that there is; None is root."""
        inside = list(reversed(self.intra))[max(0, level - len(self.short)) :]
        names = [self.tiled.inner[d] for d in inside if d in self.tiled.inner]
        return next(iter([*names, *reversed(self.tiled.outer.values())]), None)
