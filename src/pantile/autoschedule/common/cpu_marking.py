"""Loops on a CPU: tile loops in parallel, a vector innermost, short loops written out around it.

for y, x in tiles: for y, x in a tile    ->    .vectorize("x_i", 8).reorder("y_o", "x_o", "y_i", "x_i", "x_i_v")
                                               .parallel("y_o")
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...analysis.shared_work import SHARING_ROWS
from ...cached import cached_property
from ...dataclass import dataclass
from ...expr.visit import variables
from ...graph.nodes import Definition, Stage
from ...schedule.directives import SUFFIX, StageSchedule
from ...schedule.parallel_reduction import in_parts
from ...schedule.stage_default import FEWEST_LANES, StageDefaults, register_lanes
from ...schedule.sums import power_of_two, shared_terms, side_by_side, sums_at_a_time
from ..strategy import Problem
from .facts import Extents
from .histograms import counted_in_parts
from .locality import overlaps
from .marking import DefinitionLoops, Marking, Part, SplitLoops, reordered

MOST_UNROLLED = 4  # iterations of a short loop around a vector
LEAST_ACROSS = 4  # vectors along a loop that is not the innermost one: their elements are gathered one by one
# Of a stage without tiles, bytes that a task writes: with fewer, starting tasks and streams of memory takes as long as
# the work. But no fewer tasks per thread than this, so that all are done at the same time.
TASK_BYTES, TASKS_PER_THREAD = 1 << 17, 8


class CpuMarking(Marking):
    """Vectors and parallel loops."""

    @cached_property
    def _alone(self) -> StageDefaults:
        p = self.problem
        return StageDefaults(p.graph, p.target, self.inlined, p.strict) if self.inlined else p.alone

    def at_root(self, stage: Stage) -> Part:
        return (self._alone.at_root(stage),)

    def in_parts(self, stage: Stage) -> Part:
        problem = self.problem
        parts = in_parts(problem.graph, stage, problem.target, problem.strict, ())
        return parts or counted_in_parts(problem, stage)

    def is_apart(self, stage: Stage) -> bool:
        """Planes that are told apart by their numbers are computed all at once, on their own."""
        return self._alone.is_written_out(stage)

    def needs_tiles(self, stage: Stage) -> bool:
        return stage.ndim < 2

    def tileable(self, stage: Stage) -> Sequence[str]:
        return [*self.problem.facts.every_loop(stage.name)]

    def stored(self, stage: Stage, chain: StageSchedule) -> StageSchedule:
        return self._alone.stored(stage, chain)

    def unsplit(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """A scan is parallel along what it does not go along."""
        return self._alone.marked(loops.stage, loops.definition, chain) if loops.is_parallel else chain

    def inside(self, loops: DefinitionLoops, split: SplitLoops, chain: StageSchedule) -> StageSchedule:
        return _VectorLoops(self, loops, split).marked(chain) if loops.is_parallel else chain

    def tiled(self, loops: DefinitionLoops, split: SplitLoops, chain: StageSchedule) -> StageSchedule:
        vectors = _VectorLoops(self, loops, split)
        inside = vectors.inside
        chain = vectors.marked(chain)
        shared = [(name, count) for loop, name, count in split.tiles if loop in loops.free]
        vector = vectors.vector or list(inside)[-1]
        rows = list(inside.items())[: list(inside).index(vector)]
        if shared or loops.reductions or not rows or prod(n for _, n in rows) < self._wanted_tasks:
            return self._parallel(chain, shared or list(inside.items())[:-1])
        return self._in_tasks(chain, rows)

    def _parallel(self, chain: StageSchedule, loops: Sequence[tuple[str, int]]) -> StageSchedule:
        """Mark as many of the outermost loops parallel as it takes to keep all threads busy."""
        for name, _ in _outermost(loops, self._wanted_tasks):
            chain = chain.parallel(name)
        return chain

    @property
    def _wanted_tasks(self) -> int:
        """The number of iterations to share among threads."""
        return self.style.parallelism or self.problem.cpu.threads

    def _in_tasks(self, chain: StageSchedule, rows: Sequence[tuple[str, int]]) -> StageSchedule:
        """Mark loops over whole rows parallel, with tasks of several iterations of the innermost parallel loop."""
        tasks = TASKS_PER_THREAD * self.problem.cpu.threads
        *around, last = _outermost(rows, max(tasks, self._wanted_tasks))
        for name, _ in around:
            chain = chain.parallel(name)
        count = prod(n for _, n in (*around, last))
        bytes_each = self.problem.facts.size(chain.name) / count
        several = power_of_two(max(1, min(count // tasks, last[1] // 2, int(TASK_BYTES / bytes_each))))
        return chain.parallel(last[0], several) if several > 1 else chain.parallel(last[0])


def _outermost(nest: Sequence[tuple[str, int]], wanted: int) -> list[tuple[str, int]]:
    """The first loops, as many as have `wanted` iterations together."""
    loops: list[tuple[str, int]] = []
    for loop in nest:
        if prod(n for _, n in loops) >= wanted:
            break
        loops.append(loop)
    return loops


@dataclass(frozen=True)
class _VectorLoops:
    """The loops of one definition, and the vectors to mark in them."""

    marking: Marking
    loops: DefinitionLoops
    split: SplitLoops

    @property
    def problem(self) -> Problem:
        return self.marking.problem

    @property
    def stage(self) -> Stage:
        return self.loops.stage

    @cached_property
    def inside(self) -> dict[str, int]:
        """The loops over dims inside of a tile, with their extents."""
        return self.split.inside(self.loops)

    @cached_property
    def blocks(self) -> list[str]:
        """The order of dims around the innermost vector and the reduction loops.

        As asked for, the loop that is vectorized last; an accumulation puts those innermost along which it reads most
        again, be it the vectorized one or not.
        """
        free = [d for d in self.split.order if d in self.loops.free]
        if self.loops.reductions and not self.loops.is_scan:
            tile = {loop: n for loop, n in self.split.extents.items() if loop in self.stage.dims}
            reuse = overlaps(self.problem.facts, (self.stage.name,), self.stage.name, tile)
            free.sort(key=lambda d: reuse[d])
        return [self.split.called[d] for d in free]

    def marked(self, chain: StageSchedule) -> StageSchedule:
        """Order tile loops, loops inside them, reduction loops, and innermost a vector along the last loop that fills
        one. Sums stay in registers while their reduction loops run; a scan goes along rows, as memory does."""
        tiles = [name for _, name, _ in self.split.tiles]
        reductions = [self.split.called[r] for r in self.loops.reductions]
        vector = self.vector
        if vector is None:
            return reordered(chain, self.split.now, [*tiles, *self.blocks, *reductions])
        rows = self._shared_rows(vector)
        most = 1 if rows else self._most_vectors
        vectors = max(self._fewest_vectors, min(most, power_of_two(self.inside[vector] // self._lanes)))
        around = self._written_out(vector, vectors)
        written_out = {**(rows or self._shared_terms(around, vector, vectors)), **around}
        chain = chain.vectorize(vector, self._lanes * vectors)
        for n, factor in written_out.items():
            chain = chain.unroll(n, factor)
        halves = {vector: SUFFIX["vectorize"], **dict.fromkeys(written_out, SUFFIX["unroll"])}
        now = [m for n in self.split.now for m in ([n, n + halves[n]] if n in halves else [n])]
        others = [n for n in self.inside if n != vector]
        outside = [*others, *reductions, vector] if self.loops.is_scan else [*self.blocks, *reductions]
        unrolled = [n + halves[n] for n in written_out]
        return reordered(chain, now, [*tiles, *outside, *unrolled, vector + halves[vector]])

    @cached_property
    def _lanes(self) -> int:
        """The lanes of a register, or of half of one where there are no more neighbours, such as the levels of a
        stack."""
        lanes = register_lanes(self.stage, self.loops.definition, self.problem.target)
        neighbours = self.problem.facts.extents(self.stage.name)[-1]
        is_half = FEWEST_LANES <= neighbours == lanes // 2 and self.stage.name not in self.problem.channels
        return neighbours if is_half else lanes

    @property
    def _fewest_vectors(self) -> int:
        return max(1, FEWEST_LANES // self._lanes)

    @cached_property
    def vector(self) -> str | None:
        """The last loop if it fills a vector; one before it, across short ones, only if that is long.

        A scan along rows has no vectors: it would gather and scatter columns, element by element.

        Never that over channels: a row of pixels fills one, and is loaded and stored with all their channels.
        """
        has_channels = self.stage.name in self.problem.channels
        if self.loops.is_scan and self.stage.dims[-2 if has_channels else -1] not in self.loops.free:
            return None
        fewest, inside = self._fewest_vectors * self._lanes, self.inside
        *before, last = inside
        if has_channels:
            if before and inside[before[-1]] >= fewest:  # no order of loops moves a row away from its channels
                return before[-1]
        elif inside[last] >= fewest:
            return last
        long = [n for n in before if inside[n] >= LEAST_ACROSS * fewest]
        return long[-1] if long else None

    @property
    def _is_sum(self) -> bool:
        """Whether values stay in registers while reduction loops run; not if lanes differ in a condition."""
        condition = self.loops.definition.condition
        is_masked = condition is not None and self.loops.free[-1] in variables(condition)
        return bool(self.loops.reductions) and not self.loops.is_scan and not is_masked

    @property
    def _block(self) -> int:
        """The number of vectors of sums that are computed at a time."""
        return sums_at_a_time(len(self.stage.dtypes), self.problem.cpu.registers)

    @property
    def _most_vectors(self) -> int:
        """The most vectors per iteration; blocks of sums are about as wide as they are high, and so read least."""
        if self._is_sum:
            return side_by_side(self._block)
        return vectors_at_a_time(self.problem, self.stage, self.loops.definition, self.marking.style.vectors)

    def _written_out(self, vector: str, vectors: int) -> Extents:
        """The loops to unroll around so many vectors, with their factors.

        Short ones behind it, such as the channels of an interleaved image, or else a part of the one innermost around
        the loops of a sum, whose terms then share what they read.
        """
        inside = self.inside
        behind = list(inside)[list(inside).index(vector) + 1 :]
        short = {n: inside[n] for n in behind if 1 < inside[n] <= MOST_UNROLLED}
        if short or not self._is_sum:
            return short
        around = [n for n in self.blocks if n != vector and inside[n] > 1][-1:]
        return {n: min(inside[n], max(1, self._block // vectors)) for n in around}

    def _shared_terms(self, around: Extents, vector: str, vectors: int) -> Extents:
        """Terms to write out around these loops, and how many: those for which their iterations read the same."""
        before = {n: loop for loop, n in self.split.called.items()}
        rows = [n for n in around if self._is_sum and before[n] in self.stage.dims]
        if not rows:
            return {}
        dim, count = before[rows[0]], around[rows[0]]
        across, strict = before[vector], self.problem.strict
        terms = shared_terms(self.stage, self.loops.definition, dim, across, count * vectors, count, strict)
        return {self.split.called[r]: n for r, n in terms.items()}

    def _shared_rows(self, vector: str) -> Extents:
        """Rows to write out around a vector, if what depends on the column only is worth it."""
        before = {n: loop for loop, n in self.split.called.items()}
        names = list(self.inside)
        row = names[names.index(vector) - 1] if names.index(vector) > 0 else vector
        if row == vector or self.inside[row] < 2 * SHARING_ROWS:
            return {}
        copies = self.problem.channels.get(self.stage.name, 1)
        is_worth = self.problem.alone.shared_work.is_worth_sharing_rows
        return {row: SHARING_ROWS} if is_worth(self.stage, before[row], before[vector], copies) else {}


def vectors_at_a_time(problem: Problem, stage: Stage, definition: Definition, wanted: int) -> int:
    """Vectors per iteration, as many as wanted if registers hold what they use again, as sorting does."""
    waiting = problem.facts.waiting(stage.name, stage.definitions.index(definition))
    return max(1, min(wanted, int(problem.cpu.registers / max(1.0, waiting))))
