"""A register block of sums: its size, the loops around it and inside of it, and their directives.

    for i, j, k: C[i, j] += a[i, k] * b[k, j]    ->    for j by 16, i by 5: for k by 4: 4 times 5 rows of 16 products

A condition such as j <= i becomes a bound of these loops. Blocks that it cuts through lane by lane have code of their
own. They are squares, so that the condition cuts through the fewest blocks, or as wide as others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from ...analysis.loop_bounds import only_bounds
from ...dataclass import cached_property, dataclass
from ...expr.nodes import Expr, Var
from ...expr.visit import loaded, variables
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.stage_default import register_lanes
from ...schedule.sums import power_of_two
from ..common.marking import Marking, unrolled, vector
from ..common.tiles import marking
from ..nest.statement import Reference, Statement
from ..nest.tiled_loops import fresh_name

TERMS = 4  # of a sum that are unrolled: one load brings this many numbers
MOST_ROWS = 12  # of a block
MANY_REGISTERS = 32
NEARLY = 0.75  # of the rows that registers have room for, at least
TASKS = 4  # for each thread
PART = 0.5  # of the L2 cache, for columns of blocks that are computed side by side


@dataclass(frozen=True, eq=False)
class RegisterBlock:
    """A register tile of sums: some rows by one or several vectors. `wide` is read in vectors; along `term`, elements
    of the other factor, `narrow`, are contiguous, or will be once it is transposed. `columns` columns of blocks are
    computed for the same rows, one after the other. `is_square`: nearly as wide as high, because a condition cuts
    through blocks. `is_even`: with fewer rows, so that the rows are a multiple of the height."""

    s: Statement
    wide: Reference
    narrow: Reference
    rows: str
    term: str
    columns: int = 1
    is_square: bool = False
    is_even: bool = False

    @staticmethod
    def of(s: Statement) -> RegisterBlock | None:
        """The block of a statement; None if it is not a sum of products, or if the order of its terms may not
        change."""
        update, domain = s.definition, [r.name for r in s.definition.domain]
        one_value = len(s.stage.dtypes) == 1 and (update.condition is None or only_bounds(update.condition))
        if not domain or not one_value or not is_at(update.indices, s.stage.dims) or not s.is_tileable:
            return None
        if any(loaded(i) for e in update.loads for i in e.indices):  # elements that data select
            return None
        for rows in reversed([d for d in s.stage.dims if d != s.vector and s.extents[d] >= TERMS]):
            vectors = [r for r in s.inputs if s.vector in r.loops]
            wide = [r for r in vectors if rows not in r.loops and not r.loops.isdisjoint(domain)]
            narrow = [r for r in s.inputs if rows in r.loops and s.vector not in r.loops]
            if len(wide) == len(narrow) == 1:
                terms = [n for n in domain if n in narrow[0].loops and s.extents[n] > 1]
                terms.sort(key=lambda n: s.extents[n] < TERMS)
                along = [n for n in terms if n in narrow[0].column] or (terms if rows in narrow[0].column else [])
                if along and (along[0] == domain[-1] or along[0] in s.tileable):
                    return RegisterBlock(s, wide[0], narrow[0], rows, along[0], is_square=s.has_masked_lanes)
        return None

    @property
    def is_transposed(self) -> bool:
        """Whether the other factor is contiguous along rows of the block but not along terms, so that it has to be
        transposed."""
        return self.term not in self.narrow.column

    @property
    def marks(self) -> Marking:
        """The style of marking loops."""
        return marking(self.s.problem)

    # ---- sizes

    @cached_property
    def vector(self) -> int:
        """The lanes of a register."""
        return register_lanes(self.s.stage, self.s.definition, self.s.problem.target)

    @cached_property
    def lanes(self) -> int:
        """The lanes of a row of a block: a cache line, and at least two vectors, or four if there are enough registers:
        the wider a row is, the fewer elements of the other factor are loaded. A square that a condition cuts through
        has two vectors, since its sums are computed one by one there."""
        if self.is_square:
            return min(2 * self.vector, self.s.extents[self.s.vector])
        return min(self._line, self.s.extents[self.s.vector])

    @cached_property
    def _line(self) -> int:
        machine = self.s.problem.cpu
        vectors = 4 if machine.registers >= MANY_REGISTERS else 2
        return max(machine.l1.line // self.s.stage.dtypes[0].bytes, vectors * self.vector)

    @cached_property
    def height(self) -> int:
        """The most rows that leave registers for a row of the wide factor and for its multipliers: one vector per row
        if instructions multiply by a lane of a vector, and one register if not."""
        machine, vectors = self.s.problem.cpu, -(-self.lanes // self.vector)
        by_lane = machine.target.multiplies_by_lane
        most = (machine.registers - vectors - (not by_lane)) // (vectors + by_lane)
        most = max(1, min(most, MOST_ROWS, self.s.extents[self.rows]))
        if self.is_even:
            return max(n for n in range(1, most + 1) if self.s.extents[self.rows] % n == 0)
        return power_of_two(min(most, self.lanes)) if self.s.has_masked_lanes else most

    @property
    def terms(self) -> int:
        """The number of terms that are unrolled: all of them if there are few, such as the channels of a picture."""
        return min(TERMS, self.s.extents[self.term])

    def shapes(self) -> Iterator[RegisterBlock]:
        """Yield this block, and a wider one if it is a square, or a slightly lower one that divides the rows evenly."""
        yield self
        even = replace(self, is_even=True)
        if self.is_square:
            yield replace(self, is_square=False)
        elif not self.s.has_masked_lanes and NEARLY * self.height <= even.height < self.height:
            yield even

    def side_by_side(self) -> Iterator[RegisterBlock]:
        """Yield this block with as many columns as the L2 cache has room for, if it has room for several."""
        terms = prod(self.s.extents[r.name] for r in self.s.definition.domain if r.name in self.wide.loops)
        wide = self.lanes if self.column == self.loops[self.s.vector][0] else self.s.extents[self.s.vector]
        room = PART * self.s.problem.cpu.l2.size / (terms * wide * self.wide.bytes)
        columns = int(min(room, self._count(self.column) / 2))
        if columns > 1:
            yield replace(self, columns=power_of_two(columns))

    # ---- loops

    @cached_property
    def column(self) -> str:
        """The loop over columns of blocks, before it is split for columns that are side by side."""
        moved = [d for d in self.s.stage.dims if d in self.wide.loops and d not in (self.s.vector, self.rows)]
        return moved[-1] if self.s.extents[self.s.vector] <= self._line and moved else self.loops[self.s.vector][0]

    def _count(self, loop: str) -> int:
        """The trip count of a loop around blocks."""
        cut = {self.s.vector: self.lanes, self.rows: self.height}
        sizes = {self.loops[n][0]: -(-self.s.extents[n] // size) for n, size in cut.items()}
        if self.columns > 1 and loop in self.column_loops:
            blocks = sizes.get(self.column) or self.s.extents[self.column]
            return -(-blocks // self.columns) if loop == self.column_loops[0] else self.columns
        return sizes.get(loop) or self.s.extents[loop]

    @cached_property
    def column_loops(self) -> tuple[str, str]:
        """The two loops that the loop over columns is split into, if some columns are side by side."""
        taken = {*self.s.extents, *(n for pair in self.loops.values() for n in pair)}
        return fresh_name(self.column, "_b", taken), fresh_name(self.column, "_c", taken)

    @cached_property
    def loops(self) -> dict[str, tuple[str, str]]:
        """The two loops that each loop is split into which is cut into blocks, here and in what reads the sums."""
        graph = self.s.problem.graph
        readers = [graph.stage[name] for name in graph.consumers[self.s.stage.name]]
        taken = {*self.s.extents, *(d for stage in (self.s.stage, *readers) for d in stage.dims)}
        names = {}
        for loop in (self.s.vector, self.rows, self.term):
            names[loop] = (fresh_name(loop, "_o", taken), fresh_name(loop, "_i", taken))
        return names

    def _outer_loops(self) -> list[str]:
        """The loops around a block; those that move the wide factor are outermost."""
        pure = [d for d in self.s.stage.dims if d not in (self.s.vector, self.rows)]
        moved = [d for d in pure if d in self.wide.loops]
        rest = [*(d for d in pure if d not in moved), self.loops[self.rows][0]]
        columns = [*moved, self.loops[self.s.vector][0]]
        if self.columns == 1:
            return [*columns, *rest]
        at = columns.index(self.column)
        return [*columns[:at], self.column_loops[0], *rest, self.column_loops[1], *columns[at + 1 :]]

    @property
    def home(self) -> str:
        """The loop at which the wide factor is copied."""
        return self.loops[self.s.vector][0] if self.columns == 1 else self.column_loops[0]

    def _term_loops(self) -> list[str]:
        """The loops over terms."""
        domain = [r.name for r in self.s.definition.domain if r.name != self.term]
        return [*domain, *self.loops[self.term]]

    def _shared(self) -> Iterator[str]:
        """Yield the fewest outermost loops that give each thread several tasks."""
        tasks = 1
        for name in self._outer_loops():
            if tasks < TASKS * self.s.problem.cpu.threads:
                tasks *= self._count(name)
                yield name

    def _split_blocks(self, chain: StageSchedule, vector: str, rows: str) -> StageSchedule:
        """Split a definition's loops along the columns and rows into blocks."""
        chain = chain.split(vector, *self.loops[self.s.vector], self.lanes)
        return chain.split(rows, *self.loops[self.rows], self.height)

    # ---- directives

    def alone(self, start: StageSchedule) -> StageSchedule:
        """The sums in loops of their own, after the pure definition."""
        row, lane = self.loops[self.rows][1], self.loops[self.s.vector][1]
        chain = self._split_blocks(start.update(0), self.s.vector, self.rows)
        chain = chain.split(self.term, *self.loops[self.term], self.terms)
        chain = chain.split(self.column, *self.column_loops, self.columns) if self.columns > 1 else chain
        order = [*self._outer_loops(), *self._term_loops(), row, lane]
        block = (vector(lane), unrolled(row), unrolled(self.loops[self.term][1]))
        return self.marks.nest(self._partition(self.marks.nest(chain, block, order)), shared=[*self._shared()])

    def _partition(self, chain: StageSchedule) -> StageSchedule:
        """Partition loops, to have separate code for blocks that a condition cuts through. The partitioned loop is the
        last one around blocks that the condition depends on and that has several iterations."""
        if not self.s.has_masked_lanes or self.s.definition.condition is None:
            return chain
        dims = {name: dim for dim, pair in self.loops.items() for name in pair}
        dims |= {name: dims.get(self.column, self.column) for name in self.column_loops}
        decides = variables(self.s.definition.condition)
        whole = self.loops[self.s.vector][0] if self.lanes >= self.s.extents[self.s.vector] else None
        return chain.partition(
            [n for n in self._outer_loops() if n != whole and dims.get(n, n) in decides][-1], "always"
        )

    def inside(self, reader: Stage) -> Iterator[StageSchedule]:
        """Yield the schedule of the reader, which goes block by block, and that of the sums inside of its loops."""
        s, names = self.s, dict(zip(self.s.stage.dims, reader.dims, strict=True))
        row, lane = self.loops[self.rows][1], self.loops[s.vector][1]
        around = [names.get(n, n) for n in self._outer_loops()]
        chain = self._split_blocks(on(reader.name).compute_root(), names[s.vector], names[self.rows])
        shared = [names.get(n, n) for n in self._shared()]
        yield self.marks.nest(chain, (vector(lane), unrolled(row)), [*around, row, lane], shared)
        block = (vector(s.vector, self.lanes), unrolled(self.rows, self.height))
        sums = self.marks.nest(on(s.stage.name).compute_at(reader.name, around[-1]), block).update(0)
        sums = sums.split(self.term, *self.loops[self.term], self.terms)
        others = [d for d in s.stage.dims if d not in (s.vector, self.rows)]
        sums = sums.reorder(*self._term_loops(), *others, self.rows, s.vector)
        yield self.marks.nest(sums, (*block, unrolled(self.loops[self.term][1])))


def is_at(indices: Sequence[Expr], dims: Sequence[str]) -> bool:
    """Whether indices are the coordinates of the point that is computed."""
    return [isinstance(i, Var) and i.name for i in indices] == [*dims]
