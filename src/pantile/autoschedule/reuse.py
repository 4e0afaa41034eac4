"""reuse: sioutas-thesis chapter 5, sliding windows inside tiles.

All stages of a pipeline are fused into its output: each is computed at a loop inside a tile and stored one loop further
out, so that its rows are computed once per tile and kept in a circle (Algorithm 4); stages without overlap, or too
cheap to store, are inlined (Algorithm 5). Orders of loops and tile sizes are those of least cost, loads plus
recomputation (Algorithm 6). Only where the buffers of the whole exceed the last cache is it cut into segments, at
stages with several consumers (Algorithm 7), then anywhere (Algorithm 8).

Levels are the loops of the output, counted from the innermost one as D_m is: 0 is the innermost loop inside a tile, and
the number of these loops stands for the innermost loop over tiles. Loops of a few iterations, such as channels, keep
their place inside of all others and are written out.

What the chapter does not treat is computed at root, and ends a segment: outputs, scans and scatters and what they read,
and stages of which data or sizes decide what is read. A stage that cannot slide, because reads of it are clamped or
jump, is stored where it would be computed: all of its tile at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import permutations
from math import ceil, inf
from typing import Any, ClassVar

import numpy as np

from ..analysis.access import accesses
from ..analysis.interval import Interval
from ..analysis.touched import Box
from ..graph.nodes import Stage
from ..schedule.default import CHEAP_LOADS, CHEAP_OPERATIONS, lanes
from ..schedule.directives import StageSchedule, on
from ..schedule.updates import is_independent, pure_dims
from . import footprint
from .facts import Facts
from .legal import Part, legal
from .overlap import WHOLE, Motion, is_read_again, motions, overlaps
from .report import GroupReport, Report
from .strategy import Found, Problem, Strategy
from .tiled_loops import TiledLoops
from .tiles import MOST_UNROLLED, marked_inside

MOST_PERMUTED = 3  # loops whose order is searched; further ones stay outermost
MOST_ANALYSED = 600  # stages, counted once per segment, before Algorithm 8 stops to look at all cuts
FEW_STAGES = 12  # of a segment for which all orders of loops are tried
MOST_WHOLE = 256  # points along a dim that is read as a whole by every tile

Numbers = Any


@dataclass(frozen=True)
class Reuse(Strategy):
    """The parameters of chapter 5."""

    name: ClassVar[str] = "reuse"

    w: float = 10.0  # the cost of a load that misses, relative to an operation
    cache_size: int | None = None  # csize: of the last-level cache
    max_split: int = 1  # stages of the smallest segment

    def find(self, problem: Problem) -> Found:
        return _Search(problem, self).found()

    def csize(self, problem: Problem) -> int:
        return self.cache_size or problem.machine.last.size


# ---- what is decided of a segment


@dataclass(frozen=True)
class Level:
    """S_i: where a stage is computed and stored. Equal levels: nothing slides and nothing is folded."""

    compute: int
    store: int

    @property
    def is_folded(self) -> bool:
        return self.compute != self.store


INLINE = Level(-1, -1)


@dataclass(frozen=True)
class Tiling:
    """What Algorithm 6 finds for a segment."""

    output: str
    members: tuple[str, ...]  # without the output, producers first
    cost: float
    working_set: float  # bytes of all buffers; infinite if no tile meets the constraints
    tile: Mapping[str, int] = field(default_factory=dict)
    intra: tuple[str, ...] = ()  # loops inside a tile, outermost first
    inter: tuple[str, ...] = ()  # loops over tiles
    levels: Mapping[str, Level] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)

    @property
    def inlined(self) -> tuple[str, ...]:
        return tuple(n for n in self.members if self.levels[n] == INLINE)


class Stages:
    """What all segments ask of the stages, worked out once."""

    def __init__(self, problem: Problem) -> None:
        self.facts: Facts = problem.facts
        self.graph = problem.graph

    @cached_property
    def overlaps(self) -> dict[str, dict[str, dict[str, int]]]:
        """W_i: stage -> consumer -> loop of the consumer -> overlap."""
        stage = self.graph.stage
        return {n: {c: overlaps(stage[n], stage[c]) for c in self.facts.consumers[n]} for n in stage}

    @cached_property
    def read_again(self) -> set[str]:
        """Stages of which a reduction reads a value more than once."""
        stage = self.graph.stage
        return {n for n in stage if any(is_read_again(stage[n], stage[c]) for c in self.facts.consumers[n])}

    @cached_property
    def work(self) -> dict[str, float]:
        """Operations per point."""
        return {n: self.facts.work(n) / max(1, self.facts.points(n)) for n in self.graph.stage}

    @cached_property
    def trivial(self) -> set[str]:
        """Stages that cost about as much to compute as to load."""
        return {
            n for n, stage in self.graph.stage.items()
            if self.facts.can_be_inlined(n) and not stage.updates
            and self.facts.arithmetic(n) <= CHEAP_OPERATIONS and sum(self.facts.reads(n).values()) <= CHEAP_LOADS
        }  # fmt: skip


class _Search:
    """Segments are known by their outputs."""

    def __init__(self, problem: Problem, parameters: Reuse) -> None:
        self.original, self.parameters = problem, parameters
        self.csize = parameters.csize(problem)
        self.problem = problem.inlined(problem.facts.trivial)
        self.facts: Facts = self.problem.facts
        self.stages = [s.name for s in self.problem.graph.stages]
        self.known = Stages(self.problem)
        self.analysed: dict[tuple[str, ...], Tiling] = {}
        self._split: dict[tuple[str, ...], list[Tiling]] = {}
        self.remarks: list[str] = []

    def found(self) -> Found:
        tilings = [t for members in self.segments(self.barriers()) for t in self.scheduled(members)]
        inlined = (*self.original.facts.trivial, *(n for t in tilings for n in t.inlined))
        final = self.original.inlined(inlined)
        result = legal(self.original, [part(final, t) for t in tilings], inlined)
        report = Report(
            Reuse.name, self.problem.machine.name, {**asdict(self.parameters), "cache_size": self.csize},
            tuple(map(_report, tilings)), inlined, {"segments analysed": len(self.analysed)},
            (*self.remarks, *result.remarks),
        )  # fmt: skip
        return Found(result.schedule, report)

    # ---- which stages cannot be fused into what reads them

    def barriers(self) -> set[str]:
        """Stages that are computed at root in any case."""
        found = {n for n in self.stages if n in self.problem.graph.output or not self._may_be_fused(n)}
        alone = [n for n in self.stages if n in found and n not in self.problem.graph.output]
        if alone:
            self.remarks.append(f"computed at root, since chapter 5 does not treat what reads them: {', '.join(alone)}")
        return found

    def _may_be_fused(self, name: str) -> bool:
        stages = self.problem.graph.stage
        consumers = [stages[c] for c in self.facts.consumers[name]]
        regular = is_regular(stages[name]) and all(map(is_regular, consumers))
        return regular and self.facts.is_limited(name) and all(self._reads_locally(stages[name], c) for c in consumers)

    def _reads_locally(self, producer: Stage, consumer: Stage) -> bool:
        """Whether every read moves with a coordinate, and along the other dims the whole that it may reach is small."""
        extents = self.facts.extents(producer.name)
        reads = [a for d in consumer.definitions for a in accesses(consumer, d) if a.buffer in producer.buffers]
        moving = all(any(i is not None and i.dim is not None for i in a.indices) for a in reads)
        pairs = [pair for a in reads for pair in zip(a.indices, extents, strict=True)]
        return moving and all(index is not None or extent <= MOST_WHOLE for index, extent in pairs)

    # ---- Algorithm 7

    def segments(self, roots: Iterable[str], among: Iterable[str] | None = None) -> list[tuple[str, ...]]:
        """Stages that end in the given ones, each with the producers that only it needs, producers first.

        A stage that several segments need ends one of its own.
        """
        chosen = self.stages if among is None else list(among)
        ends = set(roots)
        owner: dict[str, str] = {}
        for name in reversed(chosen):
            owners = {owner[c] for c in self.facts.consumers[name] if c in owner}
            owner[name] = name if name in ends or len(owners) != 1 else owners.pop()
        return [tuple(n for n in chosen if owner[n] == end) for end in chosen if owner[end] == end]

    def group_stages(self, members: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Algorithm 7: stages with more than one consumer form new pipelines, along with their producers."""
        several = [n for n in members if len(self.facts.consumers[n]) > 1]
        return self.segments([*several, members[-1]], members)

    # ---- Figure 5.9 and Algorithm 8

    def scheduled(self, members: tuple[str, ...]) -> list[Tiling]:
        """The whole as one segment if its buffers fit, else what Algorithms 7 and 8 make of it."""
        if self._fits(members):
            return [self.tiling_analysis(members)]
        return [t for segment in self.group_stages(members) for t in self.split_segment(segment)]

    def split_segment(self, members: tuple[str, ...]) -> list[Tiling]:
        """Algorithm 8: the cheapest way to cut a segment into ones that fit."""
        if members not in self._split:
            self._split[members] = (
                self._largest_first(members) if self._has_seen_much() else self._cheapest_split(members)
            )
        return self._split[members]

    def _has_seen_much(self) -> bool:
        """Whether to go on without looking at all cuts."""
        return sum(map(len, self.analysed)) >= MOST_ANALYSED

    def _fits(self, members: tuple[str, ...]) -> bool:
        """One stage is never too large."""
        return len(members) == 1 or self.tiling_analysis(members).working_set <= self.csize

    def _cheapest_split(self, members: tuple[str, ...]) -> list[Tiling]:
        if self._fits(members):
            return [self.tiling_analysis(members)]
        best: list[Tiling] = []
        least = inf
        for head in self._heads(members):
            if not self._fits(head) or (best and self._has_seen_much()):
                break  # "will only grow larger if more stages are included"
            rest = tuple(m for m in members if m not in head)
            found = [self.tiling_analysis(head), *self.split_segment(rest)]
            cost = sum(t.cost for t in found)
            if cost < least:
                best, least = found, cost
        return best or [self.tiling_analysis((m,)) for m in members]

    def _heads(self, members: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Segments to start with, smallest first, of `max_split` stages or more. They end where iterations of consumers
        overlap: other stages are inlined or computed with what reads them."""
        heads = [self._with_producers(members, end) for end in members[:-1] if self._has_overlap(end)]
        return sorted((h for h in heads if len(h) >= self.parameters.max_split), key=len)

    def _has_overlap(self, name: str) -> bool:
        return any(self.known.overlaps[name].values())

    def _largest_first(self, members: tuple[str, ...]) -> list[Tiling]:
        """A cut of a long segment without looking at all: again and again the largest head that fits."""
        found = []
        while members:
            heads = [*self._heads(members), members]
            low, step = 0, 1  # heads[low] is to be taken
            while low + step < len(heads) and self._fits(heads[low + step]):
                low, step = low + step, 2 * step
            while step > 1:
                step //= 2
                if low + step < len(heads) and self._fits(heads[low + step]):
                    low += step
            head = heads[low]
            found += [self.tiling_analysis(head)] if self._fits(head) else [self.tiling_analysis((m,)) for m in head]
            members = tuple(m for m in members if m not in head)
        return found

    def _with_producers(self, members: tuple[str, ...], end: str) -> tuple[str, ...]:
        """A stage and those among the members that it needs."""
        needed = {end}
        for name in reversed(members):
            if any(c in needed for c in self.facts.consumers[name]):
                needed.add(name)
        return tuple(m for m in members if m in needed)

    # ---- Algorithm 6

    def tiling_analysis(self, members: tuple[str, ...]) -> Tiling:
        """The order of loops and the tile of least cost."""
        if members not in self.analysed:
            self.analysed[members] = TilingAnalysis(self.problem, self.parameters, self.known, members).best()
        return self.analysed[members]


def is_regular(stage: Stage) -> bool:
    """Whether all definitions run over all dims, and these in any order: neither a scan nor a scatter."""
    return all(
        pure_dims(stage, d) == stage.dims and all(is_independent(stage, d, n) for n in stage.dims)
        for d in stage.definitions
    )


def _report(t: Tiling) -> GroupReport:
    loops = [*t.intra[::-1], *(f"the tile of {n}" for n in t.inter[-1:])]
    remarks = []
    for name in t.members:
        level = t.levels[name]
        at, kept = (loops[min(k, len(loops) - 1)] if loops else "root" for k in (level.compute, level.store))
        if level == INLINE:
            remarks.append(f"{name}: inlined")
        else:
            remarks.append(f"{name}: computed at {at}, stored at {kept}" + (", folded" if level.is_folded else ""))
    stored = tuple(n for n in t.members if t.levels[n] != INLINE)
    return GroupReport(t.output, stored, (t.tile,) if t.tile else (), t.costs, tuple(remarks))


# ---- Algorithms 4, 5 and 6 on one segment


class TilingAnalysis:
    """Of a segment: its stages, the output last."""

    def __init__(self, problem: Problem, parameters: Reuse, known: Stages, members: tuple[str, ...]) -> None:
        self.problem, self.parameters, self.known, self.members = problem, parameters, known, members
        self.facts: Facts = problem.facts
        self.graph = problem.graph
        self.output = self.graph.stage[members[-1]]
        self.producers = members[:-1]
        self.extents = dict(zip(self.output.dims, self.facts.extents(self.output.name), strict=True))
        self.lanes = lanes(self.output, self.output.definitions[-1], problem.machine.vector_bits)
        dims = self.output.dims
        self.column = dims[-1] if dims else ""
        self.short = tuple(d for d in dims if self.extents[d] <= MOST_UNROLLED)
        self.long = tuple(d for d in dims if d not in self.short)
        self._boxes: dict[tuple[frozenset[str], frozenset[str], str], dict[str, Box]] = {}

    def best(self) -> Tiling:
        """Algorithm 6: all orders of loops, and for each all tile sizes at once."""
        fallback = Tiling(self.output.name, self.producers, 0.0, inf if self.producers else 0.0)
        if not self.long or not is_regular(self.output):
            return fallback
        best = fallback
        for intra in self.permutations():
            nest = Nest(intra, self.short, self.column)
            levels = self.inline_trivial_stages(self.stage_fusion(nest))
            found = self.cheapest_tile(nest, levels)
            if found is not None and (not best.tile or found.cost < best.cost):
                best = found
        return best

    def permutations(self) -> list[tuple[str, ...]]:
        """Of the loops inside a tile. "We do not attempt to interchange loops that only perform a few iterations".

        Orders with another loop than the column innermost lose the prefetchers (equation 5.13); large segments do
        without them.
        """
        fixed, free = self.long[:-MOST_PERMUTED], self.long[-MOST_PERMUTED:]
        orders = [(*fixed, *p) for p in permutations(free)]
        along = [p for p in orders if p[-1] == self.column]
        others = [p for p in orders if p not in along]
        return [*along, *others] if len(self.members) <= FEW_STAGES or not along else along

    # ---- Algorithm 4

    @cached_property
    def motions(self) -> dict[str, dict[str, Motion]]:
        return motions(self.graph, self.members, self.output.name)

    def stage_fusion(self, nest: Nest) -> dict[str, Level]:
        """Algorithm 4: the compute and store level of every stage."""
        return {name: self._fused(name, nest) for name in reversed(self.producers)}

    def _fused(self, name: str, nest: Nest) -> Level:
        shared = {(c, d): v for c, dims in self.known.overlaps[name].items() for d, v in dims.items()}
        if not shared and name not in self.known.read_again:
            if self.facts.can_be_inlined(name):
                return INLINE  # line 12
            return nest.at(nest.innermost + 1)  # a reduction has to be stored
        known = [(c, d) for c, d in shared if d in self.motions[c] and self.motions[c][d].dim in nest.loops]
        if not known:
            return nest.at(nest.innermost)  # line 10
        c, d = max(known, key=lambda at: nest.level(self.motions[at[0]][at[1]].dim))  # line 4
        level = nest.level(self.motions[c][d].dim)
        if level <= nest.innermost or shared[c, d] == WHOLE:  # line 7
            return nest.at(max(level + 1, nest.innermost))
        if not self._slides(name, self.motions[c][d].dim):
            return nest.at(nest.tile)
        return Level(level, level + 1)  # lines 6 and 8

    def _slides(self, name: str, dim: str) -> bool:
        """Whether exactly one dim of the stage moves with a loop, and steadily."""
        moving = [m for m in self.motions[name].values() if m.dim == dim]
        return len(moving) == 1 and moving[0].steady

    # ---- Algorithm 5

    def inline_trivial_stages(self, levels: dict[str, Level]) -> dict[str, Level]:
        """Algorithm 5, and then every stage is moved out to where all that read it are inside."""
        found = dict(levels)
        for name in reversed(self.producers):
            if found[name] != INLINE and name in self.known.trivial:
                self._store_instead(name, found[name], found)
                found[name] = INLINE
        for name in reversed(self.producers):
            if found[name] != INLINE:
                outermost = max((found[r].compute for r in self.readers(name, found) if r in found), default=-1)
                at = max(found[name].compute, outermost)
                found[name] = Level(at, max(found[name].store, at))
        return found

    def _store_instead(self, name: str, level: Level, found: dict[str, Level]) -> None:
        """Lines 5 to 9: producers that were inlined into a stage which now is inlined itself take its place."""
        for p in self.facts.producers[name]:
            if found.get(p) == INLINE:
                if p in self.known.trivial:
                    self._store_instead(p, level, found)
                else:
                    found[p] = level

    def readers(self, name: str, levels: Mapping[str, Level]) -> set[str]:
        """The stages that read a stage once others are inlined."""
        found: set[str] = set()
        for c in self.facts.consumers[name]:
            found |= self.readers(c, levels) if levels.get(c) == INLINE else {c}
        return found

    # ---- tile sizes

    @cached_property
    def tiles(self) -> dict[str, Numbers]:
        """All combinations of tile sizes, one array per loop."""
        axes = np.meshgrid(*(self._sizes(d) for d in self.long), indexing="ij")
        return {d: a.ravel() for d, a in zip(self.long, axes, strict=True)}

    def _sizes(self, dim: str) -> list[int]:
        """The first constraint for the innermost loop, the third for all; at least two tiles, or one."""
        extent, threads = self.extents[dim], self.problem.machine.threads
        unit = 1
        if dim == self.column:
            line = self.problem.machine.l1.line // max(t.bytes for t in self.output.dtypes)
            unit = max(line, self.lanes)
        powers = [unit << k for k in range(16)]
        shares = [-(-extent // (threads << k)) for k in range(4)]
        rounded = {-(-n // unit) * unit for n in (*powers, *shares)}
        return [*sorted(n for n in rounded if self._least(dim) <= n <= extent // 2), extent]

    def _least(self, dim: str) -> int:
        """Equation 5.15: the largest overlap along a loop."""
        amounts = [
            v for n in self.producers for c, dims in self.known.overlaps[n].items() for d, v in dims.items()
            if v < WHOLE and c in self.motions and d in self.motions[c] and self.motions[c][d].dim == dim
        ]  # fmt: skip
        return max(amounts, default=1)

    def cheapest_tile(self, nest: Nest, levels: Mapping[str, Level]) -> Tiling | None:
        """The least total cost over all tiles and outermost loops over tiles, under the constraints."""
        loads, recomputed = self.costs(nest, levels)
        folded, unfolded = self.buffers(nest, levels)
        total = self.parameters.w * loads + recomputed
        fits = unfolded <= self.problem.machine.l2.per_core
        best: tuple[float, int, str] | None = None
        for outermost in self.long:
            enough = self.extents[outermost] / self.tiles[outermost] >= self.problem.machine.threads  # 5.14
            allowed = np.where(fits & enough, total, inf)
            k = allowed.size - 1 - int(np.argmin(allowed[::-1]))  # the largest of equal ones
            if np.isfinite(allowed[k]) and (best is None or allowed[k] < best[0]):
                best = (float(allowed[k]), k, outermost)
        if best is None:
            return None
        cost, k, outermost = best
        inter = (outermost, *(d for d in self.long if d != outermost))
        terms = {
            "loads": loads[k], "recomputation": recomputed[k], "C_total": cost,
            "folded bytes": folded[k], "other bytes": unfolded[k],
        }  # fmt: skip
        return Tiling(
            self.output.name, self.producers, cost, float(folded[k] + unfolded[k]),
            {d: int(n[k]) for d, n in self.tiles.items()}, (*nest.intra, *self.short), inter, levels,
            {name: float(value) for name, value in terms.items()},
        )  # fmt: skip

    # ---- costs

    def costs(self, nest: Nest, levels: Mapping[str, Level]) -> tuple[Numbers, Numbers]:
        """Of all stages: loads (Cl), and what is computed more than once (Cp - Croot)."""
        loads: Numbers = np.zeros(self.tiles[self.long[0]].shape)
        recomputed = loads.copy()
        for name in self.members:
            level = levels.get(name, Level(nest.tile, nest.tile))
            if level == INLINE:
                continue
            boxes = self.boxes(nest, levels, level.store)
            work = self.work(name, levels)
            computed = footprint.points(boxes[name]) * self.iterations(nest, level.store)
            recomputed = recomputed + work * (computed - self.facts.points(name))
            loads = loads + sum(self.load_cost(p, nest, levels, level) for p in self.sources(name, levels))
        return loads, recomputed

    def load_cost(self, source: str, nest: Nest, levels: Mapping[str, Level], level: Level) -> Numbers:
        """Equation 5.6: rows, if the prefetchers can follow; 5.13: values, if contiguous ones are not read in turn."""
        at = max(level.store, nest.innermost + 1)
        box = self.boxes(nest, levels, at)[source]
        follows = nest.intra[-1] == self.column or nest.level(self.column) < level.compute
        return footprint.points(box[:-1] if follows else box) * self.iterations(nest, at)

    def buffers(self, nest: Nest, levels: Mapping[str, Level]) -> tuple[Numbers, Numbers]:
        """Bytes of folded buffers (equation 5.9: what one iteration of the compute level needs), and of all others."""
        folded: Numbers = np.zeros(self.tiles[self.long[0]].shape)
        unfolded = folded.copy()
        for name in self.producers:
            level = levels[name]
            if level != INLINE:
                bytes = footprint.size(self.facts, name, self.boxes(nest, levels, level.compute)[name])
                folded = folded + bytes if level.is_folded else folded
                unfolded = unfolded + bytes if not level.is_folded else unfolded
        return folded, unfolded

    def boxes(self, nest: Nest, levels: Mapping[str, Level], level: int) -> dict[str, Box]:
        """What one iteration of a level needs of every stage, those that slide along it keeping what they have."""
        inside = nest.inside(level)
        sliding = frozenset(n for n in self.producers if levels[n].is_folded and levels[n].compute == level)
        key = (inside, sliding, nest.intra[-1])
        if key not in self._boxes:
            one = {d: np.minimum(self.step(nest, d), self.tiles[d]) for d in self.long}
            tile = {d: self.tiles[d] if d in inside else one[d] for d in self.long}

            def new(name: str, box: Box) -> Box:
                return self.advanced(name, box, nest, nest.loops[level]) if name in sliding else box

            self._boxes[key] = footprint.boxes(self.facts, self.members, self.output.name, tile, new)
        return self._boxes[key]

    def advanced(self, name: str, box: Box, nest: Nest, loop: str) -> Box:
        """The last rows of a box, those that an iteration of a loop adds."""
        stage = self.graph.stage[name]
        moving = self.motions[name]
        return tuple(
            Interval(np.maximum(r.low, r.high - ceil(moving[d].rate * self.step(nest, loop)) + 1), r.high)
            if d in moving and moving[d].dim == loop else r
            for d, r in zip(stage.dims, box, strict=True)
        )  # fmt: skip

    def step(self, nest: Nest, loop: str) -> int:
        """Points of an iteration of a loop inside a tile."""
        return self.lanes if loop == nest.intra[-1] else 1

    def iterations(self, nest: Nest, level: int) -> Numbers:
        """How often a level runs."""
        inside = nest.inside(level)
        count = footprint.tiles(self.facts, self.output.name, self.tiles)
        for d in self.long:
            if d not in inside:
                count = count * np.ceil(self.tiles[d] / self.step(nest, d))
        return count

    def work(self, name: str, levels: Mapping[str, Level]) -> float:
        """Operations per point, with those of what is inlined."""
        inlined = [p for p in self.facts.producers[name] if levels.get(p) == INLINE]
        return self.known.work[name] + sum(self.work(p, levels) for p in inlined)

    def sources(self, name: str, levels: Mapping[str, Level]) -> set[str]:
        """What a stage reads once others are inlined."""
        found: set[str] = set()
        for p in self.facts.producers[name]:
            found |= self.sources(p, levels) if levels.get(p) == INLINE else {p}
        return found


@dataclass(frozen=True)
class Nest:
    """D_m: the loops inside a tile; of those over tiles only the innermost one matters here."""

    intra: tuple[str, ...]  # outermost first, without short loops
    short: tuple[str, ...]
    column: str

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """Innermost first."""
        return (*reversed(self.short), *reversed(self.intra))

    @property
    def innermost(self) -> int:
        """The innermost level at which something can be computed: that of the vector loop."""
        return len(self.short)

    @property
    def tile(self) -> int:
        """The innermost loop over tiles."""
        return len(self.loops)

    def level(self, loop: str) -> int:
        return self.loops.index(loop)

    def at(self, level: int) -> Level:
        """Computed and stored at a level, or at the tile if there is none."""
        return Level(min(level, self.tile), min(level, self.tile))

    def inside(self, level: int) -> frozenset[str]:
        """The loops inside an iteration of a level."""
        return frozenset(self.loops[:level])


# ---- segments to directives


def part(problem: Problem, t: Tiling) -> Part:
    """The directives of a segment. `problem`: with all inlining done."""
    if not t.tile:
        return ()
    return Loops(problem, t).chains()


@dataclass(frozen=True)
class Loops:
    """The loops of a segment whose tile is known."""

    problem: Problem
    t: Tiling

    @cached_property
    def output(self) -> Stage:
        return self.problem.graph.stage[self.t.output]

    @cached_property
    def short(self) -> tuple[str, ...]:
        return tuple(d for d in self.output.dims if d not in self.t.tile)

    @cached_property
    def intra(self) -> tuple[str, ...]:
        return tuple(d for d in self.t.intra if d not in self.short)

    @cached_property
    def tiled(self) -> TiledLoops:
        extents = self.problem.facts.every_loop(self.t.output)
        reductions = tuple(n for n in extents if n not in self.output.dims)
        return TiledLoops(extents, self.t.tile, self.t.inter, (*self.intra, *reductions, *self.short))

    def chains(self) -> Part:
        stored = [n for n in self.t.members if self.t.levels[n] != INLINE]
        return (self._output(), *(self._member(n) for n in stored))

    def _output(self) -> StageSchedule:
        chain = on(self.t.output).compute_root()
        for k, d in enumerate(self.output.definitions):
            start = chain if k == 0 else chain.update(k - 1)
            own = (*pure_dims(self.output, d), *(r.name for r in d.domain))
            width = lanes(self.output, d, self.problem.machine.vector_bits)
            innermost = self.intra[-1]
            vector = innermost if self.t.tile[innermost] >= width and innermost in self.tiled.inner else None
            marked = self.tiled.applied(start, own, vector, width, self.short)
            shared = next(iter(self.tiled.outer.values()), None)
            marked = marked.parallel(shared) if shared is not None else marked
            chain = chain if marked == start else marked
        return chain

    def _member(self, name: str) -> StageSchedule:
        level = self.t.levels[name]
        at, kept = self._loop(level.compute), self._loop(level.store)
        chain = on(name).compute_root() if at is None else on(name).compute_at(self.t.output, at)
        if kept != at:
            chain = chain.store_root() if kept is None else chain.store_at(self.t.output, kept)
        stage = self.problem.graph.stage[name]
        inside = {*self.short, *self.intra[len(self.intra) - max(0, level.compute - len(self.short)) :]}
        width = lanes(self.output, self.output.definitions[-1], self.problem.machine.vector_bits)
        tile = {d: n if d in inside else min(n, width) if d == self.intra[-1] else 1 for d, n in self.t.tile.items()}
        box = footprint.boxes(self.problem.facts, (*self.t.members, self.t.output), self.t.output, tile)[name]
        extents = {d: int(r.high - r.low + 1) for d, r in zip(stage.dims, box, strict=True)}
        return marked_inside(self.problem, stage, chain, extents)

    def _loop(self, level: int) -> str | None:
        """The loop of a level, or the next one further out that there is; None is root."""
        inside = list(reversed(self.intra))[max(0, level - len(self.short)) :]
        names = [self.tiled.inner[d] for d in inside if d in self.tiled.inner]
        return next(iter([*names, *reversed(self.tiled.outer.values())]), None)
