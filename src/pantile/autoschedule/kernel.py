"""kernel: sioutas-thesis chapter 4, for memory-bound loop nests.

Every statement is classified by the indices of its arrays (Figure 4.2). Those with *temporal* reuse are tiled for L1
and L2 and ordered (Algorithm 2), those that only read something transposed have *spatial* reuse and are tiled for it
(Algorithm 3), and *contiguous* ones stay as they are, for the sake of the prefetchers. Cache lines that follow another
one cost nothing, since the prefetchers fetch them: misses are counted in rows.

The method is for one loop nest. In a pipeline, stages that are cheaper to repeat than to load are inlined, and all
others are computed one after another, each definition on its own. Register blocks are an addition of ours
(`tiled_loops`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import permutations
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..dataclass import cached_property, dataclass
from ..graph.nodes import Stage
from ..machine.description import Cpu
from ..parameters import Amount, Weight
from ..schedule.directives import StageSchedule, on
from .common.inlining import inlining
from .common.legalize import legal
from .common.marking import Style
from .common.tiles import TiledGroup, scheduled
from .nest.capacity import (
    Capacity,
    Prefetcher,
    Tile,
    l1_misses,
    l2_misses,
    order_cost,
    tile_counts,
    without,
    working_set,
)
from .nest.statement import Numbers, Reference, Statement, is_transposed, product
from .nest.tiled_loops import TiledLoops, in_blocks, tiled
from .strategy import Found, GroupReport, Problem, Report, Strategy

TEMPORAL, SPATIAL, CONTIGUOUS = "temporal", "spatial", "contiguous"
MOST_TILES = 1 << 17  # combinations of sizes that are compared at once
PAIRS = Style(vectors=2)  # ARM has non-temporal stores of pairs of registers only


@dataclass(frozen=True)
class Kernel(Strategy):
    """a2, a3: the relative access times of L2 and L3; by default they follow from the bandwidths of the machine's
    caches."""

    name: ClassVar[str] = "kernel"

    a2: Weight | None = None
    a3: Weight | None = None
    l2_prefetches: Amount = 2  # per access
    l2_prefetch_distance: Amount = 20  # lines
    nontemporal: bool = True  # whether to use stores that bypass the caches
    load_cost: Weight = 10.0  # of a value, relative to an operation: stages that are cheaper to repeat are inlined

    def find(self, problem: Problem) -> Found:
        inlined = inlining(problem, self.load_cost)
        small = problem.inlined(inlined)
        chosen = [self.schedule(small, stage) for stage in small.graph.stages]
        result = legal(problem, [(c.chain,) for c in chosen], inlined)
        alone = "stages are computed one after another: the method does not fuse them"
        remarks = ((alone,) if len(chosen) > 1 else ()) + result.remarks
        parameters = {**asdict(self), **self.weights(problem.cpu)}
        groups = tuple(r for c in chosen for r in c.reports)
        counts = {"tiles compared": sum(c.tiles for c in chosen)}
        return Found(
            result.schedule, Report(self.name, problem.machine.name, parameters, groups, inlined, counts, remarks)
        )

    def weights(self, machine: Cpu) -> dict[str, float]:
        """The weights a2 and a3; those that are None follow from the machine."""
        beyond = machine.caches[2].bandwidth if len(machine.caches) > 2 else machine.core_bandwidth
        fastest = machine.l1.bandwidth
        a2 = max(1.0, fastest / machine.l2.bandwidth) if self.a2 is None else self.a2
        a3 = max(a2, fastest / beyond) if self.a3 is None else self.a3
        return {"a2": a2, "a3": a3}

    def schedule(self, problem: Problem, stage: Stage) -> StageChoice:
        """Schedule a stage on its own, definition by definition."""
        statements = [Statement.of(problem, stage, k) for k in range(len(stage.definitions))]
        optimized = [self.optimize(problem, s) for s in statements]
        chain = _directives(problem, stage, statements, optimized)
        streams = self.nontemporal and _may_stream(problem, stage, optimized[-1].kind)
        chain = chain.nontemporal() if streams else chain
        reports = tuple(_report(s, o, streams) for s, o in zip(statements, optimized, strict=True))
        return StageChoice(chain, reports, sum(o.tiles for o in optimized))

    def optimize(self, problem: Problem, s: Statement) -> OptimizedLoops:
        """The flow of Figure 4.1 for one statement."""
        kind = classify(s)
        if not s.is_tileable:
            return OptimizedLoops(kind, remark="its loops carry values or are too short, so that they stay as they are")
        capacity = Capacity(s, problem.cpu, Prefetcher(self.l2_prefetches, self.l2_prefetch_distance))
        if kind == TEMPORAL:
            return TemporalOptimizer(capacity, **self.weights(problem.cpu)).best()
        if kind == SPATIAL:
            return SpatialOptimizer(capacity).best()
        return OptimizedLoops(kind)


@dataclass(frozen=True)
class StageChoice:
    """The schedule that was chosen for a stage."""

    chain: StageSchedule
    reports: tuple[GroupReport, ...]  # of its statements
    tiles: int


@dataclass(frozen=True)
class OptimizedLoops:
    """The loops that were chosen for a statement; None leaves them as they are."""

    kind: str
    loops: TiledLoops | None = None
    costs: Mapping[str, float] | None = None
    remark: str = ""
    tiles: int = 0  # tiles that were compared, in all orders of loops


def _directives(
    problem: Problem, stage: Stage, statements: Sequence[Statement], optimized: Sequence[OptimizedLoops]
) -> StageSchedule:
    """Tiles as found; definitions without tiles are vectorized and shared among threads."""
    if not any(o.loops for o in optimized):
        return scheduled(problem, TiledGroup(stage.name), PAIRS)[0]
    chain = on(stage.name).compute_root()
    for s, choice in zip(statements, optimized, strict=True):
        start = chain if s.number == 0 else chain.update(s.number - 1)
        plain = problem.alone.marked(stage, s.definition, start)
        marked = tiled(s, start, choice.loops) if choice.loops else plain
        chain = chain if marked == start else marked
    return chain


def _may_stream(problem: Problem, stage: Stage, kind: str) -> bool:
    """Whether to use non-temporal stores: if the output is not used again. 32-bit ARM has none for vectors (§4.5)."""
    is_last = stage.name in problem.graph.output and not problem.graph.consumers[stage.name]
    return is_last and not stage.updates and kind != TEMPORAL and problem.cpu.target.stores_past_caches


def _report(s: Statement, o: OptimizedLoops, streams: bool) -> GroupReport:
    title = "pure definition" if s.number == 0 else f"update {s.number - 1}"
    remarks = [f"{title}: {o.kind}", f"loops: {', '.join(_order(s, o))}", o.remark, "non-temporal stores" * streams]
    tile = () if o.loops is None else ({n: int(t) for n, t in o.loops.tile.items()},)
    return GroupReport(s.stage.name, (), tile, o.costs or {}, tuple(r for r in remarks if r))


def _order(s: Statement, o: OptimizedLoops) -> list[str]:
    return list(s.extents) if o.loops is None else [*o.loops.outer.values(), *o.loops.inner.values()]


# ---- classification


def classify(s: Statement) -> str:
    """Classify a statement by the loops that index the arrays it reads, and the array it writes (Figure 4.2)."""
    if not s.inputs:
        return CONTIGUOUS
    if frozenset().union(*(r.loops for r in s.inputs)) != s.output.loops:
        return TEMPORAL
    return SPATIAL if any(is_transposed(r, s.output) for r in s.inputs) else CONTIGUOUS


# ---- Algorithms 2 and 3


def sizes(extent: int, least: int, base: int = 2) -> list[int]:
    """The tile sizes that are tried along a loop: powers of two from `least` on, and the whole extent."""
    tried = []
    n = least
    while n < extent:
        tried.append(n)
        n *= base
    return [*tried, extent]


@dataclass(frozen=True, eq=False)
class TemporalOptimizer:
    """Tile sizes for temporal reuse (Algorithm 2)."""

    capacity: Capacity
    a2: float
    a3: float

    @property
    def s(self) -> Statement:
        return self.capacity.s

    @cached_property
    def grid(self) -> dict[str, Numbers]:
        """All tile sizes, with one axis per tiled loop. Loops that are too short to be tiled are whole."""
        extents, base = self.s.extents, 2
        while True:
            axes = [sizes(extents[n], self.s.lanes if n == self.s.vector else 1, base) for n in self.s.tileable]
            if prod(map(len, axes)) <= MOST_TILES:
                break
            base *= 2
        return {**extents, **dict(zip(self.s.tileable, np.ix_(*axes), strict=True))}

    @property
    def tile_count(self) -> int:
        return prod(np.size(t) for t in self.grid.values())

    @property
    def order_count(self) -> int:
        """The number of orders of loops that differ in cost or bounds."""
        return len(self._intra_classes()) * len(self._inter_classes())

    def best(self) -> OptimizedLoops:
        """Step 1 finds the tile, step 2 the order of the loops."""
        for constraints in (3, 2, 1, 0):  # the last ones are dropped if a small problem or cache cannot meet them
            best = self.tiled(constraints)
            if best is not None:
                break
        assert best is not None
        cost, tile, outermost, innermost = best
        inter, intra = self.ordered(tile, outermost, innermost)
        loops = in_blocks(self.s, TiledLoops(self.s.extents, tile, inter, intra))
        costs = {
            "C_L1": float(l1_misses(self.s.references, self.s.extents, tile, outermost)),
            "C_L2": float(l2_misses(self.s.references, self.s.extents, tile, innermost)),
            "C_total": cost,
            "C_order": order_cost(self.s.extents, tile, loops.inter, loops.intra),
        }
        remarks = [] if constraints == 3 else ["no tile meets all constraints"]
        if loops.intra != intra:
            least = order_cost(self.s.extents, tile, inter, intra)
            remarks.append(f"sums run innermost, in registers; C_order chose {', '.join(intra)} inside ({least:.4g})")
        return OptimizedLoops(TEMPORAL, loops, costs, "; ".join(remarks), self.tile_count * self.order_count)

    # ---- step 1

    def tiled(self, constraints: int) -> tuple[float, dict[str, int], str, str] | None:
        """The cheapest tile, with its outermost intra-tile and innermost inter-tile loop.

        Apart from these two loops, only the two innermost intra-tile loops around the column matter for an order
        (through Algorithm 1), and the outermost inter-tile loop (through equation 4.13).
        """
        best: tuple[float, dict[str, int], str, str] | None = None
        for outermost, second, first in self._intra_classes():
            valid = self._valid(outermost, second, first, constraints)
            for parallel, innermost in self._inter_classes():
                enough = self.capacity.enough_tiles(parallel, self.grid) if constraints > 2 else True
                cost = np.where(valid & enough, self._l1[outermost] + self._l2[innermost], np.inf)
                at = int(np.argmin(cost))
                if np.isfinite(cost.flat[at]) and (best is None or cost.flat[at] < best[0]):
                    best = (float(cost.flat[at]), self._tile(cost.shape, at), outermost, innermost)
        return best

    def _intra_classes(self) -> list[tuple[str, str, str]]:
        """The outermost loop, and the second and the first loop around the column, of all intra-tile orders.

        "Invalid permutations are those where the loops that correspond to column indices are outermost"; the column is
        innermost, since it becomes the vector.
        """
        others = [n for n in self.s.tileable if n != self.s.vector]
        orders = permutations(others, min(3, len(others)))
        return list(dict.fromkeys((o[0], o[-2] if len(o) > 1 else o[0], o[-1]) for o in orders))

    def _inter_classes(self) -> list[tuple[str, str]]:
        """The outermost and the innermost loop of all inter-tile orders. The outermost one is shared among threads."""
        loops = self.s.tileable
        free = [n for n in loops if n in self.s.free and n != self.s.vector] or [self.s.vector]
        return [(a, b) for a in free for b in loops if a != b]

    def _valid(self, outermost: str, second: str, first: str, constraints: int) -> Numbers:
        """Lines 10 to 24: whether the working sets fit, without interference."""
        grid = self.grid
        valid: Numbers = np.ones(np.broadcast_shapes(*(np.shape(t) for t in grid.values())), bool)
        if constraints > 0:
            valid &= self._fits_l2
            valid &= working_set(self.s.references, without(grid, outermost)) <= self.capacity.l1
        if constraints > 1:
            valid &= grid[first] <= self._bounds(self.s.vector, self.capacity.rows_in_l1)
            if second != first:
                valid &= grid[second] <= self._bounds(first, self.capacity.rows_in_l2)
        return valid

    def _bounds(self, rows_along: str, bound: Any) -> Numbers:
        """Algorithm 1 for all tile sizes of the loop that the rows run along."""
        tiles = self.grid[rows_along]
        bounds = [bound(int(t), self.s.extents[rows_along]) for t in tiles.flat]
        return np.array(bounds).reshape(tiles.shape)

    @cached_property
    def _fits_l2(self) -> Numbers:
        return working_set(self.s.references, self.grid) <= self.capacity.l2

    @cached_property
    def _l1(self) -> dict[str, Numbers]:
        """a2 * C_L1 by outermost intra-tile loop."""
        return {n: self.a2 * l1_misses(self.s.references, self.s.extents, self.grid, n) for n in self.s.tileable}

    @cached_property
    def _l2(self) -> dict[str, Numbers]:
        """a3 * C_L2 by innermost inter-tile loop."""
        return {n: self.a3 * l2_misses(self.s.references, self.s.extents, self.grid, n) for n in self.s.tileable}

    def _tile(self, shape: tuple[int, ...], at: int) -> dict[str, int]:
        place = np.unravel_index(at, shape)
        tiled = {n: int(self.grid[n].flat[k]) for n, k in zip(self.s.tileable, place, strict=True)}
        return {**self.s.extents, **tiled}

    # ---- step 2

    def ordered(self, tile: dict[str, int], outermost: str, innermost: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The order of least distance between equal loops, among those for which the cost of step 1 holds."""
        inters = list(self._inter_orders(tile, innermost))
        intras = list(self._intra_orders(outermost))
        return min(((a, b) for a in inters for b in intras), key=lambda order: order_cost(self.s.extents, tile, *order))

    def _inter_orders(self, tile: dict[str, int], innermost: str) -> Iterator[tuple[str, ...]]:
        others = [n for n in self.s.extents if n != innermost]
        tiled = [n for n in others if n in self.s.tileable]
        short = tuple(n for n in others if n not in tiled)  # which have no loop over tiles
        firsts = [a for a, b in self._inter_classes() if b == innermost]
        enough = [n for n in firsts if self.capacity.enough_tiles(n, tile)] or firsts[:1]
        for first in enough:
            for rest in permutations(n for n in tiled if n != first):
                yield (*short, first, *rest, innermost)

    def _intra_orders(self, outermost: str) -> Iterator[tuple[str, ...]]:
        """Short loops, such as the windows of convolutions, stay inside of all tiled ones."""
        short = tuple(n for n in self.s.extents if n not in self.s.tileable)
        for rest in permutations(n for n in self.s.tileable if n not in (outermost, self.s.vector)):
            yield (outermost, *rest, *short, self.s.vector)


@dataclass(frozen=True, eq=False)
class SpatialOptimizer:
    """Algorithm 3: tiles of width T_x along the column, and of height T_y along the column of the transposed array."""

    capacity: Capacity

    @property
    def s(self) -> Statement:
        return self.capacity.s

    @cached_property
    def height(self) -> str:
        transposed = next(r for r in self.s.inputs if is_transposed(r, self.s.output))
        return next(n for n in self.s.extents if n in transposed.column)

    def best(self) -> OptimizedLoops:
        x, y, extents = self.s.vector, self.height, self.s.extents
        if y not in self.s.free:
            return OptimizedLoops(SPATIAL, remark="its rows carry values, so that they stay as they are")
        widths = np.array(sizes(extents[x], min(self.capacity.per_line, extents[x])))[:, None]
        heights = np.array(sizes(extents[y], min(self.capacity.per_line, extents[y])))
        tile = {x: widths, y: heights}
        cost = sum(self.partial_cost(r, tile) for r in self.s.inputs)
        valid = self._valid(tile)
        valid = valid if valid.any() else np.ones_like(valid)
        cost = np.where(valid, cost, np.inf)
        i, j = np.unravel_index(int(np.argmin(cost)), cost.shape)
        chosen = {**dict.fromkeys(extents, 1), x: int(widths[i, 0]), y: int(heights[j])}
        others = tuple(n for n in extents if n not in (x, y))
        loops = TiledLoops(extents, chosen, (*others, y, x), (y, x))
        return OptimizedLoops(SPATIAL, loops, {"C_total": float(cost[i, j])}, tiles=cost.size)

    def partial_cost(self, r: Reference, tile: Tile) -> Numbers:
        """Equations 4.14 to 4.17: rows of all tiles, times the efficiency T_x / lc of the prefetchers."""
        extents = {n: self.s.extents[n] for n in tile}
        efficiency = tile[self.s.vector] / self.capacity.per_line
        return r.rows(tile) * product(tile_counts(extents, tile).values()) * efficiency

    def _valid(self, tile: Tile) -> Numbers:
        x, y = tile[self.s.vector], tile[self.height]
        transposed = [is_transposed(r, self.s.output) for r in self.s.inputs]
        per_row = sum(self.capacity.per_line if t else 1 for t in transposed)
        l1 = per_row * x * self.capacity.element <= self.capacity.l1  # 4.18
        l2 = len(transposed) * x * y * self.capacity.element <= self.capacity.l2  # 4.19
        pitch = self.s.extents[self.s.vector]
        heights = [self.capacity.rows_in_l2(int(n), pitch) if ok else 0 for n, ok in zip(x.flat, l1.flat, strict=True)]
        return l1 & l2 & (y <= np.array(heights)[:, None]) & self.capacity.enough_tiles(self.height, tile)
