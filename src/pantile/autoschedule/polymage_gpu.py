"""polymage_gpu: overlapped tiles for GPUs (Jangda and Guha 2020, "Model-based warp overlapped tiling for image
processing programs on GPUs", §4-6).

Groups of stages are found by bounded dynamic programming, as with `dp`. The cost of a group is that of Algorithm 2, in
the best of many tiles, blocks of threads, fractions in registers and transaction sizes: a group is one kernel, in which
a thread computes a tile of points that are as far apart as its warp is wide. Nothing is inlined, apart from boundary
conditions, crops and short sums inside expressions, which are PolyMage's Stencil; reductions are not fused.

The steps, and where they are:
    §4, warps, their tiles, scratchpads; the tiles to try    blocks/warp_tiles
    Algorithm 1, hybrid tiling: the split dim, R             blocks/warp_tiles; its code: lower/gpu/hybrid_tiles
    Algorithm 2, printed and mended                          blocks/warp_costs, blocks/group_tiles
    the inputs of Algorithm 2                                blocks/warp_tile_model
    Algorithms 1 and 5 of polymage-plus, grouping            fusion/grouping, fusion/bounded_grouping
    directives                                               `_part` below

Differences from the paper: a group has one live-out. Registers and times of stages are estimated. A group for which
registers of lanes are refused uses shared memory of warps, or of blocks if that is refused, too. Stages without a valid
tile, and reductions, are scheduled as without a strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, ClassVar

from ..dataclass import dataclass
from ..parameters import Count, OneOf, Weight
from .blocks.warp_costs import Weights, weights_of
from .blocks.warp_tile_model import Form, WarpTiledGroup, WarpTileModel
from .common.legalize import LegalSchedule, legal
from .common.marking import Part, Style
from .common.tiles import TiledGroup, scheduled
from .fusion.alignment import StageGraph
from .fusion.bounded_grouping import MOST_MERGED, Grouping, grouped
from .fusion.dag import Group
from .fusion.stage_facts import cropped
from .strategy import Found, GroupReport, Problem, Report, Strategy

BLOCK, WARP, REGISTER, HYBRID = "block", "warp", "register", "hybrid"
FORMS = {  # the four of Figure 9
    BLOCK: Form(per_warp=False, fractions=(0.0,)),
    WARP: Form(per_warp=True, fractions=(0.0,)),
    REGISTER: Form(per_warp=True, fractions=(1.0,)),
    HYBRID: Form(per_warp=True, fractions=tuple(k / 10 for k in range(11))),
}
INSTEAD = {HYBRID: WARP, REGISTER: WARP, WARP: BLOCK}  # the next form for a group if one is refused
PRINTED, MENDED = LINES = ("printed", "mended")


@dataclass(frozen=True)
class PolymageGpu(Strategy):
    """The weights of Algorithm 2 (those of Table 3 for its GPUs, fitted on an H200 for others), the tiles of Figure 9,
    and the bounds of the search."""

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
    tiles: Annotated[str, OneOf(*FORMS)] = HYBRID
    cost: Annotated[str, OneOf(*LINES)] = MENDED  # the lines of Algorithm 2
    group_limit: Count | None = None  # as of `dp`
    step: Count | None = None
    most_states: Count = 2000

    def find(self, problem: Problem) -> Found:
        before = problem.facts.trivial
        before += cropped(problem.inlined(before))
        left = problem.inlined(before)
        stages = StageGraph(left, reductions=False)
        weights = self._weights(problem.gpu.name)
        models = [WarpTileModel(stages, problem.gpu, weights, f, self.cost == PRINTED) for f in _forms(self.tiles)]
        grouping = grouped(stages.dag, models[0], self.group_limit, self.step, self.most_states)
        result, groups = _scheduled(problem, left, before, models, grouping.groups)
        counts = {"states explored": grouping.states} if grouping.merges is None else {"merges": grouping.merges}
        remarks = (*self._bounds(grouping), *result.remarks)
        parameters = asdict(self) | asdict(weights)
        reports = tuple(map(_report, groups))
        return Found(result.schedule, Report(self.name, problem.gpu.name, parameters, reports, before, counts, remarks))

    def _weights(self, gpu: str) -> Weights:
        chosen = asdict(weights_of(gpu, printed=self.cost == PRINTED))
        return Weights(**{w: n if getattr(self, w) is None else getattr(self, w) for w, n in chosen.items()})

    def _bounds(self, grouping: Grouping) -> tuple[str, ...]:
        """Remarks about groups that were not considered."""
        if grouping.merges is not None:
            return (f"more than {self.most_states} states: merged greedily, up to {MOST_MERGED} stages",)
        bounded = [f"{n} stages" for n in grouping.limits if n is not None]
        return (f"Algorithm 5: groups of at most {', then '.join(bounded)}",) if bounded else ()


def _forms(tiles: str) -> list[Form]:
    """The form of a strategy's tiles, and the forms for groups if it is refused."""
    forms = [tiles]
    while forms[-1] in INSTEAD:
        forms.append(INSTEAD[forms[-1]])
    return [FORMS[name] for name in forms]


def _scheduled(
    problem: Problem, left: Problem, before: tuple[str, ...], models: Sequence[WarpTileModel], sets: Sequence[Group]
) -> tuple[LegalSchedule, list[WarpTiledGroup]]:
    """The schedule of all groups, each in the first form that is not refused."""
    groups = [models[0].evaluated(group) for group in sets]
    parts = [_part(left, group) for group in groups]
    untried, remarks, lowered = [iter(models[1:]) for _ in sets], list[str](), tuple[Part, ...]()
    while True:
        result = legal(problem, parts, before, lowered)
        lowered = result.lowered
        refused = [k for k, is_honoured in enumerate(result.honoured) if not is_honoured]
        others = {k: other for k in refused if (other := _next(untried[k], sets[k], groups[k]))}
        if not others:
            return replace(result, remarks=(*remarks, *result.remarks)), groups
        remarks += [r.replace("scheduled on their own", "in another form") for r in result.remarks]
        for k, group in others.items():
            groups[k], parts[k] = group, _part(left, group)


def _next(models: Iterator[WarpTileModel], stages: Group, refused: WarpTiledGroup) -> WarpTiledGroup | None:
    """Return the group in the next form with different valid tiles, if there is one."""
    found = (model.evaluated(stages) for model in models)
    return next((group for group in found if group.tile and group != refused), None)


def _part(problem: Problem, group: WarpTiledGroup) -> Part:
    """Return the directives of a group. Only here it is decided how its tiles are marked."""
    tile = {dim: n * group.block[dim] for dim, n in group.tile.items()}
    levels = (tile,) if tile else ()
    if not group.warp or not group.members:
        style = Style(threads={dim: n for dim, n in group.block.items() if tile[dim] > 1})
        return scheduled(problem, TiledGroup(group.output, group.members, levels), style)
    warp = {dim: n * group.tile[dim] for dim, n in group.warp.items()}
    *_, row = group.warp
    of_warp = {dim: n for dim, n in warp.items() if n < tile[dim] or dim == row}
    tiles = TiledGroup(group.output, group.members, levels, of_warp=of_warp)
    return scheduled(problem, tiles, Style(lanes=group.lanes, registers=group.registers))


def _report(group: WarpTiledGroup) -> GroupReport:
    levels: tuple[Mapping[str, int], ...] = ()
    remarks = (group.remark,) if group.remark else ()
    if group.tile:
        levels = ({dim: n * group.block[dim] for dim, n in group.tile.items()},)
        remarks = (
            f"blocks of {_by_dim(group.block)} threads, which compute {_by_dim(group.tile)} points each",
            *remarks,
        )
        if group.warp and group.members:
            remarks = (f"tiles of warps of {_by_dim(group.warp)} lanes, {group.fraction} in registers", *remarks)
    return GroupReport(group.output, group.members, levels, {"cost": group.cost, **group.terms}, remarks)


def _by_dim(sizes: Mapping[str, int]) -> str:
    return " x ".join(f"{dim} {n}" for dim, n in sizes.items())
