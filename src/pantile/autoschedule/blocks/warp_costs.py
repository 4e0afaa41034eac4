"""The cost of a group as overlapped tiles of warps: Algorithm 2 of polymage-gpu (§6), for many tiles, blocks, fractions
in registers and transaction sizes at once.

The properties are the variables of the algorithm, in its order, with their line numbers. The algorithm cannot run as it
is printed, so the costs follow a mended version; `printed` follows the printed lines as far as that is possible:

| lines | printed | mended |
| --- | --- | --- |
| 3, 6 | threads divided by threads per block | blocks, partial ones included; every multiprocessor must have one |
| 7, 9 | elements of a tile without overlap, times the number of buffers | the bytes of §4's scratchpads |
| 10, 11 | registers hold a part of what line 10 has left in shared memory | whole tiles without the overlap, in words |
| 17 | transactions for the points of the tile without its overlap | for all points that stages compute for the tile |
| 18 | divides by no shared memory, at a fraction of 1 or for one stage: taken as no limit | no limit |
| 18-24 | memory by the byte, single registers, fractions of blocks | NVIDIA's units, whole blocks, at most tbPerSM |
| 22, 34 | MaxThPerSM and totalTB are not defined: taken as 32 MaxWarpPerSM and as tbPerSM | likewise |
| 25 | from left to right: times CoresPerSM | divided by NSMs and by the warps that CoresPerSM run, as the text says |
| 27, 33 | overlap of a warp's tile over the points of a thread | over the points of the warp: 0.8 % and 0.4 % of §3 |
| 29, 34 | blocks that fit in shared memory | blocks that run, "based on the occupancy" |
| 35 | all transactions of a warp, fewest where threads have one point each | transactions per point of a thread |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import wraps
from math import prod
from typing import Any

import numpy as np

from ...dataclass import cached_property, dataclass
from ...machine.multiprocessor import Gpu, blocks_by_registers, blocks_by_shared_memory, quotient
from ...parameters import Weight
from ...schedule.limits import MOST_COPIES
from ...target.gpu import LINE, SECTOR, WARP_SIZE
from .group_tiles import FusedGroup, GroupTiles
from .warp_tiles import Blocks, Numbers

TRANSACTION_SIZES = (SECTOR, LINE)  # GLMemTxSz, for L2 and for L1


@dataclass(frozen=True)
class Weights:
    """The weights of line 35, those of Table 3 for a V100."""

    w1: Weight = 50.0
    w2: Weight = 0.5
    w3: Weight = 60.0
    w4: Weight = 10.0
    w5: Weight = 2.0
    w6: Weight = 100.0
    w7: Weight = 1.0


TABLE_3 = {"GTX 1080 Ti": Weights(w3=45.0, w4=20.0), "Tesla V100": Weights()}
# Weights for the mended lines, fitted by tools/fit_warp_weights to 281 schedules of six apps, timed on an H200.
OF_H200 = Weights(w1=0.105, w2=22.8, w3=6.96, w4=26.6, w5=221.0, w6=1.98, w7=1.07)


def weights_of(gpu: str, *, printed: bool) -> Weights:
    """Return the weights of Table 3 for its GPUs, whose names drivers extend. Other GPUs have the weights of an H200
    for the mended lines, and those of the V100 for the printed lines."""
    of_paper = next((weights for name, weights in TABLE_3.items() if name in gpu), None)
    return of_paper or (Weights() if printed else OF_H200)


_OF_STAGES = list[str]()  # names of properties that do not depend on the size of the picture


def _of_stages(compute: Callable[[Algorithm2], Numbers]) -> Any:
    """Mark a property that does not depend on the size of the picture: its value in `known` is used if there is one."""
    _OF_STAGES.append(compute.__name__)

    @wraps(compute)
    def found(costs: Algorithm2) -> Numbers:
        return costs.known[compute.__name__] if costs.known else compute(costs)

    return cached_property(found)


@dataclass(frozen=True, eq=False)
class Algorithm2:
    """COST(G, ...). The axes of arrays are transaction sizes, fractions in registers, and blocks."""

    gpu: Gpu
    weights: Weights
    tiles: GroupTiles  # for the tile shapes of these blocks
    blocks: Blocks
    fractions: Numbers = (0.0,)  # a column of fractions that all blocks try, or a row of one per block
    printed: bool = False
    known: Mapping[str, Numbers] = field(default_factory=dict)  # values that do not depend on the picture's size

    @property
    def in_any_picture(self) -> Algorithm2:
        """These costs without memoized values, except for those that do not depend on the size of the picture."""
        known = {name: getattr(self, name) for name in _OF_STAGES}
        return replace(self, tiles=replace(self.tiles), blocks=replace(self.blocks), known=known)

    def in_picture(self, group: FusedGroup) -> Algorithm2:
        """Return the costs of these stages for a picture of another size."""
        return replace(self, tiles=GroupTiles(group, self.tiles.shapes))

    @property
    def group(self) -> FusedGroup:
        return self.tiles.group

    def _of_blocks(self, of_tiles: Numbers) -> Numbers:
        """Sum a per-shape quantity over all tiles of a block."""
        return of_tiles[self.blocks.shape] * self.blocks.count

    @cached_property
    def fraction(self) -> Numbers:
        """The fracRegTile of the algorithm."""
        return np.atleast_2d(self.fractions)

    @cached_property
    def tx_size(self) -> Numbers:
        """The GLMemTxSz of the algorithm."""
        return np.array(TRANSACTION_SIZES)[:, None, None]

    # ---- lines 3-6: threads and blocks

    @cached_property
    def threads(self) -> Numbers:
        return self.blocks.threads

    @cached_property
    def total_threads(self) -> Numbers:
        sizes = zip(self.group.extents, self.blocks.tile, strict=True)
        return self.group.planes * prod(-(-n // t) for n, t in sizes)

    @cached_property
    def total_blocks(self) -> Numbers:
        """The blocks of the kernel, partial ones at the end of each dim included."""
        return self.group.planes * self.blocks.in_picture(self.group.extents)

    @cached_property
    def warps_per_block(self) -> Numbers:
        return self.threads // WARP_SIZE  # line 5

    @cached_property
    def blocks_per_sm(self) -> Numbers:
        """The tbPerSM of line 6."""
        if self.printed:
            return self.total_threads // self.threads // self.gpu.multiprocessors
        return -(-self.total_blocks // self.gpu.multiprocessors)

    # ---- lines 7-12: shared memory and register tiles

    @cached_property
    def tile_bytes(self) -> Numbers:
        """The size of all buffers of a block, in shared memory and in registers (lines 7-9)."""
        if self.printed:
            return self.blocks.points * self.threads * (len(self.group.stages) - 1)
        return self._of_blocks(self.tiles.bytes)

    @_of_stages
    def shared_per_block(self) -> Numbers:
        if self.printed or not self.fraction.any():
            return self.tile_bytes * (1 - self.fraction)  # line 10
        return self.tile_bytes - self._of_blocks(self.tiles.bytes_in_registers) * self._whole_tiles

    @cached_property
    def register_tile(self) -> Numbers:
        """The registers of a thread that hold buffers (line 11)."""
        if self.printed or not self.fraction.any():
            return self.shared_per_block * self.fraction / self.threads
        return self._of_blocks(self.tiles.registers) * self._whole_tiles / self.threads

    @cached_property
    def _whole_tiles(self) -> Numbers:
        return self.blocks.whole_tiles(self.fraction)  # line 20 of Algorithm 1

    @cached_property
    def copies(self) -> Numbers:
        """The statements that a thread has for all stages together where some are in registers, and loops are written
        out: for each point of the output, and for each value of another stage in its registers."""
        values = self._of_blocks(self.tiles.values_in_registers) * self._whole_tiles / self.threads
        return self.blocks.points * self.group.stages[-1].fixed + values

    # ---- lines 13-17: transactions

    @_of_stages
    def transactions(self) -> Numbers:
        """The transactions of a warp for one point of each thread, with its share of the overlap."""
        of_shapes = self.tiles.plain_transactions if self.printed else self.tiles.transactions
        return np.array([of_size[self.blocks.shape] for of_size in of_shapes])[:, None]

    @cached_property
    def total_transactions(self) -> Numbers:
        return self.transactions * self.blocks.points  # line 17

    # ---- lines 18-24: occupancy

    @cached_property
    def most_blocks(self) -> Numbers:
        """The maxTBPerSM of line 18, as printed."""
        has = self.gpu.multiprocessor
        with np.errstate(divide="ignore"):
            return np.minimum(np.floor(has.shared / self.shared_per_block), has.blocks)

    @_of_stages
    def registers(self) -> Numbers:
        """The regPerTh of line 20."""
        return np.ceil(self.register_tile).astype(np.int64) + sum(s.registers for s in self.group.stages)

    @cached_property
    def occupancy(self) -> Numbers:
        has = self.gpu.multiprocessor
        if not self.printed:
            return self.running_blocks * self.warps_per_block / has.warps
        by_shared = np.minimum(self.most_blocks * self.warps_per_block, has.warps)  # line 19
        by_registers = np.minimum(has.registers / self.registers, has.threads) / WARP_SIZE  # lines 22-23
        return np.minimum(by_shared, by_registers) / has.warps  # line 24

    @cached_property
    def running_blocks(self) -> Numbers:
        """The blocks that a multiprocessor runs at a time."""
        return np.maximum(self.most_blocks, 1) if self.printed else np.minimum(self.room, self.blocks_per_sm)

    @_of_stages
    def room(self) -> Numbers:
        """The number of blocks that a multiprocessor has room for."""
        has = self.gpu.multiprocessor
        by_shared = blocks_by_shared_memory(has, np.maximum(self.shared_per_block, 1).astype(np.int64))
        by_registers = blocks_by_registers(has, self.warps_per_block, self.registers)
        by_warps = np.minimum(quotient(has.warps, self.warps_per_block), has.blocks)
        return np.minimum(np.minimum(by_shared, by_registers), by_warps)

    # ---- lines 25-28: time

    @cached_property
    def warp_bandwidth(self) -> float:
        gpu, has = self.gpu, self.gpu.multiprocessor
        if self.printed:
            return gpu.bandwidth * WARP_SIZE / gpu.multiprocessors * has.cores
        return gpu.bandwidth / gpu.multiprocessors / (has.cores / WARP_SIZE)  # line 25

    @_of_stages
    def memory_time(self) -> Numbers:
        return self.tx_size * self.total_transactions / self.warp_bandwidth  # line 26

    @_of_stages
    def compute_time(self) -> Numbers:
        per_point = self.tiles.plain_seconds if self.printed else self.tiles.seconds[self.blocks.shape]
        return per_point * self.blocks.points  # lines 27-28

    # ---- lines 29-34: unused resources, recomputed points, and blocks beyond whole rounds

    @cached_property
    def unallocated_shared(self) -> Numbers:
        running = self.most_blocks if self.printed else self.running_blocks
        return 1 - self.shared_per_block * running / self.gpu.multiprocessor.shared  # lines 29-30

    @cached_property
    def unused_registers(self) -> Numbers:
        has = self.gpu.multiprocessor
        return 1 - self.registers * has.warps * WARP_SIZE * self.occupancy / has.registers  # lines 31-32

    @_of_stages
    def overlap(self) -> Numbers:
        """The fracOverlap of line 33."""
        threads = self.blocks.count if self.printed else self.blocks.threads
        return self._of_blocks(self.tiles.redone) / (self.blocks.points * threads * self.group.stages[-1].fixed)

    @cached_property
    def extra_blocks(self) -> Numbers:
        running = np.maximum(self.running_blocks, 1)
        return self.blocks_per_sm - quotient(self.blocks_per_sm, running) * running  # line 34

    # ---- lines 12, 21, 35, 36

    @cached_property
    def terms(self) -> dict[str, Numbers]:
        """The seven terms of line 35."""
        w = self.weights
        return {
            "w1 transactions": w.w1 * (self.total_transactions if self.printed else self.transactions),
            "w2 occupancy": w.w2 * (1 - self.occupancy),
            "w3 memory / compute time": w.w3 * self.memory_time / self.compute_time,
            "w4 unallocated shared memory": w.w4 * self.unallocated_shared,
            "w5 unused registers": w.w5 * self.unused_registers,
            "w6 overlap": w.w6 * self.overlap,
            "w7 extra blocks": w.w7 * self.extra_blocks,
        }

    def terms_at(self, at: tuple[Numbers, ...]) -> dict[str, float]:
        """Return the terms of the candidate at an index."""
        return {name: float(np.broadcast_to(n, self.sum.shape)[at]) for name, n in self.terms.items()}

    @_of_stages
    def fits(self) -> Numbers:
        """Whether a block fits (lines 12 and 21)."""
        has = self.gpu.multiprocessor
        fits = (self.shared_per_block <= has.shared_per_block) & (self.registers <= has.registers_per_thread)
        if self.fraction.any():
            fits &= (self.fraction == 0) | (self.copies <= MOST_COPIES)
        return fits & (self.group.is_stored | (self.tile_bytes <= has.shared_per_block))  # else all in shared memory

    @cached_property
    def of_fitting(self) -> Algorithm2:
        """Algorithm 2 for the pairs of a block and a fraction that fit, along one axis. Of several fractions that put
        the same points of a block into registers, the mended version keeps the first."""
        fits = np.broadcast_to(self.fits, (len(self.fraction), len(self.blocks.points)))
        if not self.printed:
            is_another = self._whole_tiles[1:] != self._whole_tiles[:-1]
            fits = np.concatenate([fits[:1], fits[1:] & is_another])
        block, share = np.nonzero(fits.T)
        return replace(self, blocks=self.blocks[block], fractions=self.fraction[share].T)

    @cached_property
    def is_valid(self) -> Numbers:
        """Whether a block fits and is smaller than the picture. The mended version also requires that a multiprocessor
        can run the block, and that there are blocks for all multiprocessors."""
        is_valid = self.fits & self.blocks.are_smaller(self.group.extents)
        if self.printed:
            return is_valid
        return is_valid & (self.running_blocks >= 1) & (self.total_blocks >= self.gpu.multiprocessors)

    @cached_property
    def sum(self) -> Numbers:
        """The cost of each candidate that is valid."""
        return sum(self.terms.values())

    @cached_property
    def cost(self) -> Numbers:
        return np.where(self.is_valid, self.sum, np.inf)

    @cached_property
    def cheapest(self) -> tuple[int, int, int]:
        """The index of the least cost. Ties go to the first block, then to the first fraction."""
        k = int(np.argmin(self.cost.min(axis=(0, 1))))
        share, size = np.unravel_index(int(np.argmin(self.cost[:, :, k].T)), self.cost.shape[1::-1])
        return int(size), int(share), k
