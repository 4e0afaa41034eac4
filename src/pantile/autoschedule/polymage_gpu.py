"""polymage_gpu: overlapped tiles for GPUs (Jangda and Guha 2020, "Model-based warp overlapped tiling for image
processing programs on GPUs", §4-6).

Groups of stages are found by bounded dynamic programming, as with `dp`. What a group costs is Algorithm 2, in the best
of many tiles, blocks of threads, fractions in registers and transaction sizes: a group is one kernel, in which a thread
computes a tile of points, as far apart as its warp is wide. Nothing is inlined, apart from boundary conditions, crops
and short sums inside expressions, which are PolyMage's Stencil; reductions are not fused.

The steps, and where they are:
    §4, warps, their tiles, scratchpads; the tiles to try    blocks/warp_tiles
    Algorithm 2, printed and mended                          blocks/warp_costs
    what it is called with                                   blocks/warp_tile_model
    Algorithms 1 and 5 of polymage-plus, grouping            fusion/grouping, fusion/bounded_grouping
    directives                                               `_part` below

What differs from the paper: intermediate values lie in shared memory of the block, so tiles are those of blocks, which
is what the cost is of; tiles of single warps, in shared memory or partly in registers (Algorithm 1), have no directives
yet. A group has one live-out. Registers and times of stages are estimated. What has no valid tile, and reductions, are
scheduled as without a strategy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, ClassVar

from ..dataclass import dataclass
from ..parameters import Count, OneOf, Weight
from .blocks.warp_costs import TABLE_3, Weights
from .blocks.warp_tile_model import Form, WarpTiledGroup, WarpTileModel
from .common.legalize import legal
from .common.marking import Part, Style
from .common.tiles import TiledGroup, scheduled
from .fusion.alignment import StageGraph
from .fusion.bounded_grouping import MOST_MERGED, Grouping, grouped
from .fusion.stage_facts import cropped
from .strategy import Found, GroupReport, Problem, Report, Strategy

BLOCK = "block"
FORMS = {BLOCK: Form(per_warp=False, fractions=(0.0,))}  # those of Figure 9 that have directives
PRINTED, MENDED = LINES = ("printed", "mended")


@dataclass(frozen=True)
class PolymageGpu(Strategy):
    """The weights of Algorithm 2 (those of Table 3 for its GPUs, of its V100 for others), the tiles of Figure 9, and
    the bounds of the search."""

    name: ClassVar[str] = "polymage_gpu"
    for_cpus: ClassVar[bool] = False
    for_gpus: ClassVar[bool] = True

    w1: Weight | None = None
    w2: Weight | None = None
    w3: Weight | None = None
    w4: Weight | None = None
    w5: Weight | None = None
    w6: Weight | None = None
    w7: Weight | None = None
    tiles: Annotated[str, OneOf(*FORMS)] = BLOCK
    cost: Annotated[str, OneOf(*LINES)] = MENDED  # the lines of Algorithm 2
    group_limit: Count | None = None  # as of `dp`
    step: Count | None = None
    most_states: Count = 2000

    def find(self, problem: Problem) -> Found:
        before = problem.facts.trivial
        before += cropped(problem.inlined(before))
        left = problem.inlined(before)
        stages = StageGraph(left)
        weights = self._weights(problem.gpu.name)
        model = WarpTileModel(stages, problem.gpu, weights, FORMS[self.tiles], self.cost == PRINTED)
        grouping = grouped(stages.dag, model, self.group_limit, self.step, self.most_states)
        groups = [model.evaluated(g, is_last=True) for g in grouping.groups]
        result = legal(problem, [_part(left, g) for g in groups], before)
        counts = {"states explored": grouping.states} if grouping.merges is None else {"merges": grouping.merges}
        remarks = (*self._bounds(grouping), *result.remarks)
        parameters = asdict(self) | asdict(weights)
        reports = tuple(map(_report, groups))
        return Found(result.schedule, Report(self.name, problem.gpu.name, parameters, reports, before, counts, remarks))

    def _weights(self, gpu: str) -> Weights:
        chosen = asdict(TABLE_3.get(gpu, Weights()))
        return Weights(**{w: n if getattr(self, w) is None else getattr(self, w) for w, n in chosen.items()})

    def _bounds(self, grouping: Grouping) -> tuple[str, ...]:
        """Remarks about what is not considered."""
        of_tiles = "tiles are of blocks, in shared memory: those of single warps have no directives yet"
        if grouping.merges is not None:
            return of_tiles, f"more than {self.most_states} states: merged greedily, up to {MOST_MERGED} stages"
        bounded = [f"{n} stages" for n in grouping.limits if n is not None]
        return (of_tiles, f"Algorithm 5: groups of at most {', then '.join(bounded)}") if bounded else (of_tiles,)


def _part(problem: Problem, group: WarpTiledGroup) -> Part:
    """The directives of a group: how its tiles are marked is decided here, and only here."""
    tile = {dim: n * group.block[dim] for dim, n in group.tile.items()}
    style = Style(threads={dim: n for dim, n in group.block.items() if tile[dim] > 1})
    return scheduled(problem, TiledGroup(group.output, group.members, (tile,) if tile else ()), style)


def _report(group: WarpTiledGroup) -> GroupReport:
    levels: tuple[Mapping[str, int], ...] = ()
    remarks = (group.remark,) if group.remark else ()
    if group.tile:
        levels = ({dim: n * group.block[dim] for dim, n in group.tile.items()},)
        of_block = " x ".join(f"{dim} {n}" for dim, n in group.block.items())
        of_thread = " x ".join(f"{dim} {n}" for dim, n in group.tile.items())
        remarks = (f"blocks of {of_block} threads, which compute {of_thread} points each", *remarks)
    return GroupReport(group.output, group.members, levels, {"cost": group.cost, **group.terms}, remarks)
