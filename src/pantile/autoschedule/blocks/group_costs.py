"""Listing 6.1 of sioutas-thesis (lines 4546-4588): the cost of a group as one kernel, for many tile sizes at once.

    Z reads five rows of W, in tiles of 4 x 4    ->    blocks of 8 x 4 threads, W[8, 4] in shared memory

All stages of a group except its output are in shared memory. Along each dim, a block has as many threads as the stage
that needs the most. Occupancy, active threads and active multiprocessors follow from threads, shared memory and an
estimate of registers by the rules of NVIDIA's calculator (`machine.multiprocessor`).

The listing leaves open what a load costs. The costs here are those of the source that its author published, and of the
Halide autoscheduler that it extends. Loading a value from outside of the group costs between 1 and `global_load`: once
for each element of the footprint, which costs more the larger its source is compared with the L1 cache, and once for
each access, which costs more the larger the footprint is. A load from shared memory costs `shared_load`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from ...analysis.regions import Box
from ...dataclass import cached_property, dataclass
from ...machine.multiprocessor import Gpu
from ...parameters import Count, Weight
from ...target.gpu import WARP_SIZE
from ..common import footprint
from ..common.footprint import Footprint
from ..common.shared_intervals import SharedIntervals
from ..sliding.overlap import motions
from ..strategy import Problem
from .tile_sizes import Sizes

Numbers = Any
# "The maximum transfers that can be issued per global transaction" (line 4623), which the published source takes as 64
# bytes.
TRANSACTION = 64


@dataclass(frozen=True)
class CostParameters:
    """The constants of Listing 6.1 that do not depend on the GPU."""

    occupancy_threshold: Weight = 0.1
    blocks_per_multiprocessor: Count = 2  # at least: "2-4 times the number of SMs" (line 4513)
    registers: Count = 64  # of a thread, as §6.3 assumes; lines 4690-4697 give the maximum
    global_load: Weight = 200.0
    shared_load: Weight = 1.0


@dataclass(frozen=True)
class Occupancies:
    """The occupancy and the active threads of a multiprocessor, for many kinds of blocks."""

    share: Numbers
    active_threads: Numbers

    @property
    def product(self) -> Numbers:
        return np.maximum(self.share * self.active_threads, 1e-9)


def occupancies(gpu: Gpu, threads: Numbers, shared: Numbers, most_registers: int) -> Occupancies:
    """estimate_occupancy (line 24), with N_regs = min(MAX_REGS_PER_THREAD, TOTAL_REGS_PER_SM / N_threads)."""
    has = gpu.multiprocessor
    kinds, which = np.unique(np.stack([threads, shared]), axis=1, return_inverse=True)
    found = []
    for count, size in kinds.T.tolist():
        registers = max(1, min(most_registers, has.registers_per_thread, has.registers // max(1, count)))
        found.append(gpu.occupancy(count, size, registers)[:2])
    blocks, share = np.array(found).T[:, which.reshape(-1)]
    return Occupancies(share, np.minimum(blocks * threads, has.threads))


class GroupCosts:
    """A group, whose last member is the output, in tiles of many sizes."""

    def __init__(
        self,
        problem: Problem,
        members: tuple[str, ...],
        tiles: Sizes,
        parameters: CostParameters,
        shared: SharedIntervals | None = None,
    ) -> None:
        self.problem, self.members, self.tiles, self.parameters = problem, members, tiles, parameters
        self.facts, self.gpu, self.output = problem.facts, problem.gpu, members[-1]
        self.shape = np.shape(next(iter(tiles.values())))
        self.boxes = Footprint(self.facts, members, self.output, tiles, shared=shared).boxes

    def _points(self, name: str) -> Numbers:
        return self._each(footprint.points(self.boxes[name]))

    def _bytes(self, name: str) -> Numbers:
        return self._each(footprint.size(self.facts, name, self.boxes[name]))

    def _each(self, numbers: Numbers) -> Numbers:
        return np.broadcast_to(np.asarray(numbers, dtype=np.int64), self.shape)

    # ---- lines 3-7: loads, and the contents of shared memory

    @cached_property
    def shared(self) -> Numbers:
        """`footprint` of the listing, in bytes."""
        return sum((self._bytes(m) for m in self.members[:-1]), self._each(0))

    @cached_property
    def memory(self) -> Numbers:
        """The memory cost of a tile."""
        total: Numbers = np.zeros(self.shape)
        for source, accesses in self._loads.items():
            if source in self.members[:-1]:
                total = total + accesses * self.parameters.shared_load
            else:
                total = total + self._global_loads(source, accesses) / self._consecutive(source)
        return total

    def _global_loads(self, source: str, accesses: Numbers) -> Numbers:
        needed, most = self._bytes(source), self.parameters.global_load
        cache = self.gpu.multiprocessor.shared  # L1 and shared memory are one
        first = min(1 + self.facts.size(source) / cache * most, most)
        return needed * first + accesses * np.minimum(1 + needed / cache * most, most)

    def _consecutive(self, source: str) -> Numbers:
        """The consecutive elements of a row that neighbouring threads load, at most those of one transaction."""
        box, of_value = self.boxes[source], max(1, self.facts.bytes_per_point(source))
        row = self._each(footprint.points(box[self.problem.row(source) :]))
        return np.clip(row, 1, max(1, TRANSACTION // of_value))

    @cached_property
    def _loads(self) -> Mapping[str, Numbers]:
        """The bytes that all threads of a block load, by stage and input."""
        loads: dict[str, Numbers] = {}
        for name in self.members:
            whole = max(1, self.facts.points(name))
            for k in range(len(self.problem.graph.stage[name].definitions)):
                runs = self._points(name) * (self.facts.runs(name, k) / whole)
                for source, count in self.facts.reads(name, k).items():
                    loads[source] = loads.get(source, 0) + runs * count * self.facts.bytes_per_point(source)
        return {source: accesses for source, accesses in loads.items() if source in self.boxes}

    # ---- lines 8-33: threads of each stage, and of the block

    @cached_property
    def threads(self) -> Mapping[str, Mapping[str, Numbers]]:
        """thread_block of each stage, by dims of the output: the extents of its dims that move with tiled dims."""
        moving = motions(self.problem.graph, self.members, self.output)
        return {name: dict(self._threads(name, self.boxes[name], moving[name])) for name in self.members}

    def _threads(self, name: str, box: Box, moving: Mapping[str, Any]) -> Iterator[tuple[str, Numbers]]:
        for dim, side in zip(self.problem.graph.stage[name].dims, box, strict=True):
            if dim in moving and moving[dim].dim in self.tiles:
                yield moving[dim].dim, self._each(np.maximum(side.high - side.low + 1, 1))

    @cached_property
    def thread_block(self) -> Mapping[str, Numbers]:
        """The threads of a block along each dim (line 23)."""
        return {dim: np.max([self._each(of.get(dim, 1)) for of in self.threads.values()], axis=0) for dim in self.tiles}

    @cached_property
    def thread_count(self) -> Numbers:
        """The number of threads that are launched: the product along all dims (lines 4660-4663)."""
        return self._each(prod(self.thread_block.values()))

    @cached_property
    def occupancy(self) -> Mapping[str, Occupancies]:
        """The occupancy of each stage."""
        counts = {name: self._each(prod(of.values())) for name, of in self.threads.items()}
        registers = self.parameters.registers
        return {name: occupancies(self.gpu, count, self.shared, registers) for name, count in counts.items()}

    @cached_property
    def least_occupancy(self) -> Numbers:
        """The least occupancy of any stage (line 30)."""
        return np.min([o.share for o in self.occupancy.values()], axis=0)

    @cached_property
    def active_threads(self) -> Numbers:
        """The fewest active threads of any stage (line 31)."""
        return np.min([o.active_threads for o in self.occupancy.values()], axis=0)

    @cached_property
    def blocks(self) -> Numbers:
        return self._each(footprint.tiles(self.facts, self.output, self.tiles))

    # ---- lines 25-41: costs, and which configurations are valid

    @cached_property
    def arithmetic(self) -> Numbers:
        """The arithmetic cost of a tile (lines 28-29)."""
        total: Numbers = np.zeros(self.shape)
        for name in self.members:
            work = self._points(name) * (self.facts.work(name) / max(1, self.facts.points(name)))
            total = total + work / self.occupancy[name].product
        return total

    @cached_property
    def fits(self) -> Numbers:
        """Whether a multiprocessor can run a block of this kind at all."""
        fits_memory = self.shared <= self.gpu.multiprocessor.shared_per_block
        return (self.thread_count <= self.gpu.threads_per_block) & fits_memory & (self.least_occupancy > 0)

    @cached_property
    def is_valid(self) -> Numbers:
        """Whether a block fits, and the GPU is busy with such blocks."""
        active = np.minimum(self.gpu.multiprocessors, self.blocks // self.parameters.blocks_per_multiprocessor)
        busy = self.least_occupancy >= self.parameters.occupancy_threshold
        return self.fits & busy & (active >= self.gpu.multiprocessors)

    def costs(self, *, is_last: bool) -> Numbers:
        """The cost of the whole group (line 40). Only the last pass scales its memory cost by occupancy, and requires
        whole warps (lines 4735-4747)."""
        if not is_last:
            return np.where(self.is_valid, self.blocks * (self.arithmetic + self.memory), np.inf)
        scaled = self.memory / np.maximum(self.least_occupancy * self.active_threads, 1e-9)
        is_whole = self.thread_count % WARP_SIZE == 0
        return np.where(self.is_valid & is_whole, self.blocks * (self.arithmetic + scaled), np.inf)
