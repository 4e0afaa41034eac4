"""Tiles on GPUs: thread blocks whose threads share the points (§V). What a tile keeps is a box in shared memory, or in
private memory of threads if no two of them need the same value (§V-B).

    for h, w in tiles: for h, w in a tile    ->    .block("h_o", "w_o") .thread("h_i_t", "w_i_t"), some points each
    S0, read at 9 points                           .compute_at("out", "w_o").thread("h", "w")
    S1 and S2, read at the point                   .compute_at("out", "w_i_p").store_in("register")
"""

from __future__ import annotations

from collections.abc import Sequence

from ...schedule.sums import power_of_two
from ..blocks.nested_fusion import nested
from ..common.marking import PLAIN, Part, Style
from ..common.tiles import marking
from .block_time import BlockCosts, block_of
from .fused_space import FusedSpace
from .spaces import Space
from .tile_time import Candidates, planes
from .tiling_rules import FEWEST_POINTS, TILED_DIMS, TilingRules

PARALLEL_LOOPS = 2  # the most that m counts, and the fewest that a live-out has (§III-C)
MOST_TILED = 3  # dims of a grid of blocks
ALONE = "a scan in strips, a sum of products in tiles of registers, or bins in shared memory"


class GpuTiles(TilingRules):
    """Blocks only keep boxes of constant sizes, so all long dims are tiled."""

    @property
    def most_stored(self) -> float:
        return self.problem.gpu.multiprocessor.shared_per_block

    def dims(self, output: str) -> tuple[str, ...]:
        return self.long_dims(output, min([FEWEST_POINTS, *(n + 1 for n in self.parameters.tile_sizes or ())]))

    def parallel_loops(self, output: str) -> int:
        loops = len(self.problem.facts.tileable(output))
        return min(loops, self.parameters.parallel_loops or PARALLEL_LOOPS, PARALLEL_LOOPS)

    def why_untiled(self, liveout: Space) -> str:
        if self.parallel_loops(liveout.output) == 1:
            return "blocks and threads need two parallel loops, and it has one"
        stage = self.problem.graph.stage[liveout.output]
        is_alone = self._is_alone(liveout) or marking(self.problem).is_alone(stage, is_tiled=True, is_output=True)
        return super().why_untiled(liveout) or (ALONE if is_alone else "")

    def why_left_out(self, space: Space) -> str:
        facts = self.problem.facts
        if self._is_alone(space):
            return ALONE
        is_whole = any(facts.tileable(n) != self.problem.graph.stage[n].dims for n in space.stages)
        unknown = [c for c in facts.consumers[space.output] if space.output in facts.read_by_unknown_extents(c)]
        return "what blocks need of it has no constant size" if is_whole or unknown else ""

    def _is_alone(self, space: Space) -> bool:
        """Whether threads scan a stage of the space in strips, or compute a sum of it in tiles of their own."""
        marks = marking(self.problem)
        return any(marks.is_alone(self.problem.graph.stage[n], is_tiled=True) for n in space.stages)

    def tile(self, liveout: Space, able: Sequence[Space]) -> dict[str, int]:
        output, dims, given = liveout.output, self.dims(liveout.output), self.parameters.tile_sizes
        if given is not None:
            extents = self.extents(output)
            chosen = zip(dims, given, strict=False)
            return {d: n if n < extents[d] else power_of_two(extents[d] - 1) for d, n in chosen}
        short = [*planes(self.problem, liveout, able, dims[0]), *dims[:-MOST_TILED]]
        sizes = self.parameters.candidates
        candidates = Candidates.of(self.problem, output, short, dims[-MOST_TILED:], sizes, has_whole=False)
        return BlockCosts(self.problem, liveout, able, candidates).best(self.limits)

    def style(self, fused: FusedSpace) -> Style:
        """The threads of a block along dims of the live-out."""
        if not fused.cut:
            return PLAIN
        output, given = fused.liveout.output, self.parameters.threads
        if given is None:
            return Style(threads={d: int(n) for d, n in block_of(self.problem, output, fused.tile).items()})
        tiled = self.dims(output)[:TILED_DIMS]
        others = [d for d in self.problem.facts.tileable(output) if d not in tiled]
        return Style(threads=dict(zip([*tiled, *others], given, strict=False)))

    def private(self, fused: FusedSpace, part: Part) -> Part:
        return nested(self.problem, fused.group, part, with_updates=True).part if fused.cut else part
