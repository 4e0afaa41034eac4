"""Sums of products, such as those of matrices and of convolutions, in blocks that registers hold.

    C[i, j] += a[i, k] * b[k, j]

    pt.on("C")...update(0).split("j", "j_o", "j_i", 16).split("i", "i_o", "i_i", 5).split("k", "k_o", "k_i", 4)
        .reorder("j_o", "i_o", "k_o", "k_i", "i_i", "j_i").vectorize("j_i").unroll("i_i").unroll("k_i").parallel("j_o")
    pt.on("b").copy_in("C", "b_near", "k_n", "j_n")
    pt.on("b_near").compute_at("C", "j_o").vectorize("j_n", 16)

One factor is read in vectors, the same ones for all rows of a block (`wide`); of the other one, each row reads one
number at a time. The wide factor is copied for a column of blocks, or some, in the order of its use, so that the caches
send it ahead while products are summed. A stage that is computed of the sums value by value may go around the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from ...cached import cached_property
from ...dataclass import dataclass
from ...expr.nodes import Expr, Var
from ...expr.visit import loaded
from ...graph.nodes import Stage
from ...schedule.clones import place_of
from ...schedule.directives import SUFFIX, StageSchedule, on
from ...schedule.names import fresh
from ...schedule.schedule import Schedule
from ...schedule.sums import power_of_two
from ..nest.references import Reference, reference
from ..nest.statement import Statement
from ..strategy import Problem

TERMS = 4  # of a sum that are written out: one load brings as many numbers
MOST_ROWS = 12  # of a block
MANY_REGISTERS = 32
TASKS = 4  # for each thread
PART = 0.5  # of the second cache, for columns that are gone through side by side


def sums(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """The schedule with a sum in blocks, if the stage is one of products, by itself and around its only reader."""
    stage = problem.graph.stage[name]
    block = _Block.of(Statement.of(problem, stage, 1)) if len(stage.updates) == 1 else None
    if block is not None:
        for b in (block, *block.side_by_side()):
            yield schedule.replace(b.alone(_start(problem, stage, schedule)), *b.near(schedule, stage.name))
        reader = _value_by_value(problem, stage)
        if reader is not None:
            yield schedule.replace(*block.inside(reader), *block.near(schedule, reader.name))


def _start(problem: Problem, stage: Stage, schedule: Schedule) -> StageSchedule:
    """What a stage starts from, at root: as it does there now, if it is there."""
    chain = schedule.on(stage.name)
    if "compute_root" not in chain.verbs:
        return problem.alone.marked(stage, stage.pure, on(stage.name).compute_root())
    return chain.without_updates()


def _value_by_value(problem: Problem, stage: Stage) -> Stage | None:
    """The only reader of a stage, if each of its values is computed of one of the stage, at the same place."""
    readers = problem.graph.consumers[stage.name]
    reader = problem.graph.stage[readers[0]] if len(readers) == 1 else None
    if reader is None or reader.updates or reader.ndim != stage.ndim:
        return None
    loads = [e for e in reader.pure.loads if e.buffer in stage.buffers]
    return reader if all(is_at(e.indices, reader.dims) for e in loads) else None


def is_at(indices: Sequence[Expr], dims: Sequence[str]) -> bool:
    """Whether a place is that of the point which is computed."""
    return [isinstance(i, Var) and i.name for i in indices] == [*dims]


@dataclass(frozen=True, eq=False)
class _Block:
    """Of sums: so many rows by a vector, or several. `wide` is read in vectors; along `term`, numbers of the other
    factor lie side by side. So many `columns` of blocks are computed for the same rows, one after the other."""

    s: Statement
    wide: Reference
    rows: str
    term: str
    columns: int = 1

    @staticmethod
    def of(s: Statement) -> _Block | None:
        """None if the statement is no sum of products, or one whose order may not change."""
        update, domain = s.definition, [r.name for r in s.definition.domain]
        one_value = len(s.stage.dtypes) == 1 and update.condition is None
        if not domain or not one_value or not is_at(update.indices, s.stage.dims) or not s.is_tileable:
            return None
        if any(loaded(i) for e in update.loads for i in e.indices):  # places that data decides
            return None
        for rows in reversed([d for d in s.stage.dims if d != s.vector and s.extents[d] >= TERMS]):
            vectors = [r for r in s.inputs if s.vector in r.loops]
            wide = [r for r in vectors if rows not in r.loops and not r.loops.isdisjoint(domain)]
            narrow = [r for r in s.inputs if rows in r.loops and s.vector not in r.loops]
            if len(wide) == len(narrow) == 1:
                along = [n for n in domain if n in narrow[0].column and s.extents[n] >= TERMS]
                if along and (along[0] == domain[-1] or along[0] in s.tileable):
                    return _Block(s, wide[0], rows, along[0])
        return None

    # ---- sizes

    @cached_property
    def lanes(self) -> int:
        """Of a row of a block: a line of memory, and two vectors at least, or four where there are registers for some
        rows of so many: the wider a row is, the fewer numbers of the other factor are loaded."""
        machine = self.s.problem.machine
        line = machine.l1.line // self.s.stage.dtypes[0].bytes
        vectors = 4 if machine.registers >= MANY_REGISTERS else 2
        return min(max(line, vectors * self.s.lanes), self.s.extents[self.s.vector])

    @cached_property
    def height(self) -> int:
        """As many rows as leave registers for a row of the wide factor and what it is multiplied by: where instructions
        take a lane of a vector, one such vector for each row."""
        machine, vectors = self.s.problem.machine, -(-self.lanes // self.s.lanes)
        by_lane = machine.target.multiplies_by_lane
        most = (machine.registers - vectors - (not by_lane)) // (vectors + by_lane)
        return max(1, min(most, MOST_ROWS, self.s.extents[self.rows]))

    def side_by_side(self) -> Iterator[_Block]:
        """With as many columns as the second cache has room for, if these are several."""
        terms = prod(self.s.extents[r.name] for r in self.s.definition.domain if r.name in self.wide.loops)
        room = PART * self.s.problem.machine.l2.size / (terms * self.lanes * self.wide.bytes)
        columns = int(min(room, self._count(self._column) / 2))
        if columns > 1:
            yield replace(self, columns=power_of_two(columns))

    # ---- loops

    @cached_property
    def _column(self) -> str:
        """The loop over columns of blocks, before some of them are side by side."""
        moved = [d for d in self.s.stage.dims if d in self.wide.loops and d not in (self.s.vector, self.rows)]
        whole = self.s.extents[self.s.vector] <= self.lanes
        return moved[-1] if whole and moved else self._names[self.s.vector][0]

    def _count(self, loop: str) -> int:
        """Iterations of a loop around blocks."""
        cut = {self.s.vector: self.lanes, self.rows: self.height}
        sizes = {self._names[n][0]: -(-self.s.extents[n] // size) for n, size in cut.items()}
        if self.columns > 1 and loop == self._of_columns[0]:
            return -(-self._count(self._column) // self.columns)
        return sizes.get(loop) or self.s.extents[loop]

    @cached_property
    def _of_columns(self) -> tuple[str, str]:
        """The loops that the one over columns becomes, if some are side by side."""
        taken = {*self.s.extents, *(n for pair in self._names.values() for n in pair)}
        return _fresh(self._column, "_b", taken), _fresh(self._column, "_c", taken)

    @cached_property
    def _names(self) -> dict[str, tuple[str, str]]:
        """The two loops that each one becomes that is cut into blocks."""
        taken = {*self.s.extents, *self.s.stage.dims}
        found = {}
        for loop in (self.s.vector, self.rows, self.term):
            found[loop] = (_fresh(loop, "_o", taken), _fresh(loop, "_i", taken))
        return found

    def _around(self) -> list[str]:
        """The loops around a block, those outermost that move the wide factor."""
        pure = [d for d in self.s.stage.dims if d not in (self.s.vector, self.rows)]
        moved = [d for d in pure if d in self.wide.loops]
        rest = [*(d for d in pure if d not in moved), self._names[self.rows][0]]
        columns = [*moved, self._names[self.s.vector][0]]
        if self.columns == 1:
            return [*columns, *rest]
        at = columns.index(self._column)
        return [*columns[:at], self._of_columns[0], *rest, self._of_columns[1], *columns[at + 1 :]]

    @property
    def _home(self) -> str:
        """The loop for which the wide factor is copied."""
        return self._names[self.s.vector][0] if self.columns == 1 else self._of_columns[0]

    def _inside(self) -> list[str]:
        """The loops over terms."""
        domain = [r.name for r in self.s.definition.domain if r.name != self.term]
        return [*domain, *self._names[self.term]]

    def _parallel(self, chain: StageSchedule) -> StageSchedule:
        """The outermost loops, as many as give each thread some tasks."""
        tasks = 1
        for name in self._around():
            if tasks < TASKS * self.s.problem.machine.threads:
                tasks *= self._count(name)
                chain = chain.parallel(name)
        return chain

    def _cut(self, chain: StageSchedule, vector: str, rows: str) -> StageSchedule:
        """A definition's loops along the columns and rows, cut into blocks."""
        chain = chain.split(vector, *self._names[self.s.vector], self.lanes)
        return chain.split(rows, *self._names[self.rows], self.height)

    # ---- directives

    def alone(self, start: StageSchedule) -> StageSchedule:
        """The sums, in loops of their own, after what they start from."""
        row, lane = self._names[self.rows][1], self._names[self.s.vector][1]
        found = self._cut(start.update(0), self.s.vector, self.rows).split(self.term, *self._names[self.term], TERMS)
        found = found.split(self._column, *self._of_columns, self.columns) if self.columns > 1 else found
        found = found.reorder(*self._around(), *self._inside(), row, lane).vectorize(lane).unroll(row)
        return self._parallel(found.unroll(self._names[self.term][1]))

    def inside(self, reader: Stage) -> Iterator[StageSchedule]:
        """The sums around which their reader goes block by block, and that one."""
        s, names = self.s, dict(zip(self.s.stage.dims, reader.dims, strict=True))
        row, lane = self._names[self.rows][1], self._names[s.vector][1]
        around = [names.get(n, n) for n in self._around()]
        chain = self._cut(on(reader.name).compute_root(), names[s.vector], names[self.rows])
        chain = chain.reorder(*around, row, lane).vectorize(lane).unroll(row)
        yield self._parallel(chain)
        found = on(s.stage.name).compute_at(reader.name, around[-1])
        found = found.vectorize(s.vector, self.lanes).unroll(self.rows, self.height).update(0)
        found = found.split(self.term, *self._names[self.term], TERMS)
        others = [d for d in s.stage.dims if d not in (s.vector, self.rows)]
        found = found.reorder(*self._inside(), *others, self.rows, s.vector).vectorize(s.vector, self.lanes)
        yield found.unroll(self.rows, self.height).unroll(self._names[self.term][1])

    def near(self, schedule: Schedule, host: str) -> Iterator[StageSchedule]:
        """The wide factor, copied for a column of blocks."""
        graph = self.s.problem.graph
        sources = {b: s for s in graph.stages for b in s.buffers}
        source, reads = sources.get(self.wide.array), self._reads
        alone = source is not None and not reads and graph.consumers[source.name] == (self.s.stage.name,)
        if source is not None and alone and self._is_near(source):
            yield self._copied(on(source.name), list(source.dims), host)
            return
        taken = {*graph.stage, *graph.input, *schedule, *self.s.extents}
        moved_by = [min((n for n, _ in steps), default="d") for steps in self.wide.indices]
        dims = [_fresh(n, "_n", taken) for n in moved_by]
        name = _fresh(self.wide.array, "_near", taken)
        yield schedule.on(self.wide.array).copy_in(self.s.stage.name, name, *dims, *reads)
        yield self._copied(on(name), dims, host)

    @property
    def _reads(self) -> list[int]:
        """Which reads are of the wide factor, as `copy_in` counts them, if others are of the same array, as those
        of a matrix by its own transpose are."""
        loads = (e for d in self.s.stage.definitions for e in d.loads if e.buffer == self.wide.array)
        is_wide = {place_of(e): reference(e, self.s.extents) == self.wide for e in loads}
        return [] if all(is_wide.values()) else [k for k, wide in enumerate(is_wide.values()) if wide]

    def _is_near(self, source: Stage) -> bool:
        return not source.updates and self.s.problem.facts.can_be_inlined(source.name)

    def _copied(self, chain: StageSchedule, dims: list[str], host: str) -> StageSchedule:
        """The copy, whose dims lie in the order in which the sums go along them."""
        inside = [r.name for r in self.s.definition.domain if r.name != self.term]
        order = [*(d for d in self.s.stage.dims if d != self.s.vector), *inside, self.term, self.s.vector]
        at = {d: max((order.index(n) for n, _ in steps), default=0)
              for d, steps in zip(dims, self.wide.indices, strict=True)}  # fmt: skip
        stored = sorted(dims, key=lambda d: at[d])
        vector, last = stored[-1], dims[-1]
        chain = chain.compute_at(host, self._home)
        if self.columns > 1 and self._column not in self.wide.loops:  # each by itself
            taken = set(dims)
            outer, lane = _fresh(vector, "_b", taken), _fresh(vector, "_l", taken)
            chain = chain.split_storage(vector, outer, lane, self.lanes).reorder_storage(outer, *stored[:-1], lane)
        elif stored != dims:
            chain = chain.reorder_storage(*stored)
        if vector == last:
            chain = chain.vectorize(vector, self.lanes)
            return chain.reorder(*stored, vector + SUFFIX["vectorize"]) if stored != dims else chain
        chain = chain.unroll(last, TERMS).vectorize(vector, self.lanes)  # turned in registers
        return chain.reorder(*stored, last + SUFFIX["unroll"], vector + SUFFIX["vectorize"])


def _fresh(loop: str, suffix: str, taken: set[str]) -> str:
    name = fresh(loop.replace(".", "_") + suffix, taken.__contains__)
    taken.add(name)
    return name
