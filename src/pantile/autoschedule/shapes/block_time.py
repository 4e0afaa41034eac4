"""Tile sizes for a live-out space on a GPU: those with which blocks of threads take the least time by a simple model.

As on CPUs, the paper takes them from an auto-tuner. Here the cost of every combination is predicted at once: what
overlapping tiles recompute, including idle threads in the last round of each stage, what they load from memory in whole
sectors, how many blocks a multiprocessor holds at a time, and how evenly blocks are distributed over multiprocessors.
Nothing in the model is measured.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...analysis.regions import Box
from ...machine.multiprocessor import Gpu
from ..common.footprint import points
from ..strategy import Problem
from .tile_time import FusionLimits, Numbers, TileCosts, instructions

# As in Table I: its blocks have 512 threads, most often in 8 or 16 rows.
MOST_THREADS, MOST_ROWS = 512, 16
REGISTERS = 32  # of a thread, as a guess
WAIT_CYCLES = 500  # of a stage for its first loads, and for all threads of the block
HIDING_THREADS = 1024  # of a multiprocessor: enough to keep it busy during such waits


def block_of(problem: Problem, output: str, tile: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """The threads of a block along the long dims of a tile: some rows, as many columns as there is room for, and planes
    of these if there is more room. A short row is computed by one thread."""
    dims = problem.graph.stage[output].dims
    extents = dict(zip(dims, problem.facts.extents(output), strict=True))
    row = dims[problem.row(output)]
    threads: dict[str, Numbers] = {row: 1} if extents[row] < MOST_ROWS else {}
    *outer, column = sorted((d for d in tile if extents[d] >= MOST_ROWS), key=lambda d: d == row)
    room = MOST_THREADS
    for dim in (*outer[-1:], column, *outer[-2::-1]):
        threads[dim] = np.minimum(tile[dim], np.minimum(room, MOST_ROWS) if dim in outer[-1:] else room)
        room = room // threads[dim]
    return threads


class BlockCosts(TileCosts):
    """Tiles as blocks on the multiprocessors of a GPU."""

    @property
    def machine(self) -> Gpu:
        return self.problem.gpu

    def seconds(self, limits: FusionLimits) -> Numbers:
        return self._seconds_of(self._fused(limits, limits.stored)[0])

    def _seconds_of(self, fused: Mapping[str, Numbers]) -> Numbers:
        threads = self._threads()
        stored, cycles, waits, alone, moved = (np.zeros(self.count) for _ in range(5))
        for name, here in fused.items():
            count, of_point = points(self.boxes[name]), instructions(self.facts, name) / self.facts.points(name)
            cycles += np.where(here, np.ceil(count / threads) * threads * of_point, 0)
            waits += np.where(here, WAIT_CYCLES, 0)
            alone += np.where(here, 0, instructions(self.facts, name))
            is_kept = here & (name not in self.liveout.stages)
            stored += np.where(is_kept, self._bytes(name, self.boxes[name]), 0)
            moved += np.where(is_kept, 0, self.facts.size(name))
        for (source, reader), outside in self._live_in(fused).items():
            moved += np.where(
                outside & fused[reader], self._sectors(source, self._read(source, reader)) * self.tiles, 0
            )
            moved += np.where(outside & ~fused[reader], self.facts.size(source), 0)
        in_blocks = self._in_blocks(threads, stored, cycles, waits)
        count = self.machine.multiprocessors
        compute = (in_blocks + alone / (self.machine.multiprocessor.cores * count)) / (self.machine.ghz * 1e9)
        return compute + moved / (self.machine.bandwidth * np.minimum(1, self.tiles / count))

    def _threads(self) -> Numbers:
        block = block_of(self.problem, self.liveout.output, self.candidates.columns)
        return np.prod(np.stack([np.broadcast_to(n, self.count) for n in block.values()]), axis=0)

    def _in_blocks(self, threads: Numbers, stored: Numbers, cycles: Numbers, waits: Numbers) -> Numbers:
        """The cycles until all blocks are done. Each wave has as many blocks as multiprocessors hold at a time."""
        has, count = self.machine.multiprocessor, self.machine.multiprocessors
        kinds = zip(threads.tolist(), stored.tolist(), strict=True)
        held = np.array([max(1, self.machine.occupancy(int(t), int(s), REGISTERS).blocks) for t, s in kinds])
        held = np.minimum(held, np.ceil(self.tiles / count))
        busy = np.minimum(1, held * threads / HIDING_THREADS)
        return np.ceil(self.tiles / (count * held)) * (held * cycles / (has.cores * busy) + waits)

    def _sectors(self, source: str, box: Box) -> Numbers:
        """The bytes of a box, in whole sectors of each row."""
        row = self._bytes(source, box) / np.maximum(points(box[: self.problem.row(source)]), 1)
        return self._bytes(source, box) * (1 + self.machine.sector / np.maximum(row, 1))
