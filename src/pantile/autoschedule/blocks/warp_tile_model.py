"""What groups cost as overlapped tiles of warps, and their best tiles: what Algorithm 2 of polymage-gpu is called with.

The paper compiles each stage and runs it on one thread of the GPU for its registers and its time per iteration. Here
both are estimated, without a GPU: a stage has 8 registers and one for each word that a point reads, 64 at most; an
operation or a read takes `CYCLES`, those after which an instruction may use the result of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf, prod

import numpy as np

from ...analysis.access import Access, accesses
from ...dataclass import cached_property, dataclass, memoized
from ...expr.visit import key
from ...machine.multiprocessor import Gpu
from ...target.gpu import WARP_SIZE
from ..fusion.aligned_group import AlignedGroup, Memoized
from ..fusion.alignment import SHORT, StageGraph
from ..fusion.dag import Group
from ..fusion.expression_inlining import NONE
from ..fusion.overlapped_tiles import OverlappedTiles
from .group_tiles import WORD, FusedGroup, FusedStage, GroupTiles, Transactions
from .warp_costs import TRANSACTION_SIZES, Algorithm2, Weights
from .warp_tiles import MOST_DIMS, Blocks, Numbers, candidates, warp_sizes

CYCLES = 4
REGISTERS, MOST_REGISTERS = 8, 64


@dataclass(frozen=True)
class Form:
    """What the tiles of a group are of, and which fractions of them may be in registers."""

    per_warp: bool
    fractions: tuple[float, ...]


@dataclass(frozen=True)
class WarpTiledGroup:
    """COST(G), and the tiles that have it: of each thread, and threads of a block, by dims of the output. Of dims with
    neither, all belongs to every tile."""

    cost: float
    output: str = ""
    members: tuple[str, ...] = ()  # the others
    tile: Mapping[str, int] = field(default_factory=dict)
    block: Mapping[str, int] = field(default_factory=dict)
    warp: Mapping[str, int] = field(default_factory=dict)  # its lanes, where tiles are those of warps
    registers: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # stage -> the last so many entries of a dim
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # stage -> those of a warp, by its dims
    fraction: float = 0.0  # in registers
    terms: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class _BestTiles:
    """The tiles and blocks with the least cost, along x, y and z, and where that is in registers."""

    cost: float
    tile: tuple[int, ...]
    block: tuple[int, ...]
    warp: tuple[int, ...]
    split_dim: int
    whole_tiles: int  # along the split dim
    fraction: float
    terms: Mapping[str, float]


@dataclass(frozen=True)
class WarpTileModel:
    """COST(G) for all sets of the same stages."""

    stages: StageGraph
    gpu: Gpu
    weights: Weights
    form: Form
    printed: bool = False
    _found: dict[Group, WarpTiledGroup] = field(default_factory=dict)

    def cost(self, group: Group) -> float:
        return self.costed(group).cost

    def is_hopeless(self, group: Group) -> bool:
        return bool(group & self._unfused) or self.stages.is_hopeless(group)

    @cached_property
    def _unfused(self) -> Group:
        """Reductions, and what is no function."""
        graph = self.stages.problem.graph
        able = [self.stages.can_be_fused(n) for n in self.stages.names]
        sums = [any(d.domain for d in graph.stage[n].definitions) for n in self.stages.names]
        return sum(1 << v for v, (a, s) in enumerate(zip(able, sums, strict=True)) if s or not a)

    def costed(self, group: Group) -> WarpTiledGroup:
        if group not in self._found:
            self._found[group] = self.evaluated(group, is_last=False)
        return self._found[group]

    def evaluated(self, group: Group, *, is_last: bool) -> WarpTiledGroup:
        """A group in the best of few tiles, or in the last pass of all."""
        names = self.stages.members(group)
        if len(names) == 1 and group & self._unfused:
            return WarpTiledGroup(0.0, names[0], remark="a reduction, or no function: scheduled on its own")
        # One stage at most can be read from outside: others would have to be computed both in tiles and as a whole.
        is_whole = self.stages.live_outs(group) == names[-1:] and len(self.stages.separate(group)) == 1
        aligned = None if not is_whole or self.is_hopeless(group) else self.stages.aligned(group)
        return WarpTiledGroup(inf) if aligned is None else self._tiled(aligned, is_last)  # line 2

    def _tiled(self, group: AlignedGroup, is_last: bool) -> WarpTiledGroup:
        """A group in its best tiles, by dims of its output."""
        space = _TiledSpace(group)
        best = self._best(self._fused(space), is_last) if space.tiled else None
        if best is None:
            return self._untiled(group, space)
        tile, block, warp = map(space.by_dim, (best.tile, best.block, best.warp))
        *members, output = group.names
        if not self.form.per_warp:
            return WarpTiledGroup(best.cost, output, tuple(members), tile, block, terms=best.terms)
        stages, registers = self.stages.problem.graph.stage, dict[str, tuple[str, int]]()
        lanes = {name: space.lanes(name, stages[name].dims, warp) for name in group.names}
        if best.whole_tiles:
            each = {name: space.dim(name, space.tiled[best.split_dim]) for name in members}
            registers = {name: (dim, best.whole_tiles * lanes[name][dim]) for name, dim in each.items()}
        fraction = best.fraction if registers else 0.0
        return WarpTiledGroup(
            best.cost, output, tuple(members), tile, block, warp, registers, lanes, fraction, best.terms
        )

    @memoized
    def _best(self, group: FusedGroup, is_last: bool) -> _BestTiles | None:
        """The minimum of §6 over tiles, blocks, fractions and transaction sizes."""
        blocks = self._candidates(group.extents, group.planes, group.overlapping, is_last)
        fractions = self.form.fractions if group.is_of_one_size else (0.0,)
        if len(group.stages) == 1:
            fractions = fractions[:1]  # there is no buffer to be in registers
        tiles = GroupTiles(group, blocks.shapes)
        found = Algorithm2(self.gpu, self.weights, tiles, blocks, fractions, self.printed).of_fitting
        blocks = found.blocks
        if not len(blocks.points):
            return None
        at = size, share, k = found.cheapest
        if np.isinf(found.cost[at]):
            return None
        tile, block, warp = (tuple(int(n[k]) for n in of) for of in (blocks.tile, blocks.block, blocks.warp))
        terms = found.terms_at(at) | {
            "transaction bytes": TRANSACTION_SIZES[size],
            "occupancy": float(np.broadcast_to(found.occupancy, found.cost.shape)[at]),
            "registers": int(np.broadcast_to(found.registers, found.cost.shape)[at]),
            "shared bytes": int(np.broadcast_to(found.shared_per_block, found.cost.shape)[at]),
        }
        split_dim, whole_tiles = int(blocks.split_dim[k]), int(blocks.whole_tiles(fractions[share])[k])
        return _BestTiles(float(found.cost[at]), tile, block, warp, split_dim, whole_tiles, fractions[share], terms)

    def _untiled(self, group: AlignedGroup, space: _TiledSpace) -> WarpTiledGroup:
        """A stage that has no valid tile, by itself, at the cost of one that leaves multiprocessors idle."""
        if len(group.names) > 1:
            return WarpTiledGroup(inf)
        why = "no valid tile: scheduled as without a strategy"
        if not space.tiled:
            return WarpTiledGroup(0.0, group.output, remark=why)
        block = tuple(np.array([n]) for n in (WARP_SIZE, *(1 for _ in space.tiled[1:])))
        blocks = Blocks(tuple(np.ones_like(n) for n in block), block, per_warp=False)
        tiles = GroupTiles(self._fused(space), blocks.shapes)
        found = Algorithm2(self.gpu, self.weights, tiles, blocks, printed=self.printed)
        at = np.unravel_index(int(np.argmin(found.sum)), found.sum.shape)
        return WarpTiledGroup(float(found.sum[at]), group.output, terms=found.terms_at(at), remark=why)

    @memoized
    def _candidates(
        self, extents: tuple[int, ...], planes: int, overlapping: tuple[bool, ...], is_last: bool
    ) -> Blocks:
        """The blocks to try: all, or those whose warps can have tiles of their own, and one for each multiprocessor."""
        blocks = candidates(extents, is_last=is_last, per_warp=self.form.per_warp)
        if self.form.per_warp:
            blocks = blocks.of_single_warps(overlapping)
        least = 0 if self.printed else self.gpu.multiprocessors
        return blocks[planes * blocks.in_picture(extents) >= least]

    # ---- the inputs of the algorithm

    def inputs(self, group: AlignedGroup) -> FusedGroup:
        """What the algorithm is told of a group."""
        return self._fused(_TiledSpace(group))

    def _fused(self, space: _TiledSpace) -> FusedGroup:
        stages = tuple(self._stage(space, name) for name in space.group.names)
        is_stored = space.group.output in self.stages.problem.graph.output
        return FusedGroup(stages, space.extents, space.plane_count, is_stored)

    def _stage(self, space: _TiledSpace, name: str) -> FusedStage:
        return FusedStage(
            self.stages.facts.bytes_per_point(name),
            self._loads(space, name),
            space.density(name),
            space.overlap(name),
            space.fixed(name),
            *self._estimates[name],
        )

    @cached_property
    def _estimates(self) -> Memoized[str, tuple[int, float]]:
        return Memoized(self._estimated)

    def _estimated(self, name: str) -> tuple[int, float]:
        """The registers of a stage, and the seconds of a point of it."""
        facts = self.stages.facts
        words, cycles = 0, 0.0
        for k in range(len(facts.graph.stage[name].definitions)):
            reads = facts.reads(name, k)
            words += sum(count * -(-facts.bytes_per_point(source) // WORD) for source, count in reads.items())
            runs = facts.runs(name, k) / facts.points(name)
            cycles += runs * (facts.arithmetic(name, k) + sum(reads.values())) * CYCLES
        return min(MOST_REGISTERS, REGISTERS + words), max(float(CYCLES), cycles) / (self.gpu.ghz * 1e9)

    def _loads(self, space: _TiledSpace, name: str) -> Transactions:
        """The transactions for what a stage reads of others than the group's (lines 14-16)."""
        along = tuple(space.position(name, dim) for dim in self.stages.problem.graph.stage[name].dims)
        sources = frozenset(self.stages.facts.source(access.buffer) for access, _ in self._reads[name])
        return self._loads_of(name, sources - space.names, along, len(space.extents))

    @memoized
    def _loads_of(self, name: str, sources: frozenset[str], along: tuple[int | None, ...], dims: int) -> Transactions:
        """Those for what it reads of some stages and inputs, where its dims are these of x, y and z."""
        total = np.zeros((len(_warps(dims)), len(TRANSACTION_SIZES)))
        place = dict(zip(self.stages.problem.graph.stage[name].dims, along, strict=True))
        for access, runs in self._reads[name]:
            if self.stages.facts.source(access.buffer) in sources:
                total += runs * self._transactions(self._moves(access, place), access.load.dtype.bytes, dims)
        return tuple(zip(_warps(dims), map(tuple, total.tolist()), strict=True))

    @memoized
    def _transactions(self, moves: _Moves | None, size: int, dims: int) -> Numbers:
        """The transactions of loads of values of so many bytes, by warp sizes."""
        return np.array([_coalesced(moves, warp) for warp in _warps(dims)])

    @cached_property
    def _reads(self) -> Memoized[str, list[tuple[Access, float]]]:
        return Memoized(lambda name: list(self._global_loads(name)))

    def _global_loads(self, name: str) -> Iterator[tuple[Access, float]]:
        """GET_GLOBAL_MEM_LOADS: the different reads of a stage, with how often a point does each."""
        facts, stage = self.stages.facts, self.stages.problem.graph.stage[name]
        for k, definition in enumerate(stage.definitions):
            runs = facts.runs(name, k) / facts.points(name)
            different = {(a.buffer, *map(key, a.load.indices)): a for a in accesses(stage, definition)}
            yield from ((access, runs) for access in different.values())

    def _moves(self, access: Access, place: Mapping[str, int | None]) -> _Moves | None:
        """How far, in bytes, consecutive threads along x, y, z read from each other; None where data decide."""
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
    """All warp sizes along so many dims."""
    powers = [1 << k for k in range(WARP_SIZE.bit_length())]
    blocks = [b for b in product(powers, repeat=dims) if prod(b) == WARP_SIZE]
    return [tuple(int(w) for w in warp_sizes(b)) for b in blocks]


def _coalesced(moves: _Moves | None, warp: tuple[int, ...]) -> tuple[float, ...]:
    """MIN_GL_TXS: the fewest transactions that bring what the threads of a warp read, by their sizes."""
    if moves is None:
        return (float(WARP_SIZE),) * len(TRANSACTION_SIZES)
    lanes = np.arange(prod(warp))
    places = [lanes // prod(warp[:k]) % n for k, n in enumerate(warp)]
    address = sum((places[at] * s.numerator // s.denominator * far for at, s, far in moves), 0 * lanes)
    return tuple(float(len(np.unique(address // size))) for size in TRANSACTION_SIZES)


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
        """Whether a short dim, such as colour planes, may be tiled by one: it is that of all stages, and each plane
        needs itself alone. Channels of a pixel are computed by one thread."""
        group, space = self.group, self.group.output_space
        is_outer = bool(self.tiled) and k < self.tiled[0] and group.extents[k] <= SHORT
        alike = is_outer and all(space.density[n].get(k) == 1 for n in group.names)
        return alike and all(far[k] == (0, 0) for far in group.dependences.values())

    def by_dim(self, sizes: Sequence[int]) -> dict[str, int]:
        """Sizes along x, y and z by dims of the output, those of planes included."""
        along = dict(zip(self.tiled, sizes, strict=True)) | dict.fromkeys(self.planes, 1)
        return {self.group.dims[k]: along[k] for k in sorted(along)}

    def position(self, name: str, dim: str) -> int | None:
        """Which of x, y and z a dim of a stage goes along."""
        k = self.group.output_space.axes[name].get(dim)
        return self.tiled.index(k) if k in self.tiled else None

    def dim(self, name: str, k: int) -> str:
        """The dim of a stage that goes along one of the output."""
        return next(dim for dim, along in self.group.output_space.axes[name].items() if along == k)

    def lanes(self, name: str, dims: Sequence[str], warp: Mapping[str, int]) -> dict[str, int]:
        """The lanes of a warp by the dims of a stage."""
        axes = self.group.output_space.axes[name]
        along = {dim: self.group.dims[axes[dim]] for dim in dims if dim in axes}
        return {dim: warp.get(along.get(dim, ""), 1) for dim in dims}

    def density(self, name: str) -> tuple[float | None, ...]:
        return tuple(self.group.output_space.density[name].get(k) for k in self.tiled)

    def overlap(self, name: str) -> tuple[float, ...]:
        reach = self._shape.reach(name)
        return tuple(reach[k] for k in self.tiled)

    def fixed(self, name: str) -> int:
        """The points of a stage at one point of the dims that are tiled, in one tile."""
        space = self.group.output_space
        whole = prod(n for k, n in space.along[name].items() if k not in self.tiled and k not in self.planes)
        reach = self._shape.reach(name)
        beyond = prod(int(1 + reach[k]) for k in self.planes if k in space.along[name])
        return int(space.beside[name] * whole * beyond)
