"""Tiles on CPUs: iterations of parallel loops with vectors inside, whose intermediate values fit a core's part of
L2."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.marking import Style
from .fused_space import FusedSpace
from .spaces import Space
from .tile_time import Candidates, CpuTileCosts, planes
from .tiling_rules import FEWEST_POINTS, TILED_DIMS, TilingRules

TASKS_PER_THREAD = 8  # so that the last ones to run leave few threads idle


class CpuTiles(TilingRules):
    """Every loop that is tiled stays parallel."""

    @property
    def most_stored(self) -> float:
        return self.problem.cpu.l2.per_core

    def dims(self, output: str) -> tuple[str, ...]:
        sizes = self.parameters.tile_sizes
        long = self.long_dims(output, FEWEST_POINTS if sizes is None else min(sizes) + 1)
        return long[: min(TILED_DIMS, self.parameters.parallel_loops or TILED_DIMS)]

    def parallel_loops(self, output: str) -> int:
        return len(self.dims(output))

    def tile(self, liveout: Space, able: Sequence[Space]) -> dict[str, int]:
        dims = self.dims(liveout.output)
        if self.parameters.tile_sizes is not None:
            return dict(zip(dims, self.parameters.tile_sizes, strict=False))
        short = planes(self.problem, liveout, able, dims[0])
        sizes = Candidates.of(self.problem, liveout.output, short, dims, self.parameters.candidates, has_whole=True)
        return CpuTileCosts(self.problem, liveout, able, sizes).best(self.limits)

    def style(self, fused: FusedSpace) -> Style:
        return Style(vectors=2, parallelism=TASKS_PER_THREAD * self.problem.cpu.threads)
