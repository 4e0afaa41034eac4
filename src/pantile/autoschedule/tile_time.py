"""Tile sizes for a live-out space, before anything is fused with it: those that a simple model finds fastest.

The post-tiling paper takes tile sizes as given (Table I: some of 8, 16, ..., 512 along each dim, found by PolyMage's
auto-tuner). Here every combination of them is priced at once, with the fusion that follows from it: what tiles compute
again, what they bring from memory, where their intermediate values stay, how evenly they share out among cores, and
what short rows cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..analysis.touched import Box
from ..schedule.default import lanes
from .facts import Facts
from .footprint import boxes, points, size, tiles
from .spaces import Space
from .strategy import Problem

# Cycles that it takes to start a row of a stage, and a stage of a tile.
ROW_CYCLES, STAGE_CYCLES = 10, 60

Numbers = Any  # one number per combination of tile sizes
Tile = Mapping[str, int]


@dataclass(frozen=True)
class Limits:
    """Of what overlapping tiles compute again, relative to computing it once."""

    of_group: float
    of_space: float

    def allow(self, once: Numbers, again: Numbers, more_once: Numbers, more_again: Numbers) -> Any:
        """Whether a space may join a group, by the operations of the group so far and those of the space."""
        in_all = again + more_again <= self.of_group * (once + more_once)
        return in_all & (more_again <= self.of_space * more_once)


@dataclass(frozen=True)
class Candidates:
    """Combinations of tile sizes; a dim whose size is its extent is not tiled."""

    dims: tuple[str, ...]
    sizes: np.ndarray[Any, Any]  # combination, dim

    @staticmethod
    def of(problem: Problem, output: str, dims: Sequence[str], sizes: Sequence[int]) -> Candidates:
        """All of these sizes; along the contiguous dim those that hold a vector of every type in play."""
        stage = problem.graph.stage[output]
        extents = dict(zip(stage.dims, problem.facts.extents(output), strict=True))
        fewest = {stage.dims[-1]: lanes(stage, stage.definitions[-1], problem.machine.vector_bits)}
        choices = [[*(n for n in sizes if fewest.get(d, 1) <= n < extents[d]), extents[d]] for d in dims]
        return Candidates(tuple(dims), np.array(list(product(*choices)), np.int64).reshape(-1, len(dims)))

    @property
    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        return {d: self.sizes[:, k] for k, d in enumerate(self.dims)}

    def tile(self, which: int) -> dict[str, int]:
        return {d: int(self.sizes[which, k]) for k, d in enumerate(self.dims)}


def instructions(facts: Facts, name: str) -> float:
    """Of computing all of a stage once: arithmetic, loads and stores of its definitions, as often as they run."""
    total = 0.0
    for k in range(len(facts.graph.stage[name].definitions)):
        loads = sum(facts.reads(name, k).values())
        total += (facts.arithmetic(name, k) + loads + 1) * facts.runs(name, k)
    return total


def best_tile(
    problem: Problem, liveout: Space, others: Sequence[Space], candidates: Candidates, limits: Limits
) -> dict[str, int]:
    """The fastest combination; `others` are the spaces that may be fused with the live-out one, producers first."""
    seconds = _Pricing(problem, liveout, others, candidates).seconds(limits)
    return candidates.tile(int(np.argmin(seconds)))


class _Pricing:
    """Of all candidates at once."""

    def __init__(self, problem: Problem, liveout: Space, others: Sequence[Space], candidates: Candidates) -> None:
        self.problem, self.facts, self.machine = problem, problem.facts, problem.machine
        stages = {n for space in (liveout, *others) for n in space.stages}
        self.boxes = boxes(self.facts, stages, liveout.output, candidates.columns)
        self.liveout = liveout
        self.others = [s for s in others if s.output in self.boxes]
        self.tiles = np.asarray(tiles(self.facts, liveout.output, candidates.columns), float)
        self.count = len(candidates.sizes)

    def seconds(self, limits: Limits) -> Numbers:
        fused = self._fused(limits)
        compute, inside, moved, set_size = (np.zeros(self.count) for _ in range(4))
        for name, here in fused.items():
            compute += np.where(here, self._compute(name, self.boxes[name], self.tiles), self._on_its_own(name))
            kept = self._bytes(name)
            set_size += np.where(here, kept, 0)
            if name == self.liveout.output:
                moved += self.facts.size(name)
            else:
                inside += np.where(here, 2 * kept * self.tiles, 0)
                moved += np.where(here, 0, self.facts.size(name))
        for (source, reader), outside in self._live_in(fused).items():
            times = np.where(fused[reader], self.tiles, self.facts.points(reader) / points(self.boxes[reader]))
            moved += np.where(outside, np.maximum(self._bytes(source) * times, self.facts.size(source)), 0)
            set_size += np.where(outside & fused[reader], self._bytes(source), 0)
        memory = moved / self.machine.memory_bandwidth(self.machine.cores)
        return self._unevenness() * (compute + inside / self._inside_bandwidth(set_size)) + memory

    def _bytes(self, name: str) -> Numbers:
        """That a tile needs of a stage or input."""
        return np.asarray(size(self.facts, name, self.boxes[name]), float)

    def _fused(self, limits: Limits) -> dict[str, Numbers]:
        """Which stages are fused: what Algorithm 1 will decide, as far as boxes can tell."""
        fused: dict[str, Numbers] = {n: np.full(self.count, True) for n in self.liveout.stages}
        once = np.full(self.count, sum(instructions(self.facts, n) for n in self.liveout.stages))
        again = np.zeros(self.count)
        for space in reversed(self.others):
            readers = [c for n in space.stages for c in self.facts.consumers[n] if c not in space.stages]
            here = np.logical_and.reduce([fused.get(c, np.full(self.count, False)) for c in readers])
            work = sum(instructions(self.facts, n) for n in space.stages)
            more = sum(instructions(self.facts, n) * np.maximum(self._repeated(n) - 1, 0) for n in space.stages)
            here &= limits.allow(once, again, work, more)
            once, again = once + np.where(here, work, 0), again + np.where(here, more, 0)
            fused.update(dict.fromkeys(space.stages, here))
        return fused

    def _repeated(self, name: str) -> Numbers:
        """How often a point of a stage is computed, on average."""
        return points(self.boxes[name]) * self.tiles / self.facts.points(name)

    def _live_in(self, fused: Mapping[str, Numbers]) -> dict[tuple[str, str], Numbers]:
        """Where one reader of each stage or input finds it outside of the tile that reads it."""
        found: dict[str, tuple[str, Numbers]] = {}
        for name, here in fused.items():
            for source in self.facts.producers[name]:
                outside = ~(here & fused[source]) if source in fused else np.full(self.count, True)
                if source in self.boxes and source not in found:
                    found[source] = (name, outside)
        return {(source, reader): outside for source, (reader, outside) in found.items()}

    def _compute(self, name: str, box: Box, times: Numbers) -> Numbers:
        """Seconds that it takes to compute a box of a stage so many times, shared among all cores."""
        count = np.asarray(points(box), float)
        row = np.maximum(np.asarray(box[-1].high - box[-1].low + 1, float), 1) if box else np.ones(1)
        width = self.machine.lanes(8 * max(t.bytes for t in self.problem.graph.stage[name].dtypes))
        vectors = count / row * np.ceil(row / width)
        cycles = vectors * instructions(self.facts, name) / self.facts.points(name) / self.machine.issue.int
        cycles = cycles + count / row * ROW_CYCLES + STAGE_CYCLES
        return cycles * times / (self.machine.ghz * 1e9 * self.machine.cores)

    def _on_its_own(self, name: str) -> Numbers:
        """Seconds of a stage that is not fused, whatever is done about it later."""
        return self._compute(name, self.facts.boxes[name], 1)

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
