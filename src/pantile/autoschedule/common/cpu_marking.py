"""Loops on a CPU: tile loops in parallel, a vector innermost, short loops unrolled around it.

for y, x in tiles: for y, x in a tile    ->    .vectorize("x_i", 8).reorder("y_o", "x_o", "y_i", "x_i", "x_i_v")
                                               .parallel("y_o")

Sums into elements that data select, such as histograms, are computed by all threads, each of which counts a strip of
rows by itself.

    histogram[level[r.y, r.x]] += 1   ->   histogram_strip_turn[..]   the pixels of a row in four histograms in turn
                                           histogram_strip[..]        those of a strip; strips are counted in parallel
                                           histogram[i]               those of all strips

Pixels are counted in turn because equal neighbours, which are common in pictures, would wait for each other's count.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...analysis.shared_work import SHARING_ROWS
from ...dataclass import cached_property, dataclass
from ...expr.visit import variables
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.parallel_reduction import free_name, in_parts
from ...schedule.stage_default import FEWEST_LANES, StageDefaults, lanes, register_lanes
from ...schedule.sums import power_of_two, shared_terms, side_by_side, sums_at_a_time
from ...schedule.updates import accumulation, pure_dims
from ..strategy import Problem
from .facts import Extents
from .locality import overlaps
from .marking import DefinitionLoops, Innermost, Marking, Names, Part, reordered, unrolled, vector

MOST_UNROLLED = 4  # iterations of a short loop around a vector
LEAST_ACROSS = 4  # vectors along a loop that is not the innermost one: their elements are gathered one by one
# The bytes that a task of an untiled stage writes: with fewer, starting tasks and streams of memory takes as long as
# the work. But there are no fewer tasks per thread than this, so that all threads finish at the same time.
TASK_BYTES, TASKS_PER_THREAD = 1 << 17, 8
STRIPS_PER_THREAD = 4
WORTH = 16  # terms per element of a partial result: clearing partial results and adding them up takes time, too
TURNS = 4


class CpuMarking(Marking):
    """Vectors and parallel loops."""

    @cached_property
    def _alone(self) -> StageDefaults:
        p = self.problem
        return StageDefaults(p.graph, p.target, self.inlined, p.strict) if self.inlined else p.alone

    def at_root(self, stage: Stage) -> Part:
        return (self._alone.at_root(stage),)

    def in_parts(self, stage: Stage) -> Part:
        p = self.problem
        return in_parts(p.graph, stage, p.target, p.strict, ()) or counted_in_parts(p, stage)

    def is_alone(self, stage: Stage, is_tiled: bool, is_output: bool = False) -> bool:
        """Whether a stage is better on its own. A stage of numbered planes is: all of its planes are computed at
        once."""
        return self._alone.is_written_out(stage) or (stage.ndim < 2 and not is_tiled)

    def untiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Mark a scan as parallel along the dims that it does not go along."""
        return self._alone.marked(loops.stage, loops.definition, chain) if loops.is_parallel else chain

    def inside(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        return _VectorLoops(self, loops).marked(chain) if loops.is_parallel else chain

    def tiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        vectors, inside = _VectorLoops(self, loops), [*loops.inside.items()]
        chain = vectors.marked(chain)
        shared = [(name, count) for loop, name, count in loops.tiles if loop in loops.free]
        names = [*loops.inside]
        rows = inside[: names.index(vectors.vector or names[-1])]
        if shared or loops.reductions or not rows or prod(n for _, n in rows) < self._wanted_tasks:
            return self.nest(chain, shared=[n for n, _ in _outermost(shared or inside[:-1], self._wanted_tasks)])
        return self._in_tasks(chain, rows)

    def nest(
        self, chain: StageSchedule, parts: Sequence[Innermost] = (), order: Names = (), shared: Names = ()
    ) -> StageSchedule:
        for part in (p for p in parts if p.count is not None):
            chain = part.mark(chain)
        chain = chain.reorder(*order) if order else chain
        for part in (p for p in parts if p.count is None):
            chain = part.mark(chain)
        for loop in shared:
            chain = chain.parallel(loop)
        return chain

    @property
    def _wanted_tasks(self) -> int:
        """The number of iterations to share among threads."""
        return self.style.parallelism or self.problem.cpu.threads

    def _in_tasks(self, chain: StageSchedule, rows: Sequence[tuple[str, int]]) -> StageSchedule:
        """Mark loops over whole rows parallel, with tasks of several iterations of the innermost parallel loop."""
        tasks = TASKS_PER_THREAD * self.problem.cpu.threads
        *around, last = _outermost(rows, max(tasks, self._wanted_tasks))
        chain = self.nest(chain, shared=[name for name, _ in around])
        count = prod(n for _, n in (*around, last))
        bytes_each = self.problem.facts.size(chain.name) / count
        several = power_of_two(max(1, min(count // tasks, last[1] // 2, int(TASK_BYTES / bytes_each))))
        return chain.parallel(last[0], several) if several > 1 else chain.parallel(last[0])


def _outermost(nest: Sequence[tuple[str, int]], wanted: int) -> list[tuple[str, int]]:
    """The fewest outermost loops that have `wanted` iterations together."""
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

    @property
    def problem(self) -> Problem:
        return self.marking.problem

    @property
    def stage(self) -> Stage:
        return self.loops.stage

    @cached_property
    def blocks(self) -> list[str]:
        """The order of dims around the innermost vector and the reduction loops.

        This is the requested order, but an accumulation puts the loops innermost along which it reads most values
        again, whether or not they are vectorized.
        """
        free = [d for d in self.loops.order if d in self.loops.free]
        if self.loops.reductions and not self.loops.is_scan:
            tile = {loop: n for loop, n in self.loops.extents.items() if loop in self.stage.dims}
            reuse = overlaps(self.problem.facts, (self.stage.name,), self.stage.name, tile)
            free.sort(key=lambda d: reuse[d])
        return [self.loops.called[d] for d in free]

    def marked(self, chain: StageSchedule) -> StageSchedule:
        """Order the loops: tile loops, loops inside of tiles, reduction loops, and innermost a vector along the last
        loop that fills one. Sums stay in registers while their reduction loops run. A scan runs along rows, in the
        order of memory."""
        loops, tiles = self.loops, [name for _, name, _ in self.loops.tiles]
        if self.vector is None:
            return reordered(chain, loops.now, [*tiles, *self.blocks, *loops.reductions])
        rows = self._shared_rows(self.vector)
        most = 1 if rows else self._most_vectors
        vectors = max(self._fewest_vectors, min(most, power_of_two(loops.inside[self.vector] // self._lanes)))
        around = self._written_out(self.vector, vectors)
        copies = {**(rows or self._shared_terms(around, self.vector, vectors)), **around}
        parts = [vector(self.vector, self._lanes * vectors), *(unrolled(*copy) for copy in copies.items())]
        halves = {p.loop: p.part for p in parts}
        now = [m for n in loops.now for m in ([n, halves[n]] if n in halves else [n])]
        others = [n for n in loops.inside if n != self.vector]
        outside = [*others, *loops.reductions, self.vector] if loops.is_scan else [*self.blocks, *loops.reductions]
        order = [*tiles, *outside, *(p.part for p in (*parts[1:], parts[0]))]
        return self.marking.nest(chain, parts, order if order != now else ())

    @cached_property
    def _lanes(self) -> int:
        """The lanes of a register, or half of them if the innermost dim is only that long, such as the levels of a
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
        """The loop to vectorize: the last one if it fills a vector; an earlier one, across short ones, only if it is
        long.

        A scan along rows has no vectors: it would gather and scatter columns, element by element.

        Channels are never vectorized: a row of pixels fills a vector, and is loaded and stored with all its channels.
        """
        has_channels = self.stage.name in self.problem.channels
        if self.loops.is_scan and self.stage.dims[-2 if has_channels else -1] not in self.loops.free:
            return None
        fewest, inside = self._fewest_vectors * self._lanes, self.loops.inside
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
        """The most vectors per iteration. Blocks of sums are about as wide as they are high, so that they read
        least."""
        if self._is_sum:
            return side_by_side(self._block)
        return vectors_at_a_time(self.problem, self.stage, self.loops.definition, self.marking.style.vectors)

    def _written_out(self, column: str, vectors: int) -> Extents:
        """The loops to unroll around this number of vectors, with their factors.

        These are short loops inside of the vectorized one, such as the channels of an interleaved image. If a sum has
        none, the innermost loop around its reduction loops is unrolled in part, so that its iterations share what they
        read.
        """
        inside = self.loops.inside
        behind = list(inside)[list(inside).index(column) + 1 :]
        short = {n: inside[n] for n in behind if 1 < inside[n] <= MOST_UNROLLED}
        if short or not self._is_sum:
            return short
        around = [n for n in self.blocks if n != column and inside[n] > 1][-1:]
        return {n: min(inside[n], max(1, self._block // vectors)) for n in around}

    def _shared_terms(self, around: Extents, column: str, vectors: int) -> Extents:
        """The reduction loops to unroll, with their factors: those along which unrolled rows read the same values."""
        before = {n: loop for loop, n in self.loops.called.items()}
        rows = [n for n in around if self._is_sum and before[n] in self.stage.dims]
        if not rows:
            return {}
        dim, count = before[rows[0]], around[rows[0]]
        across, strict = before[column], self.problem.strict
        terms = shared_terms(self.stage, self.loops.definition, dim, across, count * vectors, count, strict)
        return {self.loops.called[r]: n for r, n in terms.items()}

    def _shared_rows(self, column: str) -> Extents:
        """The rows to unroll around a vector, if sharing what depends only on the column is worth it."""
        before = {n: loop for loop, n in self.loops.called.items()}
        names = list(self.loops.inside)
        row = names[names.index(column) - 1] if names.index(column) > 0 else column
        if row == column or self.loops.inside[row] < 2 * SHARING_ROWS:
            return {}
        copies = self.problem.channels.get(self.stage.name, 1)
        is_worth = self.problem.alone.shared_work.is_worth_sharing_rows
        return {row: SHARING_ROWS} if is_worth(self.stage, before[row], before[column], copies) else {}


def vectors_at_a_time(problem: Problem, stage: Stage, definition: Definition, wanted: int) -> int:
    """The number of vectors per iteration: as many as wanted, if registers can hold the values used again, as in
    sorting."""
    waiting = problem.facts.waiting(stage.name, stage.definitions.index(definition))
    return max(1, min(wanted, int(problem.cpu.registers / max(1.0, waiting))))


def counted_in_parts(problem: Problem, stage: Stage) -> tuple[StageSchedule, ...]:
    """Return the schedules of a stage and its partial results, or () if the stage is better computed as a whole."""
    if not stage.dims or len(stage.updates) != 1 or not problem.facts.is_limited(stage.name):
        return ()
    update = stage.updates[0]
    terms = accumulation(stage, update)
    if terms is None or not update.domain or pure_dims(stage, update):
        return ()
    if problem.strict and not all(t.is_exact for t in terms):
        return ()
    rows = _rows_of_a_strip(problem, stage)
    if rows is None:
        return ()
    names = (r.name for r in update.domain)
    taken = {*stage.dims, *names, *(p.name for p in problem.graph.params), *problem.graph.stage, *problem.graph.input}
    strip, row, steps, turn = (free_name(n, stage.name, taken) for n in ("strip", "row", "steps", "turn"))
    first, last = update.domain[0].name, update.domain[-1].name if len(update.domain) > 1 else row
    per_strip, per_turn = f"{stage.name}_{strip}", f"{stage.name}_{strip}_{turn}"
    between = [row, *(r.name for r in update.domain[1:-1])] if len(update.domain) > 1 else []
    *others, along = stage.dims
    width = lanes(stage, update, problem.target)

    def vectors(chain: StageSchedule, *around: str) -> StageSchedule:
        chain = chain.reorder(*around, *others, along)
        return chain.vectorize(along, width) if problem.facts.extents(stage.name)[-1] >= width else chain

    whole = on(stage.name).compute_root().update(0).split(first, strip, row, rows).rfactor(strip, strip)
    parts = vectors(on(per_strip).compute_root(), strip).parallel(strip)
    parts = parts.update(0).split(last, steps, turn, TURNS).rfactor(turn, turn)
    turns = vectors(on(per_turn).compute_at(per_strip, strip), strip, turn)
    turns = turns.update(0).reorder(strip, *between, steps, turn).unroll(turn, TURNS)
    return (vectors(whole, strip), vectors(parts, strip, turn).parallel(strip), turns)


def _rows_of_a_strip(problem: Problem, stage: Stage) -> int | None:
    """The number of rows of a strip: few enough that all threads are busy, and enough that strips are worth it."""
    rows, *inside = problem.facts.loops(stage.name, 1).values()
    places = problem.facts.points(stage.name)
    least = -(-WORTH * TURNS * places // prod(inside))
    strip = max(least, rows // (STRIPS_PER_THREAD * problem.cpu.threads), TURNS)
    return strip if 2 * strip <= rows else None
