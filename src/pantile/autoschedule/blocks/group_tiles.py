"""The sizes, loads and work of a group of stages in overlapped tiles of many shapes (polymage-gpu §4, §6).

    tiles of 128 x 8, a stage that overlaps by 2 x 4    ->    130 x 12 points, 1.52 times those without overlap

`warp_costs` decides how many such tiles a block has, and how many blocks run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...dataclass import cached_property, dataclass, hashed_once
from .warp_tiles import Numbers, TileShapes

WORD = 4  # bytes of a register

Transactions = tuple[tuple[tuple[int, ...], tuple[float, ...]], ...]  # warp size -> transactions by GLMemTxSz


@hashed_once
@dataclass(frozen=True)
class FusedStage:
    """One stage of a group. Its tile has `fixed` points for each point along those dims of a block that the stage
    has."""

    bytes: int  # of a point
    transactions: Transactions  # of a point
    density: tuple[float | None, ...]  # its points per point of the output, along x, y, z; None for dims it lacks
    overlap: tuple[float, ...]  # O_x, O_y, O_z, in points of the output
    fixed: int = 1
    registers: int = 0  # REG_USAGE(H)
    seconds: float = 0.0  # TIME_PER_ITER(H)

    @property
    def points(self) -> float:
        """Its points per point of the output."""
        return self.fixed * prod(d for d in self.density if d is not None)


@dataclass(frozen=True)
class FusedGroup:
    """Fused stages, the output last. `extents` are those of the output along x, y, z."""

    stages: tuple[FusedStage, ...]
    extents: tuple[int, ...]
    planes: int = 1  # tiles along other dims of the output
    is_stored: bool = True  # whether the output is one of the pipeline; others may have partial blocks

    @property
    def is_of_one_size(self) -> bool:
        """Whether all stages have one point per point of the output, so that a lane has the same points of every
        stage."""
        return all(each == 1 for stage in self.stages for each in stage.density)

    @property
    def overlapping(self) -> tuple[bool, ...]:
        """For each of x, y and z, whether some stage overlaps along it."""
        return tuple(any(far) for far in zip(*(stage.overlap for stage in self.stages), strict=True))


@dataclass(frozen=True, eq=False)
class GroupTiles:
    """The tiles of all stages of a group, for many shapes of overlapped tiles. Stages with equal density and overlap
    have tiles of one kind."""

    group: FusedGroup
    shapes: TileShapes

    # ---- points, by kinds of stages and boxes of tiles

    @cached_property
    def _kinds(self) -> dict[tuple[tuple[float | None, ...], tuple[float, ...]], list[int]]:
        """The indices of the stages of each kind."""
        kinds: dict[tuple[tuple[float | None, ...], tuple[float, ...]], list[int]] = {}
        for place, stage in enumerate(self.group.stages):
            kinds.setdefault((stage.density, stage.overlap), []).append(place)
        return kinds

    @cached_property
    def _density(self) -> Numbers:
        """The density of each kind of stage along each dim; 0 along dims that it lacks, where it has one point."""
        return np.array([[dense or 0.0 for dense in density] for density, _ in self._kinds])

    @cached_property
    def _inside(self) -> list[Numbers]:
        """The points of each kind of stage along each dim, without overlap."""
        dims = zip(self.shapes.boxes, self._density.T, strict=True)
        return [np.maximum(np.ceil(extent * dense[:, None]), 1) for extent, dense in dims]

    @cached_property
    def _along(self) -> list[Numbers]:
        """The points of each kind of stage along each dim."""
        beyond = np.ceil(np.array([overlap for _, overlap in self._kinds]) * self._density)
        return [inside + further[:, None] for inside, further in zip(self._inside, beyond.T, strict=True)]

    @cached_property
    def computed(self) -> Numbers:
        """COMPUTE_TILE_VOL: the points of each kind of stage, which are the sizes of its scratchpads."""
        return prod(self._along)

    @cached_property
    def _plain(self) -> Numbers:
        """The points of each kind of stage without overlap."""
        return prod(self._inside)

    @cached_property
    def _redundancy(self) -> Numbers:
        """The points of each kind of stage divided by those without overlap."""
        return self.computed / self._plain

    @cached_property
    def in_registers(self) -> tuple[Numbers, Numbers]:
        """The points of each kind of stage that are in registers, and the registers for them, per point of a thread
        along the split dim. Registers are those of whole warps. The overlap along the split dim is in shared memory."""
        points = np.ones((len(self._kinds), len(self.shapes.box)))
        registers = np.ones_like(points)
        for k, (of_boxes, width, dense) in enumerate(zip(self._along, self.shapes.warp, self._density.T, strict=True)):
            each, is_split = np.take(of_boxes, self.shapes.box, axis=-1), self.shapes.split_dim == k
            along = np.where(dense[:, None] > 0, width, 0)
            points *= np.where(is_split, along, each)
            registers *= np.where(is_split, along, np.ceil(each / width) * width)
        is_split = self.shapes.split_dim < len(self._along)
        return np.where(is_split, points, 0), np.where(is_split, registers, 0)

    # ---- of all buffers: the stages but the output

    @cached_property
    def bytes(self) -> Numbers:
        """The bytes of all buffers, in shared memory and in registers (lines 7-9)."""
        bytes_ = [stage.bytes * stage.fixed for stage in self.group.stages]
        return self._of_buffers(bytes_, self.computed)[self.shapes.box]

    @cached_property
    def bytes_in_registers(self) -> Numbers:
        """The bytes in registers, per point of a thread along the split dim."""
        return self._of_buffers([stage.bytes * stage.fixed for stage in self.group.stages], self.in_registers[0])

    @cached_property
    def registers(self) -> Numbers:
        """The registers that hold these bytes."""
        words = [-(-stage.bytes // WORD) * stage.fixed for stage in self.group.stages]
        return self._of_buffers(words, self.in_registers[1])

    @cached_property
    def values_in_registers(self) -> Numbers:
        """The values that are in these registers, however many of them one takes."""
        return self._of_buffers([stage.fixed for stage in self.group.stages], self.in_registers[1])

    @cached_property
    def redone(self) -> Numbers:
        """The points that neighbouring tiles compute too."""
        fixed = [stage.fixed for stage in self.group.stages]
        return self._of_buffers(fixed, self.computed - self._plain)[self.shapes.box]

    def _of_buffers(self, factors: Sequence[int], points: Numbers) -> Numbers:
        output = len(factors) - 1
        each = [sum(factors[place] for place in places if place != output) for places in self._kinds.values()]
        return np.array(each) @ points

    # ---- of all stages, for one point of each thread with its share of the overlap

    @cached_property
    def transactions(self) -> Numbers:
        """The transactions of a warp, by GLMemTxSz and shape (lines 13-16)."""
        each = np.array([self._transactions(places) for places in self._kinds.values()])
        redundancy = np.take(self._redundancy, self.shapes.box, axis=-1)
        return (np.take(each, self.shapes.warp_kind, axis=-1) * redundancy[:, None]).sum(axis=0)

    @property
    def plain_transactions(self) -> Numbers:
        """The transactions of a warp without overlap."""
        return np.take(self._transactions(range(len(self.group.stages))), self.shapes.warp_kind, axis=-1)

    def _transactions(self, places: Sequence[int]) -> Numbers:
        """The transactions of some stages without overlap, by GLMemTxSz and kind of warp."""
        return self._transactions_of_stages[places].sum(axis=0).T

    @cached_property
    def _transactions_of_stages(self) -> Numbers:
        """The transactions of each stage without overlap, by kind of warp and GLMemTxSz."""
        of_stages = [dict(stage.transactions) for stage in self.group.stages]
        each = np.array([[of_warp[warp] for warp in self.shapes.warp_kinds] for of_warp in of_stages])
        return np.array([stage.points for stage in self.group.stages])[:, None, None] * each

    @cached_property
    def seconds(self) -> Numbers:
        """The time of a thread (line 27)."""
        each = np.array([self._seconds(places) for places in self._kinds.values()])
        return (each[:, None] * self._redundancy).sum(axis=0)[self.shapes.box]

    @property
    def plain_seconds(self) -> float:
        """The time of a thread without overlap."""
        return self._seconds(range(len(self.group.stages)))

    def _seconds(self, places: Sequence[int]) -> float:
        stages = [self.group.stages[place] for place in places]
        return sum(stage.seconds * stage.points for stage in stages)
