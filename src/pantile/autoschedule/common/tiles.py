"""Groups with tile sizes to directives: the loops of overlapped tiles, as a person would write them.

    Group("out", ("blur_x",), ({"y": 32, "x": 256},))  becomes

    pt.on("out").compute_root().split("y", "y_o", "y_i", 32).split("x", "x_o", "x_i", 256).vectorize("x_i", 8)
        .reorder("y_o", "x_o", "y_i", "x_i", "x_i_v").parallel("y_o")
    pt.on("blur_x").compute_at("out", "x_o").vectorize("x", 8)

The output of a group is computed at root, its tiles in parallel; all other members are computed at the innermost tile
loop, over what the tile needs of them; but planes that are told apart by their numbers are computed all at once, on
their own. `legalize` checks whether that is legal for the stages at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

from ...analysis.access import accesses
from ...analysis.shared_work import SHARING_ROWS
from ...cached import cached_property
from ...dataclass import dataclass
from ...expr.visit import variables
from ...graph.nodes import Definition, Stage
from ...schedule.directives import SUFFIX, StageSchedule, on
from ...schedule.names import fresh
from ...schedule.stage_default import FEWEST_LANES, register_lanes
from ...schedule.sums import power_of_two, shared_terms, side_by_side, sums_at_a_time
from ...schedule.updates import is_independent, pure_dims
from ..strategy import Problem
from .facts import Extents
from .footprint import boxes
from .locality import overlaps

MOST_UNROLLED = 4  # iterations of a short loop around a vector
LEAST_ACROSS = 4  # vectors along a loop that is not the innermost one: their elements are gathered one by one
# Of a stage without tiles, bytes that a task writes: with fewer, starting tasks and streams of memory takes as long as
# the work. But no fewer tasks per thread than this, so that all are done at the same time.
TASK_BYTES, TASKS_PER_THREAD = 1 << 17, 8
_LEVELS, _INSIDE = ("_o", "_m", "_n"), "_i"  # suffixes of tile loops by level, and of the loops inside

Level = Mapping[str, int]


@dataclass(frozen=True)
class TiledGroup:
    """Stages that run together, tile by tile of the output."""

    output: str
    members: tuple[str, ...] = ()  # the others
    tiles: tuple[Level, ...] = ()  # levels, outermost first: dim or reduction loop of the output -> extent
    order: tuple[str, ...] = ()  # of the output's dims, outermost first; as they are defined if it is empty

    @property
    def stages(self) -> tuple[str, ...]:
        return (*self.members, self.output)


@dataclass(frozen=True)
class Style:
    """The way in which loops are vectorized and made parallel."""

    vectors: int = 1  # registers of the widest type per iteration
    parallelism: int | None = None  # iterations to share among threads, if there are so many; None: as many as threads


PLAIN = Style()


def scheduled(problem: Problem, group: TiledGroup, style: Style = PLAIN) -> tuple[StageSchedule, ...]:
    """The directives of all stages of a group, those of its output first."""
    graph = problem.graph
    levels = _levels(problem, group)
    is_apart = problem.alone.is_written_out(graph.stage[group.output])
    if is_apart or not levels and (group.members or graph.stage[group.output].ndim < 2):
        names = (group.output, *group.members)
        return tuple(problem.alone.at_root(graph.stage[name]) for name in names)
    output = _Output(problem, group, levels, style)
    chains = [output.chain()]
    needed = boxes(problem.facts, group.stages, group.output, output.innermost) if group.members else {}
    for name in group.members:
        stage = graph.stage[name]
        if problem.alone.is_written_out(stage):
            chains.append(problem.alone.at_root(stage))
            continue
        extents = {d: int(r.high - r.low + 1) for d, r in zip(stage.dims, needed[name], strict=True)}
        chain = on(name).compute_at(group.output, output.innermost_tile_loop)
        chains.append(marked_inside(problem, stage, chain, extents, style))
    return tuple(chains)


def _levels(problem: Problem, group: TiledGroup) -> tuple[Level, ...]:
    """Tiles that are smaller than what they are tiles of; a level without any is left out."""
    sizes = problem.facts.every_loop(group.output)
    kept = []
    for level in group.tiles:
        smaller = {loop: n for loop, n in level.items() if n < sizes[loop]}
        sizes = {**sizes, **smaller}
        if smaller:
            kept.append(smaller)
    return tuple(kept)


def marked_inside(
    problem: Problem, stage: Stage, chain: StageSchedule, extents: Mapping[str, int], style: Style = PLAIN
) -> StageSchedule:
    """Order and vectorize the loops of a stage that is computed inside a tile over such extents of its dims."""
    chain = problem.alone.stored(stage, chain)
    for k, definition in enumerate(stage.definitions):
        nest = _Nest(problem, stage, definition, style)
        if nest.is_parallel:
            start = chain if k == 0 else chain.update(k - 1)
            order = sharing_last(problem, stage, nest.free)
            blocks = nest.blocks(extents, order)
            inside = {d: extents[d] for d in order}
            marked = nest.mark(start, nest.names, [], inside, blocks, {n: n for n in nest.names})
            chain = chain if marked == start else marked
    return chain


@dataclass(frozen=True)
class _Output:
    """The loops of a group's output; all of its definitions are tiled alike."""

    problem: Problem
    group: TiledGroup
    levels: Sequence[Level]
    style: Style

    @cached_property
    def stage(self) -> Stage:
        return self.problem.graph.stage[self.group.output]

    @cached_property
    def extents(self) -> dict[str, int]:
        return self.problem.facts.every_loop(self.group.output)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The requested order of dims, with those of planes that share their work last, then reduction loops."""
        loops = tuple(dict.fromkeys([*self.group.order, *self.extents]))
        dims = sharing_last(self.problem, self.stage, [d for d in loops if d in self.stage.dims])
        return (*dims, *(r for r in loops if r not in dims))

    def tail(self, loop: str) -> str:
        """The tail strategy of a loop. A last tile that is shifted inwards is unaligned: reads of x // 2 would be
        gathered lane by lane, instead of a few values of which each serves two lanes."""
        return "guard" if loop == self.stage.dims[self.problem.row(self.stage.name)] and self.has_halves else "auto"

    @cached_property
    def has_halves(self) -> bool:
        """Whether some stage of the group reads a coarser one."""
        return any(reads_halves(self.problem.graph.stage[name]) for name in self.group.stages)

    @cached_property
    def innermost(self) -> Level:
        """The extents of the innermost tiles."""
        return {loop: n for level in self.levels for loop, n in level.items()}

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The loops that each loop is split into, outermost first."""
        taken = set(self.extents)
        names = {}
        for loop in self.order:
            count = sum(loop in level for level in self.levels)
            suffixes = (*_LEVELS[:count], _INSIDE) if count else ()
            names[loop] = [fresh(loop.replace(".", "_") + s, taken.__contains__) for s in suffixes] or [loop]
            taken.update(names[loop])
        return names

    @cached_property
    def tile_loops(self) -> list[tuple[str, str, int]]:
        """The tile loops of all levels, outermost first: the loop, the name of its tile loop, and the number of
        tiles."""
        sizes = dict(self.extents)
        depth = dict.fromkeys(self.order, 0)
        loops = []
        for level in self.levels:
            for loop in self.order:
                if loop in level:
                    loops.append((loop, self.names[loop][depth[loop]], -(-sizes[loop] // level[loop])))
                    depth[loop], sizes[loop] = depth[loop] + 1, level[loop]
        return loops

    @property
    def innermost_tile_loop(self) -> str:
        """The loop at which other members are computed."""
        pure = [name for loop, name, _ in self.tile_loops if loop in self.stage.dims]
        return (pure or [name for _, name, _ in self.tile_loops])[-1]

    def chain(self) -> StageSchedule:
        chain = self.problem.alone.stored(self.stage, on(self.stage.name).compute_root())
        for k, definition in enumerate(self.stage.definitions):
            nest = _Nest(self.problem, self.stage, definition, self.style)
            if nest.is_parallel:
                start = chain if k == 0 else chain.update(k - 1)
                if nest.is_scan and not self.levels:  # in parallel along what it does not go along
                    marked = self.problem.alone.marked(self.stage, definition, start)
                else:
                    marked = self._marked(nest, start)
                chain = chain if marked == start else marked
        return chain

    def _marked(self, nest: _Nest, chain: StageSchedule) -> StageSchedule:
        loops = [loop for loop in self.order if loop in nest.names]
        for loop in loops:
            factors = [level[loop] for level in self.levels if loop in level]
            current = loop
            for factor, (outer, inner) in zip(factors, pairwise(self.names[loop]), strict=True):
                chain = chain.split(current, outer, inner, factor, tail=self.tail(loop))
                current = inner
        split = [name for loop in nest.names for name in self.names[loop]]
        tiles = [(name, count) for loop, name, count in self.tile_loops if loop in nest.names]
        inside = {self.names[d][-1]: self.innermost.get(d, self.extents[d]) for d in loops if d in nest.free}
        blocks = [self.names[d][-1] for d in nest.blocks({**self.extents, **self.innermost}, loops)]
        called = {loop: self.names[loop][-1] for loop in nest.names}
        chain = nest.mark(chain, split, [name for name, _ in tiles], inside, blocks, called)
        shared = [(n, c) for loop, n, c in self.tile_loops if loop in nest.free]
        vector = nest.vectorized(inside) or list(inside)[-1]
        rows = list(inside.items())[: list(inside).index(vector)]
        if shared or nest.reductions or not rows or prod(n for _, n in rows) < self._wanted_tasks:
            return self._parallel(chain, shared or list(inside.items())[:-1])
        return self._in_parts(chain, rows)

    def _parallel(self, chain: StageSchedule, loops: Sequence[tuple[str, int]]) -> StageSchedule:
        """Mark as many of the outermost loops parallel as it takes to keep all threads busy."""
        for name, _ in _outermost(loops, self._wanted_tasks):
            chain = chain.parallel(name)
        return chain

    @property
    def _wanted_tasks(self) -> int:
        """The number of iterations to share among threads."""
        return self.style.parallelism or self.problem.machine.threads

    def _in_parts(self, chain: StageSchedule, rows: Sequence[tuple[str, int]]) -> StageSchedule:
        """Mark loops over whole rows parallel, with tasks of several iterations of the innermost parallel loop."""
        tasks = TASKS_PER_THREAD * self.problem.machine.threads
        *around, last = _outermost(rows, max(tasks, self._wanted_tasks))
        for name, _ in around:
            chain = chain.parallel(name)
        count = prod(n for _, n in (*around, last))
        bytes_each = self.problem.facts.size(self.stage.name) / count
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


def sharing_last(problem: Problem, stage: Stage, dims: Sequence[str]) -> list[str]:
    """The dims, with those last that are few planes, such as colours, and share much of their work: unrolled around a
    vector, they do it once."""
    behind = [d for d in dims if d != stage.dims[-1] and _is_shared(problem, stage, d)]
    return [*(d for d in dims if d not in behind), *behind]


def _is_shared(problem: Problem, stage: Stage, dim: str) -> bool:
    extent = problem.facts.extents(stage.name)[stage.dims.index(dim)]
    return not stage.updates and 1 < extent < FEWEST_LANES and problem.alone.shared_work.is_worth_sharing(stage, dim)


def reads_halves(stage: Stage) -> bool:
    """Whether a stage reads something at x // 2."""
    indices = (i for d in stage.definitions for a in accesses(stage, d) for i in a.indices)
    return any(i is not None and i.scale.denominator > 1 for i in indices)


@dataclass(frozen=True)
class _Nest:
    """The loops of one definition."""

    problem: Problem
    stage: Stage
    definition: Definition
    style: Style

    @cached_property
    def free(self) -> tuple[str, ...]:
        return pure_dims(self.stage, self.definition)

    @cached_property
    def reductions(self) -> list[str]:
        return [r.name for r in self.definition.domain]

    @property
    def names(self) -> list[str]:
        """The loops before any directive."""
        return [*self.free, *self.reductions]

    @property
    def is_scan(self) -> bool:
        """Whether what is written moves with a reduction loop."""
        moving = {v for i in self.definition.indices for v in variables(i)}
        return not moving.isdisjoint(self.reductions)

    def blocks(self, extents: Mapping[str, int], order: Sequence[str] | None = None) -> list[str]:
        """The order of dims around the innermost vector and the reduction loops.

        As asked for, the loop that is vectorized last; an accumulation puts those innermost along which it reads most
        again, be it the vectorized one or not.
        """
        free = [d for d in order or self.free if d in self.free]
        if not self.reductions or self.is_scan:
            return free
        tile = {loop: n for loop, n in extents.items() if loop in self.stage.dims}
        reuse = overlaps(self.problem.facts, (self.stage.name,), self.stage.name, tile)
        return sorted(free, key=lambda d: reuse[d])

    @property
    def is_parallel(self) -> bool:
        """Whether its dims may run in any order; a scan stays as it is defined."""
        return bool(self.free) and all(is_independent(self.stage, self.definition, d) for d in self.free)

    def mark(
        self,
        chain: StageSchedule,
        loops: Sequence[str],
        tiles: Sequence[str],
        inside: Mapping[str, int],
        blocks: Sequence[str],
        called: Mapping[str, str],
    ) -> StageSchedule:
        """Order tile loops, loops inside them, reduction loops, and innermost a vector along the last loop that fills
        one.

        `loops` is the order so far, `inside` has the extents of the loops inside tiles, `blocks` their order around the
        vector, `called` what loops are called there. Sums stay in registers while their reduction loops run; a scan
        goes along rows, as memory does.
        """
        reductions = [called[r] for r in self.reductions]
        vector = self.vectorized(inside)
        if vector is None:
            return _reorder(chain, loops, [*tiles, *blocks, *reductions])
        rows = self._shared_rows(vector, inside, called)
        most = 1 if rows else self._most_vectors
        vectors = max(self._fewest_vectors, min(most, power_of_two(inside[vector] // self._lanes)))
        around = self._written_out(vector, vectors, inside, blocks)
        shared = rows or self._shared_terms(around, vector, vectors, called)
        written_out = {**shared, **around}
        chain = chain.vectorize(vector, self._lanes * vectors)
        for n, factor in written_out.items():
            chain = chain.unroll(n, factor)
        halves = {vector: SUFFIX["vectorize"], **dict.fromkeys(written_out, SUFFIX["unroll"])}
        now = [m for n in loops for m in ([n, n + halves[n]] if n in halves else [n])]
        others = [n for n in inside if n != vector]
        outside = [*others, *reductions, vector] if self.is_scan else [*blocks, *reductions]
        unrolled = [n + halves[n] for n in written_out]
        return _reorder(chain, now, [*tiles, *outside, *unrolled, vector + halves[vector]])

    @cached_property
    def _lanes(self) -> int:
        """The lanes of a register, or of half of one where there are no more neighbours, such as the levels of a
        stack."""
        lanes = register_lanes(self.stage, self.definition, self.problem.target)
        neighbours = self.problem.facts.extents(self.stage.name)[-1]
        is_half = FEWEST_LANES <= neighbours == lanes // 2 and self.stage.name not in self.problem.channels
        return neighbours if is_half else lanes

    @property
    def _fewest_vectors(self) -> int:
        return max(1, FEWEST_LANES // self._lanes)

    def vectorized(self, inside: Mapping[str, int]) -> str | None:
        """The last loop if it fills a vector; one before it, across short ones, only if that is long.

        A scan along rows has no vectors: it would gather and scatter columns, element by element.

        Never that over channels: a row of pixels fills one, and is loaded and stored with all their channels.
        """
        has_channels = self.stage.name in self.problem.channels
        if self.is_scan and self.stage.dims[-2 if has_channels else -1] not in self.free:
            return None
        fewest = self._fewest_vectors * self._lanes
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
        condition = self.definition.condition
        is_masked = condition is not None and self.free[-1] in variables(condition)
        return bool(self.reductions) and not self.is_scan and not is_masked

    @property
    def _block(self) -> int:
        """The number of vectors of sums that are computed at a time."""
        return sums_at_a_time(len(self.stage.dtypes), self.problem.machine.registers)

    @property
    def _most_vectors(self) -> int:
        """The most vectors per iteration; blocks of sums are about as wide as they are high, and so read least."""
        if self._is_sum:
            return side_by_side(self._block)
        return vectors_at_a_time(self.problem, self.stage, self.definition, self.style.vectors)

    def _written_out(self, vector: str, vectors: int, inside: Mapping[str, int], blocks: Sequence[str]) -> Extents:
        """The loops to unroll around so many vectors, with their factors.

        Short ones behind it, such as the channels of an interleaved image, or else a part of the one innermost around
        the loops of a sum, whose terms then share what they read.
        """
        behind = list(inside)[list(inside).index(vector) + 1 :]
        short = {n: inside[n] for n in behind if 1 < inside[n] <= MOST_UNROLLED}
        if short or not self._is_sum:
            return short
        around = [n for n in blocks if n != vector and inside[n] > 1][-1:]
        return {n: min(inside[n], max(1, self._block // vectors)) for n in around}

    def _shared_terms(self, around: Extents, vector: str, vectors: int, called: Mapping[str, str]) -> Extents:
        """Terms to write out around these loops, and how many: those for which their iterations read the same."""
        before = {n: loop for loop, n in called.items()}
        rows = [n for n in around if self._is_sum and before[n] in self.stage.dims]
        if not rows:
            return {}
        dim, count = before[rows[0]], around[rows[0]]
        across, strict = before[vector], self.problem.strict
        terms = shared_terms(self.stage, self.definition, dim, across, count * vectors, count, strict)
        return {called[r]: n for r, n in terms.items()}

    def _shared_rows(self, vector: str, inside: Mapping[str, int], called: Mapping[str, str]) -> Extents:
        """Rows to write out around a vector, if what depends on the column only is worth it."""
        before = {n: loop for loop, n in called.items()}
        names = list(inside)
        row = names[names.index(vector) - 1] if names.index(vector) > 0 else vector
        if row == vector or inside[row] < 2 * SHARING_ROWS:
            return {}
        copies = self.problem.channels.get(self.stage.name, 1)
        is_worth = self.problem.alone.shared_work.is_worth_sharing_rows
        return {row: SHARING_ROWS} if is_worth(self.stage, before[row], before[vector], copies) else {}


def vectors_at_a_time(problem: Problem, stage: Stage, definition: Definition, wanted: int) -> int:
    """Vectors per iteration, as many as wanted if registers hold what they use again, as sorting does."""
    waiting = problem.facts.waiting(stage.name, stage.definitions.index(definition))
    return max(1, min(wanted, int(problem.machine.registers / max(1.0, waiting))))


def _reorder(chain: StageSchedule, now: Sequence[str], wanted: Sequence[str]) -> StageSchedule:
    return chain if list(now) == list(wanted) else chain.reorder(*wanted)
