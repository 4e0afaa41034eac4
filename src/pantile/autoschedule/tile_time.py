"""Tile sizes for a live-out space, before anything is fused with it: those that a simple model finds fastest.

The post-tiling paper takes tile sizes as given (Table I: 8, 16, ..., 512 along each dim, found by PolyMage's auto-tuner).
Here every combination of them is priced at once, with the fusion that follows from it: what a tile computes again, what
it brings from memory, where its intermediate values stay, how evenly tiles share out among cores, and what short rows
cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .footprint import boxes, points, size, tiles
from .spaces import Space
from .strategy import Problem

# Cycles that it takes to start a row of a stage, and a stage of a tile.
ROW_CYCLES, STAGE_CYCLES = 10, 60

Numbers = Any  # one number per combination of tile sizes
Tile = Mapping[str, int]


@dataclass(frozen=True)
class Candidates:
    """Combinations of tile sizes; a dim whose size is its extent is not tiled."""

    dims: tuple[str, ...]
    sizes: np.ndarray[Any, Any]  # combination, dim

    @staticmethod
    def of(problem: Problem, output: str, dims: Sequence[str], sizes: Sequence[int]) -> Candidates:
        extents = dict(zip(problem.graph.stage[output].dims, problem.facts.extents(output), strict=True))
        choices = [[*(n for n in sizes if n < extents[d]), extents[d]] for d in dims]
        return Candidates(tuple(dims), np.array(list(product(*choices)), np.int64).reshape(-1, len(dims)))

    @property
    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        return {d: self.sizes[:, k] for k, d in enumerate(self.dims)}

    def tile(self, which: int) -> dict[str, int]:
        return {d: int(self.sizes[which, k]) for k, d in enumerate(self.dims)}


def best_tile(
    problem: Problem, liveout: Space, others: Sequence[Space], candidates: Candidates, most_recomputed: float
) -> dict[str, int]:
    """The fastest combination; `others` are the spaces that may be fused with the live-out one, producers first."""
    seconds = _Pricing(problem, liveout, others, candidates).seconds(most_recomputed)
    return candidates.tile(int(np.argmin(seconds)))


class _Pricing:
    """Of all candidates at once."""

    def __init__(self, problem: Problem, liveout: Space, others: Sequence[Space], candidates: Candidates) -> None:
        self.problem, self.facts, self.machine = problem, problem.facts, problem.machine
        self.liveout, self.others = liveout, others
        stages = {n for space in (liveout, *others) for n in space.stages}
        self.boxes = boxes(self.facts, stages, liveout.output, candidates.columns)
        self.tiles = np.asarray(tiles(self.facts, liveout.output, candidates.columns), float)
        self.count = len(candidates.sizes)

    def seconds(self, most_recomputed: float) -> Numbers:
        fused = self._fused(most_recomputed)
        compute, inside, brought, set_size = (np.zeros(self.count) for _ in range(4))
        for name, here in fused.items():
            compute += np.where(here, self._compute(name), 0)
            kept = np.asarray(size(self.facts, name, self.boxes[name]), float)
            if name == self.liveout.output:
                brought += self.facts.size(name)
            else:
                inside += np.where(here, 2 * kept * self.tiles, 0)
                # Values that stay in a tile need not be written to memory and read from it.
                brought += np.where(here, 0, 2 * self.facts.size(name))
            set_size += np.where(here, kept, 0)
        for name, here in self._live_in(fused).items():
            box = np.asarray(size(self.facts, name, self.boxes[name]), float)
            brought += np.where(here, np.maximum(box * self.tiles, self.facts.size(name)), 0)
            set_size += np.where(here, box, 0)
        memory = brought / self.machine.memory_bandwidth(self.machine.cores)
        return self._unevenness() * np.maximum(compute + inside / self._inside_bandwidth(set_size), 0) + memory

    def _fused(self, most_recomputed: float) -> dict[str, Numbers]:
        """Which stages are fused: what Algorithm 1 will decide, as far as boxes can tell."""
        fused = {n: np.full(self.count, True) for n in self.liveout.stages}
        once = np.full(self.count, sum(self.facts.work(n) for n in self.liveout.stages))
        again = np.zeros(self.count)
        for space in reversed(self.others):
            readers = [c for n in space.stages for c in self.facts.consumers[n] if c not in space.stages]
            here = np.logical_and.reduce([fused.get(c, np.full(self.count, False)) for c in readers])
            work = sum(self.facts.work(n) for n in space.stages)
            more = sum(self.facts.work(n) * np.maximum(self._repeated(n) - 1, 0) for n in space.stages)
            here &= again + more <= most_recomputed * (once + work)
            once, again = once + np.where(here, work, 0), again + np.where(here, more, 0)
            fused.update(dict.fromkeys(space.stages, here))
        return fused

    def _repeated(self, name: str) -> Numbers:
        """How often a point of a stage is computed, on average."""
        if name not in self.boxes:
            return np.full(self.count, np.inf)
        return points(self.boxes[name]) * self.tiles / self.facts.points(name)

    def _live_in(self, fused: Mapping[str, Numbers]) -> dict[str, Numbers]:
        """Where which stage or input is read by a tile without being computed in it."""
        found: dict[str, Numbers] = {}
        for name, here in fused.items():
            for source in self.facts.producers[name]:
                outside = here & ~fused[source] if source in fused else here
                found[source] = found[source] | outside if source in found else outside
        return found

    def _compute(self, name: str) -> Numbers:
        """Seconds that all tiles take to compute a stage, on all cores."""
        box, stage = self.boxes[name], self.problem.graph.stage[name]
        count = np.asarray(points(box), float)
        row = np.maximum(np.asarray(box[-1].high - box[-1].low + 1, float), 1) if box else np.ones(1)
        lanes = self.machine.lanes(8 * max(t.bytes for t in stage.dtypes))
        padded = count / row * np.ceil(row / lanes) * lanes
        cycles = padded / lanes * self._operations(name) / self.machine.issue.int
        cycles = cycles + count / row * ROW_CYCLES + STAGE_CYCLES
        return cycles * self.tiles / (self.machine.ghz * 1e9 * self.machine.cores)

    def _operations(self, name: str) -> float:
        """Instructions per point: arithmetic and loads of all definitions, as often as they run."""
        stage = self.problem.graph.stage[name]
        total = 0.0
        for k in range(len(stage.definitions)):
            once = self.facts.arithmetic(name, k) + sum(self.facts.reads(name, k).values()) + 1
            total += once * self.facts.runs(name, k)
        return total / self.facts.points(name)

    def _inside_bandwidth(self, set_size: Numbers) -> Numbers:
        """Of the nearest cache that holds what a tile touches, for all cores."""
        rate = np.full(self.count, self.machine.memory_bandwidth(self.machine.cores))
        for cache in reversed(self.machine.caches):
            rate = np.where(set_size <= cache.per_core, cache.bandwidth * self.machine.cores, rate)
        return rate

    def _unevenness(self) -> Numbers:
        """By how much the slowest core takes longer than the average one."""
        threads = self.machine.threads
        return np.ceil(self.tiles / threads) * threads / self.tiles
