"""Tile sizes for a live-out space, before anything is fused with it: those that a simple model finds fastest.

The post-tiling paper takes tile sizes as given (Table I: some of 8, 16, ..., 512 along each dim, found by PolyMage's
auto-tuner). Here the cost of every combination of them, and of whole dims, is predicted at once, with the resulting
fusion: what tiles recompute, what they load from memory and how, where their intermediate values are kept, how evenly
tiles are distributed over cores, and what short rows cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ...analysis.access import accesses
from ...analysis.regions import Box, hull
from ...dataclass import dataclass
from ...errors import InternalError
from ...machine.description import Cpu
from ...schedule.stage_default import lanes
from ..common.facts import PipelineFacts
from ..common.footprint import boxes, points, size, tiles
from ..strategy import Problem
from .spaces import Space
from .tile_boxes import Boxes

# Cycles to start a row of a stage, a stage of a tile, and a contiguous run of elements in memory. These and the next
# ones are tuned: chosen by hand on a Neoverse N1 with two cores, on the apps in the tables of docs/results.md, none of
# which was held out.
ROW_CYCLES, STAGE_CYCLES, STREAM_CYCLES = 10, 60, 60
MOST_BEHIND = 128  # spaces that no candidate fuses, and whose cost is predicted nevertheless
LEFT_OUT = 1.25  # the cost of an unfused stage, relative to computing it in one piece: its later tiles have a cost, too

Numbers = Any  # one number per combination of tile sizes
Tile = Mapping[str, int]


@dataclass(frozen=True)
class FusedWork:
    """The load of fused spaces: instructions without overlap, those that overlap adds, and bytes stored per tile."""

    once: Numbers = 0.0
    again: Numbers = 0.0
    stored: Numbers = 0.0

    def __add__(self, other: FusedWork) -> FusedWork:
        return FusedWork(self.once + other.once, self.again + other.again, self.stored + other.stored)

    def where(self, condition: Numbers) -> FusedWork:
        return FusedWork(*(np.where(condition, n, 0) for n in (self.once, self.again, self.stored)))


@dataclass(frozen=True)
class FusionLimits:
    """Limits on what overlapping tiles recompute, relative to computing it once, and on what a tile stores."""

    of_group: float
    of_space: float
    stored: float

    def allow(self, group: FusedWork, space: FusedWork) -> Any:
        """Whether a space may join a group."""
        both = group + space
        in_all = both.again <= self.of_group * both.once
        return in_all & (space.again <= self.of_space * space.once) & (both.stored <= self.stored)


@dataclass(frozen=True)
class Candidates:
    """Combinations of tile sizes; a dim whose size is its extent is not tiled."""

    dims: tuple[str, ...]
    sizes: np.ndarray[Any, Any]  # combination, dim

    @staticmethod
    def of(
        problem: Problem,
        output: str,
        short: Sequence[str],
        dims: Sequence[str],
        sizes: Sequence[int],
        *,
        has_whole: bool,
    ) -> Candidates:
        """Candidates with all of these sizes along `dims` (along the contiguous dim, those that hold a vector of every
        type used), and the whole extent if `has_whole`; along `short` dims, such as planes of colour, 1 or the whole
        extent."""
        stage = problem.graph.stage[output]
        extents = dict(zip(stage.dims, problem.facts.extents(output), strict=True))
        fewest = {stage.dims[problem.row(output)]: lanes(stage, stage.definitions[-1], problem.target)}
        choices = [sorted({1, extents[d]}) for d in short]
        for d in dims:
            smaller = [n for n in sizes if fewest.get(d, 1) <= n < extents[d]]
            choices.append([*smaller, extents[d]] if has_whole or not smaller else smaller)
        return Candidates((*short, *dims), np.array(list(product(*choices)), np.int64).reshape(-1, len(choices)))

    @property
    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        return {d: self.sizes[:, k] for k, d in enumerate(self.dims)}

    def tile(self, which: int) -> dict[str, int]:
        return {d: int(self.sizes[which, k]) for k, d in enumerate(self.dims)}


def planes(problem: Problem, liveout: Space, others: Sequence[Space], first: str) -> list[str]:
    """The dims outside of the first tiled one that are too short for tiles, and that cut every stage into disjoint
    parts."""
    facts = problem.facts
    stage = problem.graph.stage[liveout.output]
    outside = [d for d in stage.dims[: stage.dims.index(first)] if d in facts.tileable(stage.name)]
    members = {n for space in (liveout, *others) for n in space.stages}

    def is_disjoint(dim: str) -> bool:
        one, count = boxes(facts, members, stage.name, {dim: 1}), facts.every_loop(stage.name)[dim]
        return all(points(one[n]) * count <= facts.points(n) for n in members if n in one)

    return [d for d in outside if is_disjoint(d)]


def instructions(facts: PipelineFacts, name: str) -> float:
    """The instructions of computing all of a stage once: arithmetic, loads and stores of its definitions."""
    total = 0.0
    for k in range(len(facts.graph.stage[name].definitions)):
        loads = sum(facts.reads(name, k).values())
        total += (facts.arithmetic(name, k) + loads + 1) * facts.runs(name, k)
    return total


class TileCosts(ABC):
    """The costs of all candidates at once, with the fusion that Algorithm 1 would choose for them."""

    @property
    def most_behind(self) -> int:
        """The number of spaces whose cost is predicted though no candidate fuses them."""
        return 0

    def __init__(self, problem: Problem, liveout: Space, others: Sequence[Space], candidates: Candidates) -> None:
        """`others` are the spaces that may be fused with the live-out one, producers first."""
        self.problem, self.facts = problem, problem.facts
        self.liveout, self.others, self.candidates = liveout, others, candidates
        output = boxes(self.facts, (), liveout.output, candidates.columns)[liveout.output]
        self.growing = Boxes(self.facts, liveout.output, output)
        self.boxes = self.growing.boxes
        for name in reversed(liveout.stages[:-1]):
            self.growing.add(name)
        self.tiles = np.asarray(tiles(self.facts, liveout.output, candidates.columns), float)
        self.count = len(candidates.sizes)

    def best(self, limits: FusionLimits) -> dict[str, int]:
        """The fastest combination."""
        return self.candidates.tile(int(np.argmin(self.seconds(limits))))

    def seconds(self, limits: FusionLimits) -> Numbers:
        """The seconds of all candidates; infinite for tiles that store too much, unless all do."""
        fused, group = self._fused(replace(limits, stored=np.inf), limits.stored)
        fits = group.stored <= limits.stored
        if fits.any():
            return np.where(fits, self._seconds_of(fused), np.inf)
        return self._seconds_of(self._fused(limits, limits.stored)[0])

    @abstractmethod
    def _seconds_of(self, fused: Mapping[str, Numbers]) -> Numbers:
        """The seconds of all candidates. `fused` tells for each stage which candidates fuse it."""

    # ---- what is fused, and what it reads

    def _fused(self, limits: FusionLimits, most_stored: float) -> tuple[dict[str, Numbers], FusedWork]:
        """Which stages are fused: what Algorithm 1 will decide. A candidate is not followed further once it stores too
        much.

        At most `most_behind` spaces that no candidate fuses are evaluated: a long pipeline is followed as far as a
        group may reach, and not much farther.
        """
        behind = 0
        fused: dict[str, Numbers] = {n: np.full(self.count, True) for n in self.liveout.stages}
        group = FusedWork(sum(instructions(self.facts, n) for n in self.liveout.stages), 0.0, np.zeros(self.count))
        for space in reversed(self.others):
            readers = [c for n in space.stages for c in self.facts.consumers[n] if c not in space.stages]
            here = np.logical_and.reduce([fused.get(c, np.full(self.count, False)) for c in readers])
            here = here & (group.stored <= most_stored)
            behind += not here.any()
            if not here.any() and behind > self.most_behind:
                continue
            for name in reversed(space.stages):
                self.growing.add(name)
            more = sum((self._load(n) for n in space.stages), FusedWork())
            here &= limits.allow(group, more)
            group += more.where(here)
            fused.update(dict.fromkeys(space.stages, here))
        return fused, group

    def _load(self, name: str) -> FusedWork:
        once, box = instructions(self.facts, name), self.boxes[name]
        repeated = points(box) * self.tiles / self.facts.points(name)
        return FusedWork(once, once * np.maximum(repeated - 1, 0), self._bytes(name, box))

    def _live_in(self, fused: Mapping[str, Numbers]) -> dict[tuple[str, str], Numbers]:
        """One reader of each stage or input, and for which tiles the source is computed outside of the tile."""
        reader_of: dict[str, tuple[str, Numbers]] = {}
        for name in fused:
            for source in self.facts.producers[name]:
                if source in self.boxes and source not in reader_of:
                    reader_of[source] = (name, self._outside(source, name, fused))
        return {(source, reader): outside for source, (reader, outside) in reader_of.items()}

    def _outside(self, source: str, reader: str, fused: Mapping[str, Numbers]) -> Numbers:
        return ~(fused[reader] & fused[source]) if source in fused else np.full(self.count, True)

    def _read(self, source: str, reader: str) -> Box:
        """The box that a tile of one stage reads of another stage or an input."""
        hull_box: Box | None = None
        for reads in self.facts.prepared_reads[reader]:
            for buffer, box in reads.boxes(self.boxes[reader], self.facts.scope, {}).items():
                if self.facts.source(buffer) == source:
                    hull_box = box if hull_box is None else hull(hull_box, box)
        if hull_box is None:
            raise InternalError(f"{reader} does not read {source}")
        return tuple(a.meet(b) for a, b in zip(hull_box, self.facts.boxes[source], strict=True))

    def _bytes(self, name: str, box: Box) -> Numbers:
        return np.asarray(size(self.facts, name, box), float)


class CpuTileCosts(TileCosts):
    """Tiles on the cores of a CPU."""

    @property
    def most_behind(self) -> int:
        return MOST_BEHIND

    @property
    def machine(self) -> Cpu:
        return self.problem.cpu

    def _seconds_of(self, fused: Mapping[str, Numbers]) -> Numbers:
        cost = _TileCost.nothing(self.count)
        for name, here in fused.items():
            self._add_stage(cost, name, here)
        for (source, reader), outside in self._live_in(fused).items():
            self._add_live_in(cost, source, reader, outside, fused[reader])
        for (source, reader), outside in self._transposed_reads(fused).items():
            cost.inside += np.where(fused[reader], self._lines(source, reader) * self.tiles, 0)
            lines = self.facts.size(source) / self.machine.l1.line
            cost.compute += np.where(outside, self._from_cycles(STREAM_CYCLES * lines), 0)
        in_tiles = cost.compute + cost.inside / self._inside_bandwidth(cost.touched)
        return self._imbalance() * in_tiles + cost.moved / self.machine.memory_bandwidth(self.machine.cores)

    def _add_stage(self, cost: _TileCost, name: str, here: Numbers) -> None:
        cost.compute += np.where(here, self._compute(name, self.boxes[name], self.tiles), self._left_out(name))
        kept = self._bytes(name, self.boxes[name])
        cost.touched += np.where(here, kept, 0)
        if name == self.liveout.output:
            cost.moved += self.facts.size(name)
            cost.compute += self._streams(name, self.boxes[name])
        else:
            cost.inside += np.where(here, 2 * kept * self.tiles, 0)
            cost.moved += np.where(here, 0, self.facts.size(name))

    def _add_live_in(self, cost: _TileCost, source: str, reader: str, outside: Numbers, here: Numbers) -> None:
        box = self._read(source, reader)
        kept = self._bytes(source, box)
        # A tile of an empty stage, at the estimated sizes or under a condition, counts as one of a single point.
        times = np.where(here, self.tiles, self.facts.points(reader) / np.maximum(points(self.boxes[reader]), 1))
        cost.moved += np.where(outside, np.maximum(kept * times, self.facts.size(source)), 0)
        cost.touched += np.where(outside & here, kept, 0)
        cost.compute += np.where(outside & here, self._streams(source, box), 0)

    # ---- reads down columns

    def _transposed_reads(self, fused: Mapping[str, Numbers]) -> dict[tuple[str, str], Numbers]:
        """The sources that stages read down columns, and for which tiles these are computed outside of the tile."""
        transposed = {}
        for name in fused:
            stage = self.facts.graph.stage[name]
            for access in (a for d in stage.definitions for a in accesses(stage, d)):
                source = self.facts.source(access.buffer)
                dims = [i.dim if i is not None else None for i in access.indices]
                along = self.problem.row(source)
                is_turned = any(dims) and dims[-1] is not None and stage.dims[self.problem.row(name)] in dims[:along]
                if is_turned and source != name and source in self.boxes:
                    transposed[source, name] = self._outside(source, name, fused)
        return transposed

    def _lines(self, source: str, reader: str) -> Numbers:
        """The bytes of the lines that a stage fetches for one element each, because it goes down columns in a tile.

        L1 still has them for the next row, unless one row needs more of them than it holds.
        """
        box, line = self.boxes[reader], self.machine.l1.line
        row = _length(box[self.problem.row(reader)])
        at_once = np.minimum(row * line, self._bytes(source, self._read(source, reader)))
        return np.where(at_once > self.machine.l1.per_core, line * points(box), 0)

    # ---- seconds

    def _from_cycles(self, count: Numbers) -> Numbers:
        """The seconds of this number of cycles, shared by all cores."""
        return count / (self.machine.ghz * 1e9 * self.machine.cores)

    def _compute(self, name: str, box: Box, times: Numbers) -> Numbers:
        """The seconds of computing a box of a stage `times` times."""
        count = np.asarray(points(box), float)
        row = np.maximum(np.asarray(points(box[self.problem.row(name) :]), float), 1)
        width = self.machine.lanes(8 * max(t.bytes for t in self.problem.graph.stage[name].dtypes))
        vectors = count / row * np.ceil(row / width)
        cycles = vectors * instructions(self.facts, name) / self.facts.points(name) / self.machine.issue.int
        return self._from_cycles((cycles + count / row * ROW_CYCLES + STAGE_CYCLES) * times)

    def _left_out(self, name: str) -> Numbers:
        return LEFT_OUT * self._compute(name, self.facts.boxes[name], 1)

    def _streams(self, name: str, box: Box) -> Numbers:
        """The seconds of starting each contiguous run of elements that tiles have in memory."""
        run, whole = np.ones(self.count), np.full(self.count, True)
        for r, extent in zip(reversed(box), reversed(self.facts.extents(name)), strict=True):
            run = np.where(whole, run * _length(r), run)
            whole = whole & (_length(r) >= extent)
        return self._from_cycles(STREAM_CYCLES * points(box) / run * self.tiles)

    def _inside_bandwidth(self, touched: Numbers) -> Numbers:
        """The bandwidth of the nearest cache that holds the footprint of a tile, for all cores."""
        rate = np.full(self.count, self.machine.memory_bandwidth(self.machine.cores))
        for cache in reversed(self.machine.caches):
            rate = np.where(touched <= cache.per_core, cache.bandwidth * self.machine.cores, rate)
        return rate

    def _imbalance(self) -> Numbers:
        """The time of the slowest core, as a multiple of the average."""
        threads = self.machine.threads
        return np.ceil(self.tiles / threads) * threads / self.tiles


@dataclass
class _TileCost:
    """The cost of all stages together."""

    compute: Numbers  # seconds
    inside: Numbers  # bytes to and from intermediate values
    moved: Numbers  # bytes to and from memory
    touched: Numbers  # bytes, by a tile

    @staticmethod
    def nothing(count: int) -> _TileCost:
        return _TileCost(*(np.zeros(count) for _ in range(4)))


def _length(r: Any) -> Numbers:
    return np.maximum(np.asarray(r.high - r.low + 1, float), 1)
