"""Thread tiles: the points that each thread of a kernel computes, and where the stages fused with them are computed.

    one point per thread, blur_x in shared memory          eight rows per thread, blur_x in its registers

    pt.on("blur_y")...block("y_o", "x_o")                  pt.on("blur_y")...block("y_o", "x_o")
        .thread("y_i", "x_i")                                  .thread("y_t", "x_t").unroll("y_p")
    pt.on("blur_x").compute_at("blur_y", "x_o")            pt.on("blur_x").compute_at("blur_y", "x_t")
        .thread("y", "x")                                      .store_in("register").unroll("y").unroll("x")

Adjacent points share loads and index arithmetic. Each member of a group is computed in one of these places:

| place | computed by | what it costs |
| --- | --- | --- |
| thread | each thread, in its registers | adjacent threads both compute the values between them |
| block | all threads, in shared memory, each several rows of a column | barriers and passes over the banks |
| lane | the lanes of a warp that marches down rows, in their registers | shuffles; the outer lanes have no output |
| inline | whoever reads it | a value is computed again for each read |
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import prod

from ...dataclass import cached_property, dataclass
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.gpu_updates import is_pointwise, pointwise_update
from ...schedule.names import fresh
from ...schedule.schedule import Schedule
from ...schedule.updates import constant
from ...target.gpu import MOST_THREADS, WARP_SIZE
from ..common.footprint import boxes
from ..common.gpu_marking import GpuMarking
from ..common.tiles import reads_halves
from ..strategy import Problem
from .groups import StageGroup

MOST_OPERATIONS = 1500  # of a thread, whose points are unrolled
FEWEST_THREADS = 64  # of a block
MOST_RECOMPUTED = 96  # operations for one point
MOST_INNER = 8  # indices of an inner dim, such as channels, that are unrolled
MOST_COLUMNS = 2  # of a thread that stores vectors; LLVM makes long code of wider ones whose elements are narrow
MOST_ROWS = 8  # of a stage in shared memory that one thread computes
THREAD, BLOCK, LANE, INLINE = "thread", "block", "lane", "inline"
Size = tuple[int, int]  # rows, columns


@dataclass(frozen=True)
class ThreadTile:
    """The threads of a block, the points of each thread, and the places of the members, in their order."""

    threads: Size
    points: Size
    places: tuple[str, ...]

    @property
    def in_lanes(self) -> bool:
        return LANE in self.places

    def __str__(self) -> str:
        return " x ".join(map(str, self.points)) + " points per thread" + ", in lanes" * self.in_lanes


@dataclass(frozen=True, eq=False)
class Kernel:
    """A group of stages whose output has rows and columns that can be cut into tiles."""

    problem: Problem
    group: StageGroup

    @cached_property
    def output(self) -> Stage:
        return self.problem.graph.stage[self.group.output]

    @cached_property
    def members(self) -> list[Stage]:
        return [self.problem.graph.stage[name] for name in self.group.members]

    @property
    def has_tiles(self) -> bool:
        """Whether the points of the output can be distributed over threads in any way."""
        row = len(self.output.dims) + self.problem.row(self.output.name)
        if row < 1 or self.output.updates or not all(map(_is_pointwise, self.members)):
            return False
        is_whole = {self.output.name, *self.group.members} <= self._left.graph.stage.keys()
        return is_whole and set(self.dims) <= set(self.problem.facts.tileable(self.output.name))

    @cached_property
    def dims(self) -> tuple[str, str]:
        """The dim that counts rows, and the one that counts columns."""
        row = self.problem.row(self.output.name)
        return self.output.dims[row - 1], self.output.dims[row]

    @cached_property
    def planes(self) -> list[str]:
        """The dims outside of rows that all members have: each block computes one index of them."""
        before = self.output.dims[: self.output.dims.index(self.dims[0])]
        return [d for d in before if all(d in s.dims for s in self.members)]

    @cached_property
    def inner(self) -> list[str]:
        """The other dims, such as channels: each thread computes all of them."""
        return [d for d in self.output.dims if d not in (*self.dims, *self.planes)]

    @cached_property
    def row_loops(self) -> dict[str, str]:
        """The names of the loops that rows and columns are split into, by what they iterate over."""
        y, x = self.dims
        wanted = {"block_y": y + "_o", "thread_y": y + "_t", "row": y + "_p"}
        wanted |= {"block_x": x + "_o", "thread_x": x + "_t", "column": x + "_p"}
        taken, names = set(self.output.dims), dict[str, str]()
        for loop, name in wanted.items():
            names[loop] = fresh(name, taken.__contains__)
            taken.add(names[loop])
        return names

    @property
    def kind(self) -> Hashable:
        """What kernels have in common that are alike: the levels of a pyramid, or the steps of an iteration."""
        stages = (*self.members, self.output)
        return tuple(
            (s.dims, s.dtypes, self._once(s), tuple(self.problem.facts.reads(s.name).values())) for s in stages
        )

    # ---- candidates

    def starts(self) -> Iterator[ThreadTile]:
        """The tiles that a search begins with."""
        one = self.needed((1, 1))
        places = tuple(THREAD if prod(one[s.name]) == 1 else BLOCK for s in self.members)
        yield ThreadTile((8, 32), (4, 2), places)
        if BLOCK in places:
            yield ThreadTile((2, 64), (8, 2), (THREAD,) * len(places))
            if all(self.dims[1] in s.dims for s in self.members) and self.halo < WARP_SIZE // 2:
                yield ThreadTile((1, 128), (8, 1), (LANE,) * len(places))

    def in_blocks(self) -> ThreadTile:
        """A tile of one point per thread, whose members are in shared memory, except for parts of the next member, such
        as the rows of a separable filter."""
        inlined: set[str] = set()
        graph = self._left.graph
        for s in self.members:
            reads = self._left.facts.reads(s.name)
            is_part = len(graph.consumers[s.name]) == 1 and self._left.facts.can_be_inlined(s.name)
            if is_part and self._is_cheap(s) and inlined.isdisjoint(reads):
                inlined.add(s.name)
        places = tuple(INLINE if s.name in inlined else BLOCK for s in self.members)
        return ThreadTile((16, 16), (1, 1), places)

    def moves(self, tile: ThreadTile) -> Iterator[tuple[object, ThreadTile]]:
        """Tiles that differ in one size or in the place of one member, each with the kind of change."""
        for k, s in enumerate(self.members if not tile.in_lanes else ()):
            if tile.places[k] != INLINE and self._left.facts.can_be_inlined(s.name) and self._is_cheap(s):
                yield (k, INLINE), replace(tile, places=(*tile.places[:k], INLINE, *tile.places[k + 1 :]))
        (rows, columns), (y, x) = tile.points, tile.threads
        points = {"more rows": (2 * rows, columns), "fewer rows": (rows // 2, columns)}
        threads = {"wider blocks": (y, 2 * x)}
        if not tile.in_lanes:
            points["fewer columns"] = (rows, columns // 2)
            if columns < MOST_COLUMNS or THREAD in tile.places:
                points["more columns"] = (rows, 2 * columns)
            threads = {"taller blocks": (2 * y, x)}
        yield from ((kind, replace(tile, points=size)) for kind, size in points.items() if min(size) >= 1)
        for kind, size in threads.items():
            if FEWEST_THREADS <= prod(size) <= MOST_THREADS:
                yield kind, replace(tile, threads=size)

    def _is_cheap(self, stage: Stage) -> bool:
        """Whether a stage may be computed again for each read."""
        facts = self._left.facts
        consumers = [
            (c, k) for c in facts.consumers[stage.name] for k, _ in enumerate(self._left.graph.stage[c].definitions)
        ]
        reads = sum(facts.reads(c, k).get(stage.name, 0) for c, k in consumers)
        return self._once(stage) * (reads - 1) <= MOST_RECOMPUTED

    def operations(self, tile: ThreadTile) -> float:
        """The operations of one thread, which are all written out, without those for members in shared memory."""
        own = [self.output, *(s for s, p in zip(self.members, tile.places, strict=True) if p in (THREAD, LANE))]
        needed = self.needed((tile.points[0], 1) if tile.in_lanes else tile.points)
        return sum(self._once(s) * prod(needed[s.name]) for s in own)

    def _once(self, stage: Stage) -> float:
        """The operations of one point of a stage."""
        facts = self._left.facts
        loops = [prod(facts.loops(stage.name, k)[r.name] for r in d.domain) for k, d in enumerate(stage.definitions)]
        return sum(facts.arithmetic(stage.name, k) * n for k, n in enumerate(loops))

    @cached_property
    def halo(self) -> int:
        """The columns that the widest member has beyond those of the output."""
        wide = self.needed((1, WARP_SIZE))
        return max(wide[s.name][s.dims.index(self.dims[1])] for s in self.members) - WARP_SIZE

    @cached_property
    def _left(self) -> Problem:
        """The problem without the stages that are inlined into those of the kernel."""
        return self.problem.inlined(self.group.inlined)

    def needed(self, points: Size) -> dict[str, tuple[int, ...]]:
        """The extents of the boxes that these points of the output require of it and of each member."""
        names = (*self.group.members, self.output.name)
        found = boxes(self._left.facts, names, self.output.name, dict(zip(self.dims, points, strict=True)))
        return {name: tuple(int(r.high - r.low) + 1 for r in found[name]) for name in names}


def scheduled(kernel: Kernel, schedule: Schedule, tile: ThreadTile) -> Schedule:
    """The schedule with another thread tile for one kernel."""
    chains = [_member(kernel, tile, stage, place) for stage, place in zip(kernel.members, tile.places, strict=True)]
    chains += [on(name).compute_inline() for name in kernel.group.inlined]
    output = kernel.problem.alone.stored(kernel.output, on(kernel.output.name).compute_root())
    output = (_in_lanes if tile.in_lanes else _in_threads)(kernel, tile, output)
    extents = dict(zip(kernel.output.dims, kernel.problem.facts.extents(kernel.output.name), strict=True))
    for loop in kernel.inner:
        output = output.unroll(loop, extents[loop]) if 1 < extents[loop] <= MOST_INNER else output
    return schedule.replace(*chains, output)


def _in_threads(kernel: Kernel, tile: ThreadTile, chain: StageSchedule) -> StageSchedule:
    """The output, as blocks of threads that each compute adjacent points."""
    names, order = kernel.row_loops, list[list[str]]()
    halves = any(map(reads_halves, (*kernel.members, kernel.output)))
    for d, axis, own, k in zip(kernel.dims, "yx", ("row", "column"), range(2), strict=True):
        block, thread = names["block_" + axis], names["thread_" + axis]
        tail = "guard" if halves and k else "auto"
        chain = chain.split(d, block, thread, tile.threads[k] * tile.points[k], tail=tail)
        if tile.points[k] > 1:
            chain = chain.split(thread, thread, names[own], tile.points[k])
        order.append([block, thread, *[names[own]] * (tile.points[k] > 1)])
    (block_y, thread_y, *rows), (block_x, thread_x, *columns) = order
    blocks, threads = (*kernel.planes, block_y, block_x), (thread_y, thread_x)
    chain = chain.reorder(*blocks, *threads, *rows, *kernel.inner, *columns).block(*blocks).thread(*threads)
    for loop in rows:
        chain = chain.unroll(loop)
    in_registers = THREAD in tile.places
    for loop in columns:
        chain = chain.unroll(loop) if in_registers else chain.vectorize(loop)
    return chain


def _in_lanes(kernel: Kernel, tile: ThreadTile, chain: StageSchedule) -> StageSchedule:
    """The output, as warps side by side that march down rows, with lanes left and right of it for what members need."""
    (y, x), n = kernel.dims, kernel.row_loops
    width, warps = WARP_SIZE - kernel.halo, prod(tile.threads) // WARP_SIZE
    chain = chain.split(y, n["block_y"], n["row"], tile.points[0]).split(x, n["block_x"], n["thread_x"], warps * width)
    chain = chain.split(n["thread_x"], n["thread_x"], n["column"], width)
    blocks = (*kernel.planes, n["block_y"], n["block_x"])
    chain = chain.reorder(*blocks, n["thread_x"], n["row"], *kernel.inner, n["column"])
    return chain.block(*blocks).warp(n["thread_x"]).lane(n["column"]).unroll(n["row"])


def _member(kernel: Kernel, tile: ThreadTile, stage: Stage, place: str) -> StageSchedule:
    """A member of the group in its place."""
    (y, x), n = kernel.dims, kernel.row_loops
    chain, output = on(stage.name), kernel.output.name
    if place == INLINE:
        return chain.compute_inline()
    if place == BLOCK:
        chain = chain.compute_at(output, n["block_x"]).store_in("shared")
        if stage.updates or not {y, x} <= {*stage.dims} or tile.points[0] == 1:
            block = (tile.threads[0] * tile.points[0], tile.threads[1] * tile.points[1])
            extents = dict(zip(stage.dims, kernel.needed(block)[stage.name], strict=True))
            return GpuMarking(kernel.problem).member(stage, chain, extents)
        return _by_columns(chain, stage, y, x, min(tile.points[0], MOST_ROWS))
    at_row = chain.compute_at(output, n["row"]).store_at(output, n["thread_x"])
    chain = at_row if place == LANE else chain.compute_at(output, n["thread_x"]).store_in("register")
    for k, definition in enumerate(stage.definitions):
        chain = chain.update(k - 1) if k else chain
        for d in stage.dims:
            chain = chain.unroll(d) if place == THREAD or d != x else chain.lane(d)
        chain = pointwise_update(chain, stage, definition, stage.dims[-1]) if k else chain
    return chain


def _by_columns(chain: StageSchedule, stage: Stage, y: str, x: str, rows: int) -> StageSchedule:
    """A stage that all threads of a block compute, each of them some rows of a column."""
    threads, row = (fresh(y + suffix, {*stage.dims}.__contains__) for suffix in ("_t", "_p"))
    others = [d for d in stage.dims if d not in (y, x)]
    chain = chain.split(y, threads, row, rows, tail="guard")
    return chain.reorder(*others, threads, x, row).thread(threads, x).unroll(row)


def _is_pointwise(stage: Stage) -> bool:
    """Whether every point of a stage is computed by itself, in code whose length is known."""
    are_short = all(constant(r.extent) is not None for d in stage.updates for r in d.domain)
    return are_short and all(is_pointwise(stage, d) for d in stage.updates)
