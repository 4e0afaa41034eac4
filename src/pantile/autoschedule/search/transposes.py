"""Transposes: a stage that reads the columns of a picture as its rows is computed by tiles, each of which is copied
first.

    out[y, x] = img[x, y] & mask[y, x]

    pt.on("img").copy_in("out", "img_rows", "x_c", "y_c")
    pt.on("img_rows").compute_at("out", "x_o").vectorize("y_c", 16).prefetch("img", "x_c", 8)
    pt.on("out").compute_root().split("y", "y_o", "y_i", 64).split("x", "x_o", "x_i", 64).unroll("y_i", 4)
        .vectorize("x_i", 16).reorder("y_o", "x_o", "y_i", "x_i", "y_i_u", "x_i_v").parallel("y_o")
        .prefetch("mask", "x_o", 1)

The copy goes along the rows of the picture, which are too short within a tile for the hardware prefetcher, so the
schedule prefetches them. Squares of the copy are transposed in registers. The cost model ignores how much this saves:
each row of the picture, and of the stage, is on pages of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt, prod

from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.schedule import Schedule, is_inlined
from ...schedule.sums import power_of_two
from ..common.marking import unrolled, vector
from ..common.tiles import marking
from ..nest.statement import Reference, Statement, is_transposed
from ..nest.tiled_loops import fresh_name
from ..strategy import Problem
from .groups import groups

PART = 0.5  # of the L1 cache, for a tile
MOST_ROWS = 16  # of a picture that are transposed together
AHEAD = 2048  # the prefetch distance in bytes of a picture


def by_copies(problem: Problem, schedule: Schedule, name: str) -> Schedule | None:
    """Return the schedule with such a stage in tiles, if it is computed by itself, from a picture larger than the L2
    cache."""
    stage = problem.graph.stage[name]
    alone = any(g.output == name and not g.members for g in groups(problem.graph, schedule))
    if not alone or stage.updates or not problem.facts.is_limited(name):
        return None
    s = Statement.of(problem, stage, 0)
    turned = [r for r in s.inputs if is_transposed(r, s.output)]
    if s.column is None or len(turned) != 1 or not _is_moved_by_each(s, turned[0]):
        return None
    tile = _TransposeTile(problem, s, turned[0])
    return tile.schedule(schedule) if tile.is_far and tile.can_be_copied(schedule) else None


def _is_moved_by_each(s: Statement, r: Reference) -> bool:
    """Whether each dim of what is read moves with one dim of what is computed, by one element per iteration."""
    return all(len(steps) == 1 and steps[0][1] == 1 for steps in r.indices) and len(r.loops) == len(s.stage.dims)


class _TransposeTile:
    """A tile of a stage that reads the columns of something as its rows: `high` rows, `wide` columns."""

    def __init__(self, problem: Problem, s: Statement, read: Reference) -> None:
        self.problem, self.s, self.read = problem, s, read
        (self.y,) = read.column
        self.bytes = max(read.bytes, s.output.bytes)
        others = [r for r in s.inputs if r is not read and r.column]
        area = int(PART * problem.cpu.l1.size / self.bytes / (2 if others else 1))
        self.wide = power_of_two(isqrt(area if others else area // 2))
        self.high = area // self.wide

    @property
    def is_far(self) -> bool:
        """Whether the picture exceeds the L2 cache, and has several tiles in both directions."""
        extents = self.s.extents
        several = extents[self.y] > self.high and extents[self.s.vector] > self.wide
        return several and prod(extents.values()) * self.read.bytes > self.problem.cpu.l2.size

    def can_be_copied(self, schedule: Schedule) -> bool:
        """Whether the picture is stored, or is computed only for this stage."""
        source = self.problem.graph.producer.get(self.read.array)
        return source is None or not is_inlined(schedule.on(source.name)) or self._is_for_this(source)

    def _is_for_this(self, source: Stage) -> bool:
        return self.problem.graph.consumers[source.name] == (self.s.stage.name,) and len(source.dtypes) == 1

    def schedule(self, schedule: Schedule) -> Schedule:
        """Return the schedule with tiles, and the copy."""
        graph, name, stage = self.problem.graph, self.s.stage.name, self.s.stage
        x, taken = self.s.vector, {*stage.dims}
        y_o, y_i, x_o, x_i = (fresh_name(d, suffix, taken) for d in (self.y, x) for suffix in ("_o", "_i"))
        planes = [d for d in stage.dims if d not in (self.y, x)]
        out = on(name).compute_root().split(self.y, y_o, y_i, self.high).split(x, x_o, x_i, self.wide)
        square = (unrolled(y_i, self.s.lanes), vector(x_i, min(self._line, MOST_ROWS)))
        order = [*planes, y_o, x_o, y_i, x_i, *(s.part for s in square)]
        out = marking(self.problem).nest(out, square, order, [*planes, y_o])
        for buffer in self._stored_reads(schedule, stage, stage.dims):
            out = out.prefetch(buffer, x_o, 1)
        source = graph.producer.get(self.read.array)
        if source is not None and is_inlined(schedule.on(source.name)):
            rows = on(source.name).compute_at(name, x_o)
            reads = [*self._stored_reads(schedule, source, source.dims)]
            return schedule.replace(out, self._row_by_row(rows, source.dims, reads))
        taken |= {*graph.stage, *graph.input, *schedule}
        copy = fresh_name(self.read.array, "_rows", taken)
        dims = [fresh_name(steps[0][0], "_c", taken) for steps in self.read.indices]
        copied = schedule.on(self.read.array).copy_in(name, copy, *dims)
        rows = on(copy).compute_at(name, x_o)
        return schedule.replace(out, copied, self._row_by_row(rows, dims, [self.read.array]))

    @property
    def _line(self) -> int:
        """The number of elements of a cache line."""
        return max(self.s.lanes, self.problem.cpu.l1.line // self.bytes)

    def _row_by_row(self, chain: StageSchedule, dims: tuple[str, ...] | list[str], reads: list[str]) -> StageSchedule:
        chain = marking(self.problem).nest(chain, [vector(dims[-1], self._line)])
        for buffer in reads:
            chain = chain.prefetch(buffer, dims[-2], max(1, AHEAD // (self.high * self.bytes)))
        return chain

    def _stored_reads(self, schedule: Schedule, stage: Stage, dims: tuple[str, ...]) -> Iterator[str]:
        """The buffers that a stage reads along its own rows, if they are stored as a whole."""
        for r in Statement.of(self.problem, stage, 0).inputs:
            source = self.problem.graph.producer.get(r.array)
            stored = source is None or "compute_root" in schedule.on(source.name).verbs
            if stored and r.column == {dims[-1]}:
                yield r.array
