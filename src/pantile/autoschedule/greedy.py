"""greedy: halide-autoscheduler §4 (Mullapudi et al. 2016).

Inline what is cheaper to repeat (§4.3), tile each remaining stage for reuse of its inputs (§4.2.1, Listing 1), then
repeatedly merge the two groups whose merging saves most (§4.2.2, §4.2.3, Listing 2), and turn the groups into loops
(§4.4). Loads are counted in values, all from memory, unless a tile keeps what it reads in the cache.

A stage counts as one function with all of its updates (the paper allows one). The differences from the paper, and why:
- Dims along which an update carries values or writes where data says are not tiled: such tiles depend on each other.
- Tiles leave all members at least a vector wide, not only the output: narrow members are slow.
- Tiles that are whole along all loops but one are tried as well: rows and planes are contiguous.
- Of tiles whose costs differ by no more than 2 %, the one with the longest rows is taken.
- Sums are computed in blocks that fill registers, which §5.4 leaves to "a future auto-scheduler".

For GPUs (§5.4) groups become kernels: tile loops are blocks, the loops inside are threads, and what a group keeps for
itself is in shared memory. Tiles are as large as blocks of threads may be; reduction loops stay in one thread.
Computing several points of a large picture in a thread, and sums of products in registers, are additions of ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ..analysis.channels import MOST_CHANNELS
from ..dataclass import dataclass
from ..parameters import Bytes, Count, Weight
from ..target.gpu import MOST_THREADS
from .common import footprint
from .common.equivalent_stages import StageSignature
from .common.group_cost import TiledCosts
from .common.group_merging import GroupMerging
from .common.inlining import inlining
from .common.legalize import legal
from .common.locality import GroupOverlaps
from .common.marking import Style
from .common.shared_intervals import SharedIntervals
from .common.tiles import TiledGroup, scheduled
from .strategy import Found, GroupReport, Problem, Report, Strategy

KB = 1 << 10
SIZES = (1, 4, 8, 16, 32, 64, 128, 256)  # of tiles, along each dim
COLUMNS = (512, 1024)  # of strips over all rows: each row is a page, and narrower strips are not worth that
NEARLY = 0.02  # a relative difference of costs that is not significant
LANES_PER_TILE = 4  # the least extent of a tile along the innermost dim, in vectors

Tile = Mapping[str, int]
Numbers = np.ndarray[Any, Any]
Sizes = Mapping[str, Numbers]  # one per tile to try, by loop
_Order = tuple[str, tuple[str, ...]]  # an output and its loops, which determine the tiles that are tried


@dataclass(frozen=True)
class Greedy(Strategy):
    """The parameters of §5.1; those that are None are chosen for the machine as in §5.1 and §5.4."""

    name: ClassVar[str] = "greedy"
    for_gpus: ClassVar[bool] = True

    vector_width: Count | None = None  # twice the native width for 32-bit data
    parallelism_threshold: Count | None = None  # "a small multiple of core count"
    cache_size: Bytes | None = None  # per-core fraction of L2
    load_cost: Weight = 10.0
    target_threads_per_block: Count | None = None  # on a GPU: limits of the points of a tile
    max_threads_per_block: Count | None = None
    points_per_thread: Count | None = None

    def find(self, problem: Problem) -> Found:
        return _GreedySearch(problem, self._for(problem)).find()

    def _for(self, problem: Problem) -> Greedy:
        if problem.target.has_blocks:
            return replace(OF_GPUS, **{name: n for name, n in asdict(self).items() if n is not None})
        machine = problem.cpu
        return Greedy(
            self.vector_width or 2 * machine.lanes(32),
            self.parallelism_threshold or 2 * machine.cores,
            self.cache_size or machine.l2.per_core,
            self.load_cost,
        )


# "We configure the auto-scheduler to target the GPU by setting ..." (§5.4). The points of a thread are our addition.
OF_GPUS = Greedy(32, 128, 48 * KB, target_threads_per_block=128, max_threads_per_block=2048, points_per_thread=4)


@dataclass(frozen=True)
class TunedGreedy(Strategy):
    """The fastest schedule, as measured, that `Greedy` finds with all combinations of these parameters.

    By default "a reduced auto-tuning search that varies only CACHE_SIZE and LOAD_COST" (§5.1), six combinations.
    `TunedGreedy.full()` is the whole search of §5.1. Widths or thresholds that are None are those of the machine.
    """

    name: ClassVar[str] = "greedy_tuned"
    measures: ClassVar[bool] = True

    cache_sizes: tuple[Bytes, ...] = (32 * KB, 128 * KB, 256 * KB)
    load_costs: tuple[Weight, ...] = (10.0, 20.0)
    vector_widths: tuple[Count, ...] | None = None
    parallelism_thresholds: tuple[Count, ...] | None = None

    @staticmethod
    def full() -> TunedGreedy:
        """The 1152 combinations of the paper's auto-tuner; it "can take hours to days"."""
        return TunedGreedy(
            cache_sizes=tuple(KB << k for k in range(4, 10)),
            load_costs=tuple(float(cost) for cost in range(5, 85, 5)),
            vector_widths=(4, 8, 16),
            parallelism_thresholds=(6, 12, 18, 24),
        )

    @property
    def points(self) -> list[Greedy]:
        """A strategy for each combination of the parameters."""
        widths, thresholds = self.vector_widths or (None,), self.parallelism_thresholds or (None,)
        return [Greedy(*point) for point in product(widths, thresholds, self.cache_sizes, self.load_costs)]

    def find(self, problem: Problem) -> Found:
        results = [p.find(problem) for p in self.points]
        different = {f.schedule: f for f in reversed(results)}
        seconds = {s: problem.seconds(s) for s in different}
        best = min(results, key=lambda f: seconds[f.schedule])
        counts = {"schedules tried": len(different), "best ms": 1e3 * seconds[best.schedule]}
        return Found(best.schedule, replace(best.report, strategy=self.name, counts=counts))


@dataclass(frozen=True)
class _ModelCost:
    """The cost of a group in the paper's model: operations, and values loaded from memory."""

    arithmetic: float
    loads: float

    def total(self, load_cost: float) -> float:
        return self.arithmetic + load_cost * self.loads


@dataclass(frozen=True)
class _Merge:
    """The most that merging a group into another one saves, and the tile with which it does."""

    benefit: float
    tile: Tile
    cost: _ModelCost


@dataclass(frozen=True)
class _GroupCost:
    """Costs of a whole group, one per tile size."""

    tiles: Sizes
    arithmetic: Numbers
    loads: Numbers
    is_possible: Numbers  # enough tiles, and they fit the cache

    def tile(self, which: int) -> Tile:
        return {loop: int(sizes[which]) for loop, sizes in self.tiles.items()}

    def cost(self, which: int) -> _ModelCost:
        return _ModelCost(float(self.arithmetic[which]), float(self.loads[which]))


class _GreedySearch(GroupMerging[_Merge]):
    """The search of §4. Groups are identified by their outputs."""

    def __init__(self, problem: Problem, parameters: Greedy) -> None:
        self.original, self.parameters = problem, parameters
        self.vector_width, self.on_gpu = parameters.vector_width or 1, problem.target.has_blocks
        self.inlined = inlining(problem, parameters.load_cost)
        super().__init__(problem.inlined(self.inlined))
        stages = [*self.members]
        self._reuse: dict[str, GroupOverlaps] = {}
        self._joining: dict[_Order, TiledCosts] = {}
        self._sizes: dict[_Order, Sizes] = {}
        self._in_tiles: dict[_Order, SharedIntervals] = defaultdict(SharedIntervals)
        self._in_strips: dict[str, SharedIntervals] = defaultdict(SharedIntervals)
        self.tile: dict[str, Tile] = {name: self.tile_singleton_group(name) for name in stages}
        self.cost: dict[str, _ModelCost] = {name: self.cost_of_one(name) for name in stages}
        self.saved: dict[str, float] = dict.fromkeys(stages, 0.0)
        self._likeness = StageSignature(self.problem)
        self._alike: dict[
            tuple[str, Hashable, _ModelCost], _Merge | None
        ] = {}  # with groups of one stage, by their signatures

    def find(self) -> Found:
        self.merge_all()
        groups = [self.as_group(name) for name in self.members]
        vectors = max(1, self.vector_width // self.problem.target.lanes(32))
        style = Style(vectors, self.parameters.parallelism_threshold, self.parameters.points_per_thread or 1)
        result = legal(self.original, [scheduled(self.problem, g, style) for g in groups], self.inlined)
        report = Report(
            Greedy.name,
            self.problem.machine.name,
            {name: n for name, n in asdict(self.parameters).items() if n is not None},
            tuple(self.report(g) for g in groups),
            self.inlined,
            {"merges evaluated": self.evaluations},
            (*result.remarks, *self.remarks()),
        )
        return Found(result.schedule, report)

    def remarks(self) -> Iterator[str]:
        """Remarks about what the paper leaves open."""
        for stage in self.problem.graph.stages:
            if stage.updates and self.members.get(stage.name) == (stage.name,) and not self.facts.tileable(stage.name):
                yield f"scheduled on its own: {stage.name}, because its updates cannot be cut into independent tiles"
        if self.on_gpu:
            if (self.parameters.max_threads_per_block or 0) > MOST_THREADS:
                yield f"blocks have {MOST_THREADS} threads at most, as many as the hardware allows"
        elif sums := [stage.name for stage in self.problem.graph.stages if self.facts.sums(stage.name)]:
            yield f"unlike the paper's, sums are computed in blocks that fill registers: {', '.join(sums)}"

    def report(self, group: TiledGroup) -> GroupReport:
        cost = self.cost[group.output]
        costs = {"arithmetic": cost.arithmetic, "loads": cost.loads, "benefit of merging": self.saved[group.output]}
        return GroupReport(group.output, group.members, group.tiles, costs)

    # ---- §4.2.2: what merging groups saves

    def evaluated(self, producer: str, consumer: str) -> _Merge | None:
        """Evaluate a merge, or look up an equivalent one that was evaluated since the consumer last changed."""
        if self.members[producer] != (producer,):
            return self.evaluate_group_merge(producer, consumer)
        alike = consumer, self._likeness.of(producer), self.cost[producer]
        if alike not in self._alike:
            self._alike[alike] = self.evaluate_group_merge(producer, consumer)
        return self._alike[alike]

    def note(self, producer: str, consumer: str, merge: _Merge) -> None:
        self.tile[consumer], self.cost[consumer] = merge.tile, merge.cost
        self.saved[consumer] += merge.benefit
        changed = {producer, consumer}
        self._alike = {alike: e for alike, e in self._alike.items() if alike[0] not in changed}
        self._reuse = {name: e for name, e in self._reuse.items() if name not in changed}
        self._joining = {key: e for key, e in self._joining.items() if key[0] not in changed}

    # ---- §4.2.1: Listing 1

    def tile_singleton_group(self, name: str) -> Tile:
        """The tile that loads least; none for pure functions, which "exhibit high input locality without tiling", and
        for scans, which only read again what they have just written."""
        if not self.facts.sums(name) or not self.facts.tileable(name):
            return {}
        costs = self.merged_cost(name, self.tiles_of(name))
        no_tile_loads = self.untiled(name).loads
        benefit = np.where(costs.is_possible, no_tile_loads - costs.loads, 0)
        best = int(np.argmax(benefit))
        return costs.tile(best) if benefit[best] > 0 else {}

    # ---- §4.2.3: Listing 2

    def evaluate_group_merge(self, producer: str, consumer: str) -> _Merge | None:
        if not self.facts.tileable(consumer) or not self.facts.is_limited(producer):
            return None
        no_merge_cost = sum(self.cost[g].total(self.parameters.load_cost) for g in (producer, consumer))
        others = self.members[producer]
        costs = self.merged_cost(consumer, self.tiles_of(consumer, others), others)
        merge_cost = costs.arithmetic + self.parameters.load_cost * costs.loads
        benefit = np.where(costs.is_possible, no_merge_cost - merge_cost, -1)
        if benefit.max() <= 0:
            return None
        best = self.longest_rows(consumer, costs, np.where(benefit > 0, merge_cost, np.inf))
        return _Merge(float(benefit[best]), costs.tile(best), costs.cost(best))

    def longest_rows(self, output: str, costs: _GroupCost, cost: Numbers) -> int:
        """The tile with the longest rows among those that cost about the least: the model ignores the start of rows."""
        row = self.problem.graph.stage[output].dims[self.problem.row(output)]
        rows = costs.tiles[row] if row in costs.tiles else np.ones_like(cost)
        near = cost <= (1 + NEARLY) * cost.min()
        return int(np.lexsort((cost, -np.where(near, rows, 0)))[0])

    def cost_of_one(self, name: str) -> _ModelCost:
        """The cost of a group of one function (arith_cost and group_loads of Listing 2)."""
        if not self.tile[name]:
            return self.untiled(name)
        tiles = {loop: np.array([n]) for loop, n in self.tile[name].items()}
        return self._group_cost(TiledCosts(self.problem, (name,), tiles, self.vector_width), tiles).cost(0)

    def untiled(self, name: str) -> _ModelCost:
        """The cost of a function on its own without tiles: every load is a miss."""
        definitions = range(len(self.problem.graph.stage[name].definitions))
        loads = sum(sum(self.facts.reads(name, k).values()) * self.facts.runs(name, k) for k in definitions)
        return _ModelCost(self.facts.work(name), float(loads))

    def merged_cost(self, output: str, tiles: Sizes, others: Sequence[str] = ()) -> _GroupCost:
        """The costs of a group for many tiles at once, those of `tiles_of`, if `others` join it."""
        order = output, tuple(tiles)
        if order not in self._joining:
            shared = self._in_tiles[order]
            self._joining[order] = TiledCosts(self.problem, self.members[output], tiles, self.vector_width, shared)
        return self._group_cost(self._joining[order], tiles, others)

    def _group_cost(self, group: TiledCosts, tiles: Sizes, others: Sequence[str] = ()) -> _GroupCost:
        needs, fill_vectors = group.with_others(others)
        output = group.output.name
        count = footprint.tiles(self.facts, output, tiles)
        independent = footprint.tiles(self.facts, output, {d: n for d, n in tiles.items() if d in group.output.dims})
        enough_tiles = independent >= self.parameters.parallelism_threshold  # Listing 1 line 17, Listing 2 line 30
        is_possible = enough_tiles & (needs.kept <= self.parameters.cache_size) & fill_vectors
        return _GroupCost(
            tiles,
            arithmetic=np.full(np.shape(count), self.facts.work(output)) + count * needs.redone,
            loads=count * needs.loaded,
            is_possible=is_possible & self._are_blocks(output, tiles),
        )

    def _are_blocks(self, output: str, tiles: Sizes) -> Any:
        """Whether tiles have neither too few nor too many points for the threads of a block (§5.4), and a size that
        does not depend on that of pictures, as shared memory requires."""
        if not self.on_gpu or not tiles:
            return not self.on_gpu
        extents, points = self.facts.every_loop(output), np.prod([*tiles.values()], axis=0)
        whole = [n >= extents[loop] for loop, n in tiles.items() if extents[loop] > MOST_CHANNELS]
        most = min(MOST_THREADS, self.parameters.max_threads_per_block or MOST_THREADS)
        fills = (points >= (self.parameters.target_threads_per_block or 1)) & (points <= most)
        return fills & ~np.any(whole, axis=0) if whole else fills

    # ---- tile sizes to try (§4.2.3, "Generating tile sizes")

    def reuse(self, output: str, others: Sequence[str] = ()) -> dict[str, float]:
        """The reuse of a group in each direction, if others join it."""
        if output not in self._reuse:
            self._reuse[output] = GroupOverlaps(
                self.facts, self.members[output], output, shared=self._in_strips[output]
            )
        return self._reuse[output].with_others(others)

    def tiles_of(self, output: str, others: Sequence[str] = ()) -> Sizes:
        """Hypercubes, and boxes elongated along the dims of greatest reuse: the sizes of all tiles, by loop."""
        reuse = self.reuse(output, others)
        alone = not others and len(self.members[output]) == 1
        reductions = self.facts.sums(output) if alone and not self.on_gpu else ()
        loops = sorted([*self.facts.tileable(output), *reductions], key=lambda loop: -reuse[loop])
        order = output, tuple(loops)
        if order not in self._sizes:
            self._sizes[order] = self._sizes_along(output, loops)
        return self._sizes[order]

    def _sizes_along(self, output: str, loops: Sequence[str]) -> Sizes:
        """Tile sizes for loops in the order of their reuse, the greatest first."""
        extents = self.facts.every_loop(output)
        dims = self.problem.graph.stage[output].dims
        tiles = [dict.fromkeys(loops, size) for size in SIZES]
        for k, loop in enumerate(loops):
            longer = dict.fromkeys(loops[:k], SIZES[-1])
            tiles += [{**dict.fromkeys(loops, SIZES[0]), **longer, loop: size} for size in SIZES]
            whole = {other: extents[other] for other in loops if other != loop}
            tiles += [{**whole, loop: size} for size in (COLUMNS if loop == dims[self.problem.row(output)] else SIZES)]
        least = self.vector_width * (1 if self.on_gpu else LANES_PER_TILE)
        for tile in tiles:
            tile.update({d: max(tile[d], least) for d in dims[self.problem.row(output) :] if d in tile})
        return {loop: np.array([min(t[loop], extents[loop]) for t in tiles]) for loop in loops}

    # ---- §4.4

    def as_group(self, output: str) -> TiledGroup:
        """Order loops by reuse, the least outermost. The innermost dim, a row of pixels, stays where it is."""
        members = self.members[output]
        dims = self.problem.graph.stage[output].dims
        limited = self.facts.is_limited(output)
        reuse = self.reuse(output) if limited else dict.fromkeys(dims, 0.0)
        row = self.problem.row(output)
        order = (*sorted(dims[:row], key=lambda d: reuse[d]), *dims[row:])
        extents = self.facts.every_loop(output)
        tile = {loop: n for loop, n in self.tile[output].items() if n < extents[loop]}
        others = tuple(m for m in members if m != output)
        return TiledGroup(output, others, (tile,) if tile else (), order)
