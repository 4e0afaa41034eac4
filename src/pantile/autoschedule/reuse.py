"""reuse: sioutas-thesis chapter 5, sliding windows inside tiles.

All stages of a pipeline are fused into its output: each is computed at a loop inside a tile and stored one loop further
out, so that its rows are computed once per tile and kept in a circular buffer (Algorithm 4); stages without overlap, or
too cheap to store, are inlined (Algorithm 5). The orders of loops and the tile sizes are those of least cost, which is
loads plus recomputation (Algorithm 6). Only if the buffers of the whole exceed the last cache is it cut into segments,
at stages with several consumers (Algorithm 7), then anywhere (Algorithm 8).

Loops of a few iterations, such as channels, stay innermost and are unrolled. A stage whose values only they share is
computed a row at a time, not a vector at a time.

Stages that the chapter does not treat are computed at root, and end a segment: outputs, scans, scatters and their
producers, and stages that are read at indices depending on data or sizes. A stage that cannot slide, because reads of
it are clamped or jump, or because its consumers are on a much coarser grid than the output, is stored where it would be
computed: all that a tile needs of it at once. Segments are also cut if they store so many stages that they take long to
compile.

Algorithm 6 asks for all tile sizes and all orders of loops. The search compares, along each loop, powers of two (of
lines and vectors along the column), even shares for one to eight times as many tiles as threads, and the whole extent,
in every combination. It compares all orders of the three innermost long loops, with further ones outermost; for
segments of more than twelve stages, only those with the column innermost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from itertools import islice, permutations
from math import inf, prod
from typing import Any, ClassVar

import numpy as np

from ..dataclass import cached_property, dataclass, memoized
from ..parameters import Amount, Bytes, Count, Weight
from .common.facts import PipelineFacts
from .common.legalize import legal
from .sliding.overlap import WHOLE, Motion, StageReuse, is_regular
from .sliding.sliding_loops import INLINE, Level, SegmentLoops, Tiling, directives, reported, through_inlined
from .sliding.sliding_tiles import SlidingTiles
from .strategy import Found, Problem, Report, Strategy

MOST_PERMUTED = 3  # loops whose order is searched; further ones stay outermost
FEW_STAGES = 12  # of a segment for which all orders of loops are tried
SLOW = Fraction(1, 2)  # points per iteration
MOST_HEADS = 64  # starting segments that are considered beyond the next limit
MOST_ANALYSED = 300  # stages, counted once per segment, after which Algorithm 8 no longer considers all cuts


@dataclass(frozen=True)
class Reuse(Strategy):
    """The parameters of chapter 5."""

    name: ClassVar[str] = "reuse"

    w: Weight = 10.0  # the cost of a load that misses, relative to an operation
    cache_size: Bytes | None = None  # csize: of the last-level cache
    max_split: Count = 1  # stages of the smallest segment
    most_stored: Amount = 8  # stages of a segment that are not inlined: more of them in one loop take long to compile

    def find(self, problem: Problem) -> Found:
        return _ReuseSearch(problem, self).find()

    def csize(self, problem: Problem) -> int:
        return self.cache_size or problem.cpu.last.size


@dataclass(frozen=True, eq=False)
class TilingAnalysis:
    """Algorithms 4 to 6 on one segment."""

    tiles: SlidingTiles
    w: float

    # ---- Algorithm 4

    def stage_fusion(self, nest: SegmentLoops) -> dict[str, Level]:
        """Algorithm 4: the compute and store level of every stage."""
        return {name: self._fused(name, nest) for name in reversed(self.tiles.producers)}

    def _fused(self, name: str, nest: SegmentLoops) -> Level:
        shared = {(c, d): v for c, dims in self.tiles.known.overlaps[name].items() for d, v in dims.items()}
        if not shared and name not in self.tiles.known.read_again:
            if self.tiles.facts.can_be_inlined(name):
                return INLINE  # line 12
            return nest.at(self._around_blocks(nest))  # a reduction has to be stored
        known = [(c, d) for c, d in shared if d in self.tiles.motions[c] and self.tiles.motions[c][d].dim in nest.loops]
        if not known:
            return nest.at(nest.row)  # line 10
        c, d = max(known, key=lambda at: nest.level(self.tiles.motions[at[0]][at[1]].dim))  # line 4
        level = nest.level(self.tiles.motions[c][d].dim)
        if level <= nest.innermost or shared[c, d] == WHOLE:  # line 7
            return nest.at(max(level + 1, nest.row))
        if not self._slides(name, self.tiles.motions[c][d]):
            return nest.at(nest.tile)
        return Level(level, level + 1)  # lines 6 and 8

    def _around_blocks(self, nest: SegmentLoops) -> int:
        """The innermost level with a loop inside besides the vector loop, so that values of a sum share what they
        read."""
        return nest.innermost + (2 if len(nest.intra) > 2 else 1)

    def _slides(self, name: str, consumer: Motion) -> bool:
        """Whether exactly one dim of the stage moves with the loop that a consumer moves with, and steadily.

        If a consumer pauses for many iterations, because its grid is coarser than the output's, its producers pause,
        too: the compiler would recompute these each time.
        """
        moving = [m for m in self.tiles.motions[name].values() if m.dim == consumer.dim]
        rests = consumer.rate < SLOW and all(m.rate == consumer.rate for m in moving)
        return len(moving) == 1 and moving[0].steady and not rests

    # ---- Algorithm 5

    def inline_trivial_stages(self, given: dict[str, Level]) -> dict[str, Level]:
        """Algorithm 5. Then every stage is moved outwards until all its readers are inside."""
        levels = dict(given)
        for name in reversed(self.tiles.producers):
            if levels[name] != INLINE and name in self.tiles.known.trivial:
                self._store_instead(name, levels[name], levels)
                levels[name] = INLINE
        for name in reversed(self.tiles.producers):
            if levels[name] != INLINE:
                outermost = max((levels[r].compute for r in self.readers(name, levels) if r in levels), default=-1)
                at = max(levels[name].compute, outermost)
                levels[name] = Level(at, max(levels[name].store, at))
        return levels

    def _store_instead(self, name: str, level: Level, levels: dict[str, Level]) -> None:
        """Lines 5 to 9: producers that were inlined into a stage take its place when it is itself inlined."""
        for p in self.tiles.facts.producers[name]:
            if levels.get(p) == INLINE:
                if p in self.tiles.known.trivial:
                    self._store_instead(p, level, levels)
                else:
                    levels[p] = level

    def readers(self, name: str, levels: Mapping[str, Level]) -> set[str]:
        """The stages that read a stage once others are inlined."""
        return through_inlined(name, self.tiles.facts.consumers, levels)[0]

    # ---- Algorithm 6

    def best(self) -> Tiling:
        """Algorithm 6: all orders of loops, and for each all tile sizes at once."""
        fallback = Tiling(self.tiles.output.name, self.tiles.producers, 0.0, inf if self.tiles.producers else 0.0)
        best = fallback
        for nest, levels in self.fused:
            cheapest = self.cheapest_tile(nest, levels, best.cost if best.tile else inf)
            if cheapest is not None:
                best = cheapest
        compared = len(self.fused) * prod(self.tiles.shape) if self.fused else 0
        return replace(best, compared=compared)

    @cached_property
    def fused(self) -> list[tuple[SegmentLoops, dict[str, Level]]]:
        """All orders of loops, and the levels of the stages in each; none if the output cannot be tiled."""
        if not self.tiles.long or not is_regular(self.tiles.output):
            return []
        nests = [SegmentLoops(intra, self.tiles.short, self.tiles.column) for intra in self.permutations()]
        return [(nest, self.inline_trivial_stages(self.stage_fusion(nest))) for nest in nests]

    @property
    def least_stored(self) -> int:
        """The least number of stages that are stored, for any order and tile."""
        return min((sum(level != INLINE for level in levels.values()) for _, levels in self.fused), default=0)

    def permutations(self) -> list[tuple[str, ...]]:
        """The orders of the loops inside a tile. "We do not attempt to interchange loops that only perform a few
        iterations".

        Orders with another loop than the column innermost lose the prefetchers (equation 5.13). Large segments do not
        try them, and neither do pictures with channels, whose rows are loaded and stored as whole pixels.
        """
        fixed, free = self.tiles.long[:-MOST_PERMUTED], self.tiles.long[-MOST_PERMUTED:]
        orders = [(*fixed, *p) for p in permutations(free)]
        along = [p for p in orders if p[-1] == self.tiles.column]
        others = [p for p in orders if p not in along]
        is_small = len(self.tiles.members) <= FEW_STAGES and self.tiles.output.name not in self.tiles.problem.channels
        return [*along, *others] if is_small or not along else along

    def cheapest_tile(self, nest: SegmentLoops, levels: Mapping[str, Level], below: float = inf) -> Tiling | None:
        """The tiling of least total cost over all tiles and outermost loops over tiles, under the constraints; None if
        it is not below `below`."""
        loads, recomputed = self.tiles.costs(nest, levels)
        total = self.w * loads + recomputed
        if total.min() >= below:  # even without constraints
            return None
        folded, unfolded = self.tiles.buffers(nest, levels)
        fits = unfolded <= self.tiles.problem.cpu.l2.per_core
        best: tuple[float, tuple[Any, ...], str] | None = None
        for outermost in self.tiles.long:
            allowed = np.where(fits & self.tiles.keep_threads_busy(outermost), total, inf)
            last = allowed.size - 1 - int(np.argmin(allowed.ravel()[::-1]))  # the largest of several of equal cost
            k = np.unravel_index(last, allowed.shape)
            if np.isfinite(allowed[k]) and (best is None or allowed[k] < best[0]):
                best = (float(allowed[k]), k, outermost)
        if best is None or best[0] >= below:
            return None
        cost, k, outermost = best
        inter = (outermost, *(d for d in self.tiles.long if d != outermost))
        terms = {
            "loads": loads[k],
            "recomputation": recomputed[k],
            "C_total": cost,
            "folded bytes": folded[k],
            "other bytes": unfolded[k],
        }
        tile = {d: int(n.ravel()[i]) for i, (d, n) in zip(k, self.tiles.sizes.items(), strict=True)}
        return Tiling(
            self.tiles.output.name,
            self.tiles.producers,
            cost,
            float(folded[k] + unfolded[k]),
            tile,
            (*nest.intra, *self.tiles.short),
            inter,
            levels,
            {name: float(value) for name, value in terms.items()},
            self.tiles.constraints(outermost),
        )


class _ReuseSearch:
    """The search of chapter 5. Segments are identified by their outputs."""

    def __init__(self, problem: Problem, parameters: Reuse) -> None:
        self.original, self.parameters = problem, parameters
        self.csize = parameters.csize(problem)
        self.problem = problem.inlined(problem.facts.trivial)
        self.facts: PipelineFacts = self.problem.facts
        self.stages = [s.name for s in self.problem.graph.stages]
        self._place = {name: k for k, name in enumerate(self.stages)}
        self.known = StageReuse(self.problem)
        self.analysed: dict[tuple[str, ...], Tiling | None] = {}  # None: not analysed, since it stores too many stages
        self.remarks: list[str] = []

    def find(self) -> Found:
        tilings = [t for members in self.segments(self.barriers()) for t in self.scheduled(members)]
        inlined = (*self.original.facts.trivial, *(n for t in tilings for n in t.inlined))
        final = self.original.inlined(inlined)
        tilings = [t.among(final.graph.stage) for t in tilings if t.output in final.graph.stage]
        result = legal(self.original, [directives(final, t) for t in tilings], inlined)
        report = Report(
            Reuse.name,
            self.problem.machine.name,
            {**asdict(self.parameters), "cache_size": self.csize},
            tuple(map(reported, tilings)),
            inlined,
            self.counts(),
            (*self.remarks, *result.remarks),
        )
        return Found(result.schedule, report)

    def counts(self) -> dict[str, int]:
        """The numbers of segments and tiles that were compared."""
        tiles = sum(t.compared for t in self.analysed.values() if t is not None)
        return {"segments analysed": len(self.analysed), "tiles compared": tiles}

    def barriers(self) -> set[str]:
        """The stages that are computed at root in any case."""
        outputs = self.problem.graph.output
        alone = [n for n in self.stages if n not in outputs and not self.known.may_be_fused(n)]
        if alone:
            self.remarks.append(f"computed at root, since chapter 5 does not treat what reads them: {', '.join(alone)}")
        return {*outputs, *alone}

    # ---- Algorithm 7

    def segments(self, roots: Iterable[str], among: Iterable[str] | None = None) -> list[tuple[str, ...]]:
        """Segments that end in the given stages, each with the producers that only it needs, producers first.

        A stage that several segments need ends a segment of its own.
        """
        chosen = self.stages if among is None else list(among)
        ends = set(roots)
        owner: dict[str, str] = {}
        for name in reversed(chosen):
            owners = {owner[c] for c in self.facts.consumers[name] if c in owner}
            owner[name] = name if name in ends or len(owners) != 1 else owners.pop()
        segments: dict[str, list[str]] = {end: [] for end in chosen if owner[end] == end}
        for name in chosen:
            segments[owner[name]].append(name)
        return list(map(tuple, segments.values()))

    def group_stages(self, members: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Algorithm 7: stages with more than one consumer form new pipelines, along with their producers."""
        several = [n for n in members if len(self.facts.consumers[n]) > 1]
        return self.segments([*several, members[-1]], members)

    # ---- Figure 5.9 and Algorithm 8

    def scheduled(self, members: tuple[str, ...]) -> list[Tiling]:
        """The whole as one segment if its buffers fit, else the result of Algorithms 7 and 8."""
        if self._fits(members):
            return [self.tiling_analysis(members)]
        whole = self.analysed[members]
        if whole is None:
            self._note_cut(members, f"more than {self.parameters.most_stored} stages")
        elif np.isfinite(whole.working_set):
            self._note_cut(members, f"{len(whole.stored)} stages in {whole.working_set:.4g} bytes")
        return [t for segment in self.group_stages(members) for t in self.split_segment(segment)]

    def _note_cut(self, members: tuple[str, ...], held: str) -> None:
        self.remarks.append(f"cut into segments: what ends in {members[-1]}, which would store {held}")

    @memoized
    def split_segment(self, members: tuple[str, ...]) -> list[Tiling]:
        """Algorithm 8: the cheapest way to cut a segment into ones that fit."""
        return self._largest_first(members) if self._has_seen_much() else self._cheapest_split(members)

    def _has_seen_much(self) -> bool:
        """Whether to go on without considering all cuts."""
        return sum(map(len, self.analysed)) >= MOST_ANALYSED

    def _fits(self, members: tuple[str, ...]) -> bool:
        """Whether the buffers of a segment fit the cache. A single stage always fits."""
        if len(members) > 1 and self._stores_too_many(members):
            return False
        tiling = self.tiling_analysis(members)
        few = len(tiling.stored) <= self.parameters.most_stored
        return len(members) == 1 or (few and tiling.working_set <= self.csize)

    def _stores_too_many(self, members: tuple[str, ...]) -> bool:
        """Whether a segment stores too many stages in any order of loops. Then it is not analysed further."""
        if members not in self.analysed:
            analysis = self._analysis(members)
            too_many = analysis.least_stored > self.parameters.most_stored
            self.analysed[members] = None if too_many else analysis.best()
        return self.analysed[members] is None

    def _cheapest_split(self, members: tuple[str, ...]) -> list[Tiling]:
        if self._fits(members):
            return [self.tiling_analysis(members)]
        best: list[Tiling] = []
        least = inf
        for head in self._heads(members):
            if not self._fits(head) or (best and self._has_seen_much()):
                break  # "will only grow larger if more stages are included"
            taken = set(head)
            rest = tuple(m for m in members if m not in taken)
            tilings = [self.tiling_analysis(head), *self.split_segment(rest)]
            cost = sum(t.cost for t in tilings)
            if cost < least:
                best, least = tilings, cost
        return best or [self.tiling_analysis((m,)) for m in members]

    def _heads(self, members: tuple[str, ...], most: int | None = None) -> list[tuple[str, ...]]:
        """Segments to start with, smallest first, of at least `max_split` stages. They end where iterations of
        consumers overlap: other stages are inlined or computed together with their consumers. Only the first `most` are
        considered."""
        ends = islice((end for end in members[:-1] if self._has_overlap(end)), most)
        among = set(members)
        heads = [self._with_producers(among, end) for end in ends]
        return sorted((h for h in heads if len(h) >= self.parameters.max_split), key=len)

    def _has_overlap(self, name: str) -> bool:
        return any(self.known.overlaps[name].values())

    def _largest_first(self, members: tuple[str, ...]) -> list[Tiling]:
        """A cut of a long segment that does not consider all cuts: repeatedly the largest head that fits."""
        tilings = []
        while members:
            heads = [*self._heads(members, MOST_HEADS), members]
            low, step = 0, 1  # heads[low] will be taken
            while low + step < len(heads) and self._fits(heads[low + step]):
                low, step = low + step, 2 * step
            while step > 1:
                step //= 2
                if low + step < len(heads) and self._fits(heads[low + step]):
                    low += step
            head = heads[low]
            tilings += [self.tiling_analysis(head)] if self._fits(head) else [self.tiling_analysis((m,)) for m in head]
            taken = set(head)
            members = tuple(m for m in members if m not in taken)
        return tilings

    def _with_producers(self, among: set[str], end: str) -> tuple[str, ...]:
        """A stage and those of `among` that it needs."""
        needed, pending = {end}, [end]
        while pending:
            new = [p for p in self.facts.producers[pending.pop()] if p in among and p not in needed]
            needed.update(new)
            pending += new
        return tuple(sorted(needed, key=self._place.__getitem__))

    def tiling_analysis(self, members: tuple[str, ...]) -> Tiling:
        tiling = self.analysed.get(members)
        if tiling is None:
            tiling = self.analysed[members] = self._analysis(members).best()
        return tiling

    def _analysis(self, members: tuple[str, ...]) -> TilingAnalysis:
        return TilingAnalysis(SlidingTiles(self.problem, self.known, members), self.parameters.w)
