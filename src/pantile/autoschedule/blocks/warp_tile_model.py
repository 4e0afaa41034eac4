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
from ...dataclass import cached_property, dataclass
from ...expr.visit import key
from ...machine.multiprocessor import Gpu
from ...target.gpu import WARP_SIZE
from ..fusion.aligned_group import AlignedGroup, Memoized
from ..fusion.alignment import SHORT, StageGraph
from ..fusion.dag import Group
from ..fusion.expression_inlining import NONE
from ..fusion.overlapped_tiles import OverlappedTiles
from .warp_costs import TRANSACTION_SIZES, WORD, Algorithm2, FusedGroup, FusedStage, Weights
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
class WarpTileModel:
    """COST(G) for all sets of the same stages."""

    stages: StageGraph
    gpu: Gpu
    weights: Weights
    form: Form
    printed: bool = False
    _found: dict[Group, WarpTiledGroup] = field(default_factory=dict)
    _blocks: dict[tuple[tuple[int, ...], int, tuple[bool, ...], bool], Blocks] = field(default_factory=dict)
    _transactions: dict[object, Numbers] = field(default_factory=dict)

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
        """The minimum of §6 over tiles, blocks, fractions and transaction sizes."""
        space = _TiledSpace(group)
        blocks = self._candidates(space, is_last) if space.tiled else None
        if blocks is None or not len(blocks.warp_kind):
            return self._untiled(group, space)
        fractions = self.form.fractions if space.is_of_one_size else (0.0,)
        found = Algorithm2(self.gpu, self.weights, self._fused(space), blocks, fractions, self.printed).of_fitting
        blocks = found.blocks
        if not len(blocks.points):
            return self._untiled(group, space)
        at = np.unravel_index(int(np.argmin(found.cost)), found.cost.shape)
        if np.isinf(found.cost[at]):
            return self._untiled(group, space)
        tile, block, warp = (
            space.by_dim([int(n[at[0]]) for n in of]) for of in (blocks.tile, blocks.block, blocks.warp)
        )
        terms = found.terms_at(at) | {
            "transaction bytes": TRANSACTION_SIZES[at[2]],
            "occupancy": float(np.broadcast_to(found.occupancy, found.cost.shape)[at]),
            "registers": int(np.broadcast_to(found.registers, found.cost.shape)[at]),
            "shared bytes": int(np.broadcast_to(found.shared_per_block, found.cost.shape)[at]),
        }
        *members, output = group.names
        cost, registers = float(found.cost[at]), dict[str, tuple[str, int]]()
        if not self.form.per_warp:
            return WarpTiledGroup(cost, output, tuple(members), tile, block, terms=terms)
        stages = self.stages.problem.graph.stage
        lanes = {name: space.lanes(name, stages[name].dims, warp) for name in group.names}
        if whole := int(blocks.whole_tiles(np.array([fractions[at[1]]]))[at[0], 0]):
            split = space.tiled[int(blocks.split_dim[at[0]])]
            each = {name: space.dim(name, split) for name in members}
            registers = {name: (dim, whole * lanes[name][dim]) for name, dim in each.items()}
        fraction = fractions[at[1]] if registers else 0.0
        return WarpTiledGroup(cost, output, tuple(members), tile, block, warp, registers, lanes, fraction, terms)

    def _untiled(self, group: AlignedGroup, space: _TiledSpace) -> WarpTiledGroup:
        """A stage that has no valid tile, by itself, at the cost of one that leaves multiprocessors idle."""
        if len(group.names) > 1:
            return WarpTiledGroup(inf)
        why = "no valid tile: scheduled as without a strategy"
        if not space.tiled:
            return WarpTiledGroup(0.0, group.output, remark=why)
        block = tuple(np.array([n]) for n in (WARP_SIZE, *(1 for _ in space.tiled[1:])))
        blocks = Blocks(tuple(np.ones_like(n) for n in block), block, per_warp=False)
        found = Algorithm2(self.gpu, self.weights, self._fused(space), blocks, printed=self.printed)
        at = np.unravel_index(int(np.argmin(found.sum)), found.sum.shape)
        return WarpTiledGroup(float(found.sum[at]), group.output, terms=found.terms_at(at), remark=why)

    def _candidates(self, space: _TiledSpace, is_last: bool) -> Blocks:
        """The blocks to try: all, or those whose warps can have tiles of their own, and one for each multiprocessor."""
        overlapping = space.overlapping if self.form.per_warp else ()
        at = space.extents, space.plane_count, overlapping, is_last
        if at not in self._blocks:
            blocks = candidates(space.extents, is_last=is_last, per_warp=self.form.per_warp)
            blocks = blocks.of_single_warps(overlapping)
            least = 0 if self.printed else self.gpu.multiprocessors
            self._blocks[at] = blocks[space.plane_count * blocks.in_picture(space.extents) >= least]
        return self._blocks[at]

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

    def _loads(self, space: _TiledSpace, name: str) -> Mapping[tuple[int, ...], tuple[float, ...]]:
        """The transactions for what a stage reads of others than the group's (lines 14-16), by warp sizes."""
        warps = _warps(len(space.extents))
        total = np.zeros((len(warps), len(TRANSACTION_SIZES)))
        for access, runs in _global_loads(self.stages, space.group, name):
            moves = self._moves(space, name, access)
            at = moves, access.load.dtype.bytes, len(space.extents)
            if at not in self._transactions:
                self._transactions[at] = np.array([_coalesced(moves, w) for w in warps])
            total += runs * self._transactions[at]
        return dict(zip(warps, map(tuple, total.tolist()), strict=True))

    def _moves(self, space: _TiledSpace, name: str, access: Access) -> _Moves | None:
        """How far, in bytes, consecutive threads along x, y, z read from each other; None where data decide."""
        facts = self.stages.facts
        moves, stride = [], access.load.dtype.bytes
        extents = facts.extents(facts.source(access.buffer))
        for index, extent in zip(access.indices[::-1], extents[::-1], strict=True):
            if index is None:
                return None
            along = None if index.dim is None else space.position(name, index.dim)
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


def _global_loads(stages: StageGraph, group: AlignedGroup, name: str) -> Iterator[tuple[Access, float]]:
    """GET_GLOBAL_MEM_LOADS: the different reads of inputs and of other groups, with how often a point does each."""
    facts, stage = stages.facts, stages.problem.graph.stage[name]
    for k, definition in enumerate(stage.definitions):
        runs = facts.runs(name, k) / facts.points(name)
        different = {(a.buffer, *map(key, a.load.indices)): a for a in accesses(stage, definition)}
        for access in different.values():
            if facts.source(access.buffer) not in group.names:
                yield access, runs


class _TiledSpace:
    """The dims of an aligned group as x, y and z of blocks."""

    def __init__(self, group: AlignedGroup) -> None:
        self.group = group
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

    @property
    def is_of_one_size(self) -> bool:
        """Whether all stages have a point for each point of the output, so that lanes have the same ones of each."""
        return all(each == 1 for name in self.group.names for each in self.density(name))

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

    @property
    def overlapping(self) -> tuple[bool, ...]:
        """Along which of x, y and z some stages overlap."""
        return tuple(any(o) for o in zip(*map(self.overlap, self.group.names), strict=True))

    def fixed(self, name: str) -> int:
        """The points of a stage at one point of the dims that are tiled, in one tile."""
        space = self.group.output_space
        whole = prod(n for k, n in space.along[name].items() if k not in self.tiled and k not in self.planes)
        reach = self._shape.reach(name)
        beyond = prod(int(1 + reach[k]) for k in self.planes if k in space.along[name])
        return int(space.beside[name] * whole * beyond)
