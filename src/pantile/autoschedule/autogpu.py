"""autogpu: sioutas-thesis chapter 6 (lines 3786-5230), which schedules for GPUs alone.

Cheap stages are inlined (§6.4, lines 4477-4483). Then groups are merged greedily (lines 4543-4549): of the groups with
a single consumer, the one whose merging with it saves most, as long as the merged group, in the best of some tiles,
costs less than the two did. A group is one kernel, its tiles are blocks of threads. In a last pass each group gets one
of many more tiles. Groups that take much of a multiprocessor move stages from the block into its threads.

The steps, and where they are:
    T_min, T_max, and the dims that are tiled     blocks/tile_sizes
    Listing 6.1, costs of groups                  blocks/group_costs, by the occupancy of `machine.multiprocessor`
    Listing 6.2, nested fusion                    blocks/nested_fusion
    blocks and threads of a group                 common/gpu_marking

Differences from the chapter, and why:
- A thread computes several points of large pictures (`points_per_thread`; 1 is what the chapter has), which share what
  they load. Blocks are not larger than tiles then.
- Sums of products are computed in tiles of registers (common/register_tiles).
- Threads share all dims of a stage at the block, also short ones such as colours, which the chapter leaves to each.
- Stages without a valid tile, for example because a picture has too few tiles for all multiprocessors, are scheduled
  as without a strategy. So are reductions to one value or to few, and stages that cannot be tiled, such as scans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from typing import Annotated, ClassVar

import numpy as np

from ..dataclass import dataclass
from ..parameters import Count, OneOf, Weight
from .blocks.group_costs import CostParameters, GroupCosts
from .blocks.nested_fusion import nested
from .blocks.tile_sizes import Sizes, tile_sizes
from .common.group_merging import GroupMerging
from .common.inlining import inlining
from .common.legalize import legal_choice
from .common.marking import Part, Style
from .common.shared_intervals import SharedIntervals
from .common.tiles import TiledGroup, scheduled
from .strategy import Found, GroupReport, Problem, Report, Strategy

NONE, OVERLAP, NESTED = FUSIONS = ("none", "overlap", "nested")
INLINED_LOAD = 1.0  # the cost of a load while stages are inlined, in the author's published source
# "Severe resource requirements (i.e. high number of active threads, high shared memory usage)" (lines 4817-4819), by
# that source: bytes of shared memory, threads that are active on a multiprocessor, and occupancy.
MUCH_SHARED = 32 << 10
MANY_ACTIVE = 900
LOW_OCCUPANCY = 0.3


@dataclass(frozen=True)
class AutoGpu(Strategy):
    """The three modes of §6.5, and the constants of Listing 6.1."""

    name: ClassVar[str] = "autogpu"
    for_cpus: ClassVar[bool] = False
    for_gpus: ClassVar[bool] = True

    fusion: Annotated[str, OneOf(*FUSIONS)] = NESTED
    occupancy_threshold: Weight = 0.1
    blocks_per_multiprocessor: Count = 2
    registers: Count = 64
    global_load: Weight = 200.0
    shared_load: Weight = 1.0
    points_per_thread: Count = 4

    def find(self, problem: Problem) -> Found:
        inlined = inlining(problem, INLINED_LOAD)
        search = _Search(problem.inlined(inlined), self)
        groups = search.groups()
        style = Style(points=self.points_per_thread)
        plain = [scheduled(search.problem, g.tiled, style) for g in groups]
        refined = [search.nested(g, part) for g, part in zip(groups, plain, strict=True)]
        result, is_refined = legal_choice(problem, [part for part, _ in refined], plain, inlined)
        remarks = (of_group if is_best else () for is_best, (_, of_group) in zip(is_refined, refined, strict=True))
        reports = tuple(map(_Group.report, groups, remarks))
        counts = {"merges evaluated": search.evaluations}
        report = Report(self.name, problem.gpu.name, asdict(self), reports, inlined, counts, result.remarks)
        return Found(result.schedule, report)

    @property
    def costs(self) -> CostParameters:
        return CostParameters(
            self.occupancy_threshold,
            self.blocks_per_multiprocessor,
            self.registers,
            self.global_load,
            self.shared_load,
        )


@dataclass(frozen=True)
class _Tile:
    """One tile of a group, and its values by Listing 6.1."""

    sizes: Mapping[str, int]
    is_valid: bool
    cost: float
    terms: Mapping[str, float]
    block: Mapping[str, int]

    @staticmethod
    def cheapest(group: GroupCosts, *, is_last: bool) -> _Tile | None:
        """The valid tile that costs least. Of equal ones, it is the one with the longest rows."""
        costs = group.costs(is_last=is_last)
        return None if np.isinf(costs).all() else _Tile.of(group, int(np.flatnonzero(costs == costs.min())[-1]), costs)

    @staticmethod
    def of(group: GroupCosts, k: int, costs: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> _Tile:
        terms = {
            "arithmetic": group.blocks * group.arithmetic,
            "memory": group.blocks * group.memory,
            "blocks": group.blocks,
            "threads": group.thread_count,
            "active threads": group.active_threads,
            "occupancy": group.least_occupancy,
            "shared bytes": group.shared,
        }
        return _Tile(
            {d: int(n[k]) for d, n in group.tiles.items()},
            bool(group.is_valid[k]),
            float(costs[k]),
            {name: n[k].item() for name, n in terms.items()},
            {d: int(n[k]) for d, n in group.thread_block.items()},
        )

    @property
    def is_heavy(self) -> bool:
        """Whether its blocks take much of a multiprocessor."""
        much = self.terms["shared bytes"] > MUCH_SHARED or self.terms["active threads"] > MANY_ACTIVE
        return much or self.terms["occupancy"] < LOW_OCCUPANCY


@dataclass(frozen=True)
class _Group:
    """Stages that run as one kernel, the output last."""

    members: tuple[str, ...]
    tile: _Tile | None

    @property
    def tiled(self) -> TiledGroup:
        *others, output = self.members
        if self.tile is None:
            return TiledGroup(output, tuple(others))
        return TiledGroup(output, tuple(others), (self.tile.sizes,), threads=prod(self.tile.block.values()))

    def report(self, remarks: tuple[str, ...]) -> GroupReport:
        *others, output = self.members
        if self.tile is None:
            return GroupReport(output, tuple(others), remarks=("no valid tile: scheduled as without a strategy",))
        if self.tile.block != self.tile.sizes:
            points = " x ".join(f"{dim} {n}" for dim, n in self.tile.block.items())
            remarks = (f"blocks have {points} threads, as its members need", *remarks)
        return GroupReport(output, tuple(others), self.tiled.tiles, self.tile.terms, remarks)


@dataclass(frozen=True)
class _Merge:
    """The benefit of merging two groups, and the cost of the merged group."""

    benefit: float
    cost: float


class _Search(GroupMerging[_Merge]):
    """The greedy merging of groups, which are identified by their outputs."""

    def __init__(self, problem: Problem, parameters: AutoGpu) -> None:
        super().__init__(problem)
        self.parameters = parameters
        self._sizes: dict[str, Sizes] = {}
        self._intervals: dict[str, SharedIntervals] = defaultdict(SharedIntervals)
        self.cost = {name: self._alone(name) for name in self.members}

    def groups(self) -> list[_Group]:
        """The groups that remain when no merge saves anything, in the tiles of the last pass."""
        if self.parameters.fusion != NONE:
            self.merge_all()
        return [self._in_last_tile(members) for members in self.members.values()]

    # ---- merging

    def evaluated(self, producer: str, consumer: str) -> _Merge | None:
        merged = self._cost((*self.members[producer], *self.members[consumer]))
        if merged is None:
            return None
        saved = self.cost[producer] + self.cost[consumer] - merged
        return _Merge(saved, merged) if saved > 0 else None

    def note(self, producer: str, consumer: str, merge: _Merge) -> None:
        self.cost[consumer] = merge.cost

    # ---- costs

    def _can_be_tiled(self, members: tuple[str, ...]) -> bool:
        able = bool(self.facts.tileable(members[-1])) and all(map(self.facts.is_limited, members))
        unknown = (self.facts.read_by_unknown_extents(name) - {name} for name in members)
        return able and all(sources.isdisjoint(members) for sources in unknown)

    def _costs(self, members: tuple[str, ...]) -> GroupCosts:
        output = members[-1]
        if output not in self._sizes:
            self._sizes[output] = tile_sizes(self.facts, output, is_last=False)
        return GroupCosts(self.problem, members, self._sizes[output], self.parameters.costs, self._intervals[output])

    def _cost(self, members: tuple[str, ...]) -> float | None:
        """The cost of a group in its best tile, if it has a valid one."""
        if not self._can_be_tiled(members):
            return None
        least = float(self._costs(members).costs(is_last=False).min())
        return None if np.isinf(least) else least

    def _alone(self, name: str) -> float:
        """The cost of a stage on its own, even if its tiles leave multiprocessors idle."""
        if not self._can_be_tiled((name,)):
            return 0.0
        group = self._costs((name,))
        cost = self._cost((name,))
        return float((group.blocks * (group.arithmetic + group.memory)).min()) if cost is None else cost

    # ---- the last pass

    def _in_last_tile(self, members: tuple[str, ...]) -> _Group:
        """The group in the cheapest of every second tile size. If none of these has blocks of whole warps, a group of
        several stages keeps the best tile of the merging pass."""
        order = sorted(members[:-1], key=self.facts.position.__getitem__)
        members = (*order, members[-1])
        if not self._can_be_tiled(members):
            return _Group(members, None)
        sizes = tile_sizes(self.facts, members[-1], is_last=True)
        last = _Tile.cheapest(GroupCosts(self.problem, members, sizes, self.parameters.costs), is_last=True)
        if last is None and len(members) > 1:
            last = _Tile.cheapest(self._costs(members), is_last=False)
        return _Group(members, last)

    def nested(self, group: _Group, part: Part) -> tuple[Part, tuple[str, ...]]:
        """The group with nested fusion, if that is requested and the group is heavy on resources."""
        is_wanted = self.parameters.fusion == NESTED and group.tile is not None and group.tile.is_heavy
        if not is_wanted or len(group.members) == 1:
            return part, ()
        fused = nested(self.problem, group.tiled, part)
        return fused.part, tuple(f"{name} is computed in the threads of {at}" for name, at in fused.stages.items())
