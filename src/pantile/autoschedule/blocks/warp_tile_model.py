"""The costs of groups as overlapped tiles of warps, and their best tiles, by Algorithm 2 of polymage-gpu.

The paper compiles each stage and runs it on one thread of the GPU to measure its registers and its time per iteration.
Here both are estimated, without a GPU: a stage has 8 registers and one for each word that a point reads, at most 64; an
operation or a read takes `CYCLES`, the latency after which an instruction may use the result of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf, isinf, prod

import numpy as np

from ...analysis.access import Access, accesses
from ...dataclass import cached_property, dataclass, memoized
from ...expr.visit import key
from ...machine.multiprocessor import Gpu
from ...target.gpu import WARP_SIZE
from ..fusion.aligned_group import AlignedGroup, Memoized
from ..fusion.alignment import SHORT, StageGraph
from ..fusion.dag import Group, size
from ..fusion.expression_inlining import NONE
from ..fusion.overlapped_tiles import OverlappedTiles
from .group_tiles import WORD, FusedGroup, FusedStage, GroupTiles, Transactions
from .warp_costs import TRANSACTION_SIZES, Algorithm2, Weights
from .warp_tiles import MOST_DIMS, Blocks, Numbers, candidates, warp_sizes

CYCLES = 4
REGISTERS, MOST_REGISTERS = 8, 64


@dataclass(frozen=True)
class Form:
    """Whether each warp has tiles of its own, and which fractions of them may be in registers."""

    per_warp: bool
    fractions: tuple[float, ...]


@dataclass(frozen=True)
class WarpTiledGroup:
    """COST(G), and the tiles that have it: the points of each thread and the threads of a block, by dims of the output.
    A dim with neither is whole in every tile."""

    cost: float
    output: str = ""
    members: tuple[str, ...] = ()  # without the output
    tile: Mapping[str, int] = field(default_factory=dict)
    block: Mapping[str, int] = field(default_factory=dict)
    warp: Mapping[str, int] = field(default_factory=dict)  # the lanes of a warp, if warps have tiles
    registers: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # stage -> dim, count of its last entries
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # stage -> lanes of a warp, by its dims
    fraction: float = 0.0  # of tiles, in registers
    terms: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class _BestTiles:
    """The tile and block with the least cost, along x, y and z, and what of the tile is in registers."""

    cost: float
    tile: tuple[int, ...]
    block: tuple[int, ...]
    warp: tuple[int, ...]
    split_dim: int
    whole_tiles: int  # in registers, along the split dim
    fraction: float
    terms: Mapping[str, float]


@dataclass(frozen=True)
class WarpTileModel:
    """COST(G) for all groups of the stages of a pipeline."""

    stages: StageGraph
    gpu: Gpu
    weights: Weights
    form: Form
    printed: bool = False

    @memoized
    def cost(self, group: Group) -> float:
        """Return the cost of a group in the best of a few tiles."""
        if self._is_alone(group):
            return 0.0
        space = self._space(group)
        if space is None:
            return inf  # line 2
        least = self._least_cost(self._fused(space)) if space.tiled else inf
        return self._untiled(space).cost if isinf(least) else least

    def evaluated(self, group: Group) -> WarpTiledGroup:
        """Return a group in the best of all tiles."""
        if self._is_alone(group):
            (name,) = self.stages.members(group)
            return WarpTiledGroup(0.0, name, remark="a reduction, or no function: scheduled on its own")
        space = self._space(group)
        if space is None:
            return WarpTiledGroup(inf)
        best = self._best(self._fused(space)) if space.tiled else None
        return self._untiled(space) if best is None else self._tiled(space, best)

    def is_hopeless(self, group: Group) -> bool:
        return self.stages.is_hopeless(group)

    def _is_alone(self, group: Group) -> bool:
        """Whether a group is a single stage that is not tiled."""
        return size(group) == 1 and not all(map(self.stages.can_be_fused, self.stages.members(group)))

    def _space(self, group: Group) -> _TiledSpace | None:
        """Return the tiled space of a set of stages; None if it cannot be a group."""
        # One stage at most can be read from outside: others would have to be computed both in tiles and as a whole.
        is_whole = self.stages.live_outs(group) == self.stages.members(group)[-1:]
        if not is_whole or len(self.stages.separate(group)) > 1 or self.is_hopeless(group):
            return None
        aligned = self.stages.aligned(group)
        return None if aligned is None else _TiledSpace(aligned)

    def _tiled(self, space: _TiledSpace, best: _BestTiles) -> WarpTiledGroup:
        """Return a group in its best tiles, by dims of its output."""
        tile, block, warp = map(space.by_dim, (best.tile, best.block, best.warp))
        *members, output = space.group.names
        if not self.form.per_warp:
            return WarpTiledGroup(best.cost, output, tuple(members), tile, block, terms=best.terms)
        stages, registers = self.stages.problem.graph.stage, dict[str, tuple[str, int]]()
        lanes = {name: space.lanes(name, stages[name].dims, warp) for name in space.group.names}
        if best.whole_tiles:
            each = {name: space.dim(name, space.tiled[best.split_dim]) for name in members}
            registers = {name: (dim, best.whole_tiles * lanes[name][dim]) for name, dim in each.items()}
        fraction = best.fraction if registers else 0.0
        return WarpTiledGroup(
            best.cost, output, tuple(members), tile, block, warp, registers, lanes, fraction, best.terms
        )

    @memoized
    def _least_cost(self, group: FusedGroup) -> float:
        """The minimum of §6 over few tiles, blocks, fractions and transaction sizes."""
        rounded = tuple(1 << (n - 1).bit_length() for n in group.extents)
        larger = FusedGroup(group.stages, rounded, group.planes, group.is_stored)
        costs = self._in_any_picture(larger)
        return inf if costs is None else float(costs.in_picture(group).cost.min())

    @memoized
    def _in_any_picture(self, group: FusedGroup) -> Algorithm2 | None:
        """Algorithm 2 for these stages in pictures up to the size of `group`; None if no tiles fit."""
        found = self._fitting(group, is_last=False)
        return found.in_any_picture if len(found.blocks.points) else None

    @memoized
    def _best(self, group: FusedGroup) -> _BestTiles | None:
        """The minimum of §6 over all tiles, blocks, fractions and transaction sizes."""
        found = self._fitting(group, is_last=True)
        if not len(found.blocks.points):
            return None
        at = *_, k = found.cheapest
        if np.isinf(found.cost[at]):
            return None
        best, fraction = found.blocks[k], float(found.fraction[0, k])
        tile, block, warp = (tuple(map(int, of)) for of in (best.tile, best.block, best.warp))
        terms = found.terms_at(at) | {
            "transaction bytes": TRANSACTION_SIZES[at[0]],
            "occupancy": float(np.broadcast_to(found.occupancy, found.cost.shape)[at]),
            "registers": int(np.broadcast_to(found.registers, found.cost.shape)[at]),
            "shared bytes": int(np.broadcast_to(found.shared_per_block, found.cost.shape)[at]),
        }
        split_dim, whole_tiles = int(best.split_dim), int(best.whole_tiles(fraction))
        return _BestTiles(float(found.cost[at]), tile, block, warp, split_dim, whole_tiles, fraction, terms)

    def _fitting(self, group: FusedGroup, *, is_last: bool) -> Algorithm2:
        """Algorithm 2 for the tiles, blocks and fractions that fit."""
        blocks = self._candidates(group.extents, group.planes, group.overlapping, is_last)
        fractions = self.form.fractions if group.is_of_one_size else (0.0,)
        if len(group.stages) == 1:
            fractions = fractions[:1]  # there is no buffer to be in registers
        tiles, column = GroupTiles(group, blocks.shapes), np.array(fractions)[:, None]
        return Algorithm2(self.gpu, self.weights, tiles, blocks, column, self.printed).of_fitting

    def _untiled(self, space: _TiledSpace) -> WarpTiledGroup:
        """Return a single stage that has no valid tile. Its cost is that of one point per thread in blocks of one warp,
        even if these leave multiprocessors idle."""
        output = space.group.output
        if len(space.names) > 1:
            return WarpTiledGroup(inf)
        why = "no valid tile: scheduled as without a strategy"
        if not space.tiled:
            return WarpTiledGroup(0.0, output, remark=why)
        block = tuple(np.array([n]) for n in (WARP_SIZE, *(1 for _ in space.tiled[1:])))
        blocks = Blocks(tuple(np.ones_like(n) for n in block), block, per_warp=False)
        tiles = GroupTiles(self._fused(space), blocks.shapes)
        found = Algorithm2(self.gpu, self.weights, tiles, blocks, printed=self.printed)
        at = np.unravel_index(int(np.argmin(found.sum)), found.sum.shape)
        return WarpTiledGroup(float(found.sum[at]), output, terms=found.terms_at(at), remark=why)

    @memoized
    def _candidates(
        self, extents: tuple[int, ...], planes: int, overlapping: tuple[bool, ...], is_last: bool
    ) -> Blocks:
        """The blocks to try. There are enough of them for all multiprocessors, unless the algorithm is as printed. If
        warps have tiles of their own, they need nothing from each other."""
        blocks = candidates(extents, is_last=is_last, per_warp=self.form.per_warp)
        if self.form.per_warp:
            blocks = blocks.of_single_warps(overlapping)
        blocks = blocks.with_own_shapes()
        least = 0 if self.printed else self.gpu.multiprocessors
        return blocks[planes * blocks.in_picture(extents) >= least]

    # ---- the inputs of the algorithm

    def inputs(self, group: AlignedGroup) -> FusedGroup:
        """Return the inputs of the algorithm for a group."""
        return self._fused(_TiledSpace(group))

    def _fused(self, space: _TiledSpace) -> FusedGroup:
        stages = tuple(
            self._stage(
                name,
                self._sources[name] - space.names,
                space.positions(name),
                space.density(name),
                space.overlap(name),
                space.fixed(name),
            )
            for name in space.group.names
        )
        is_stored = space.group.output in self.stages.problem.graph.output
        return FusedGroup(stages, space.extents, space.plane_count, is_stored)

    @memoized
    def _stage(
        self,
        name: str,
        outside: frozenset[str],
        along: tuple[int | None, ...],
        density: tuple[float | None, ...],
        overlap: tuple[float, ...],
        fixed: int,
    ) -> FusedStage:
        """Return a stage that reads the stages and inputs `outside` of its group. `along` says which of x, y, z its
        dims are."""
        loads = self._loads(name, outside, along, len(density))
        return FusedStage(
            self.stages.facts.bytes_per_point(name), loads, density, overlap, fixed, *self._estimates[name]
        )

    @cached_property
    def _estimates(self) -> Memoized[str, tuple[int, float]]:
        return Memoized(self._estimated)

    def _estimated(self, name: str) -> tuple[int, float]:
        """Estimate the registers of a stage, and the seconds of a point of it."""
        facts = self.stages.facts
        words, cycles = 0, 0.0
        for k in range(len(facts.graph.stage[name].definitions)):
            reads = facts.reads(name, k)
            words += sum(count * -(-facts.bytes_per_point(source) // WORD) for source, count in reads.items())
            runs = facts.runs(name, k) / facts.points(name)
            cycles += runs * (facts.arithmetic(name, k) + sum(reads.values())) * CYCLES
        return min(MOST_REGISTERS, REGISTERS + words), max(float(CYCLES), cycles) / (self.gpu.ghz * 1e9)

    @memoized
    def _loads(self, name: str, sources: frozenset[str], along: tuple[int | None, ...], dims: int) -> Transactions:
        """The transactions for what a stage reads from outside of its group (lines 14-16)."""
        total = np.zeros((len(_warps(dims)), len(TRANSACTION_SIZES)))
        place = dict(zip(self.stages.problem.graph.stage[name].dims, along, strict=True))
        for access, runs in self._reads[name]:
            if self.stages.facts.source(access.buffer) in sources:
                total += runs * _transactions(self._moves(access, place), dims)
        return tuple(zip(_warps(dims), map(tuple, total.tolist()), strict=True))

    @cached_property
    def _reads(self) -> Memoized[str, list[tuple[Access, float]]]:
        return Memoized(lambda name: list(self._global_loads(name)))

    @cached_property
    def _sources(self) -> Memoized[str, frozenset[str]]:
        """The stages and inputs that a stage reads."""
        return Memoized(lambda name: frozenset(self.stages.facts.source(a.buffer) for a, _ in self._reads[name]))

    def _global_loads(self, name: str) -> Iterator[tuple[Access, float]]:
        """GET_GLOBAL_MEM_LOADS: the distinct reads of a stage, with how often each is done per point."""
        facts, stage = self.stages.facts, self.stages.problem.graph.stage[name]
        for k, definition in enumerate(stage.definitions):
            runs = facts.runs(name, k) / facts.points(name)
            different = {(a.buffer, *map(key, a.load.indices)): a for a in accesses(stage, definition)}
            yield from ((access, runs) for access in different.values())

    def _moves(self, access: Access, place: Mapping[str, int | None]) -> _Moves | None:
        """The distances, in bytes, between the reads of consecutive threads along x, y, z; None if indices depend on
        data."""
        facts = self.stages.facts
        moves, stride = [], access.load.dtype.bytes
        extents = facts.extents(facts.source(access.buffer))
        for index, extent in zip(access.indices[::-1], extents[::-1], strict=True):
            if index is None:
                return None
            along = None if index.dim is None else place.get(index.dim)
            if along is not None:
                moves.append((along, index.scale, stride))
            stride *= extent
        return tuple(moves)


_Moves = tuple[tuple[int, Fraction, int], ...]


@cache
def _warps(dims: int) -> list[tuple[int, ...]]:
    """All warp sizes in this number of dims."""
    powers = [1 << k for k in range(WARP_SIZE.bit_length())]
    blocks = [b for b in product(powers, repeat=dims) if prod(b) == WARP_SIZE]
    return [tuple(int(w) for w in warp_sizes(b)) for b in blocks]


@cache
def _lanes(dims: int) -> Numbers:
    """The coordinates of the lanes along each dim, by warp size."""
    lanes = np.arange(WARP_SIZE)
    return np.array([[lanes // prod(warp[:k]) % warp[k] for warp in _warps(dims)] for k in range(dims)])


def _transactions(moves: _Moves | None, dims: int) -> Numbers:
    """MIN_GL_TXS: the fewest transactions of each size that fetch what the threads of a warp read, by warp size."""
    if moves is None:
        return np.full((len(_warps(dims)), len(TRANSACTION_SIZES)), float(WARP_SIZE))
    lanes = _lanes(dims)
    address = sum((lanes[at] * s.numerator // s.denominator * far for at, s, far in moves), 0 * lanes[0])
    touched = np.sort([address // size for size in TRANSACTION_SIZES])
    return 1.0 + np.count_nonzero(np.diff(touched), axis=-1).T


class _TiledSpace:
    """The dims of an aligned group as x, y and z of blocks."""

    def __init__(self, group: AlignedGroup) -> None:
        self.group, self.names = group, frozenset(group.names)
        self._shape = OverlappedTiles(group, NONE)
        long = self._shape.long
        self.tiled = tuple(long[::-1][:MOST_DIMS])  # dims of the output, the innermost first
        self.planes = tuple(k for k in range(len(group.dims)) if k in long[:-MOST_DIMS] or self._is_apart(k))
        self.extents = tuple(group.extents[k] for k in self.tiled)
        self.plane_count = prod(group.extents[k] for k in self.planes)

    def _is_apart(self, k: int) -> bool:
        """Whether a short dim, such as colour planes, may have tiles of 1: all stages have the dim, and a plane reads
        only itself. In contrast, the channels of a pixel are computed by one thread."""
        group, space = self.group, self.group.output_space
        is_outer = bool(self.tiled) and k < self.tiled[0] and group.extents[k] <= SHORT
        alike = is_outer and all(space.density[n].get(k) == 1 for n in group.names)
        return alike and all(far[k] == (0, 0) for far in group.dependences.values())

    def by_dim(self, sizes: Sequence[int]) -> dict[str, int]:
        """Map sizes along x, y and z to dims of the output, with size 1 for planes."""
        along = dict(zip(self.tiled, sizes, strict=True)) | dict.fromkeys(self.planes, 1)
        return {self.group.dims[k]: along[k] for k in sorted(along)}

    def positions(self, name: str) -> tuple[int | None, ...]:
        """Return which of x, y and z each dim of a stage goes along; None for other dims."""
        axes = self.group.output_space.axes[name]
        tiled = [axes.get(dim) for dim in self.group.stages.problem.graph.stage[name].dims]
        return tuple(self.tiled.index(k) if k in self.tiled else None for k in tiled)

    def dim(self, name: str, k: int) -> str:
        """The dim of a stage that goes along dim `k` of the output."""
        return next(dim for dim, along in self.group.output_space.axes[name].items() if along == k)

    def lanes(self, name: str, dims: Sequence[str], warp: Mapping[str, int]) -> dict[str, int]:
        """The lanes of a warp along each dim of a stage."""
        axes = self.group.output_space.axes[name]
        along = {dim: self.group.dims[axes[dim]] for dim in dims if dim in axes}
        return {dim: warp.get(along.get(dim, ""), 1) for dim in dims}

    def density(self, name: str) -> tuple[float | None, ...]:
        return tuple(self.group.output_space.density[name].get(k) for k in self.tiled)

    def overlap(self, name: str) -> tuple[float, ...]:
        reach = self._shape.reach(name)
        return tuple(reach[k] for k in self.tiled)

    def fixed(self, name: str) -> int:
        """The points of a stage in a tile, for each point along the tiled dims."""
        space = self.group.output_space
        whole = prod(n for k, n in space.along[name].items() if k not in self.tiled and k not in self.planes)
        reach = self._shape.reach(name)
        beyond = prod(int(1 + reach[k]) for k in self.planes if k in space.along[name])
        return int(space.beside[name] * whole * beyond)
