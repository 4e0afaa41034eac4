"""Sums of products on a GPU: each thread keeps a tile of them in registers while it adds their terms.

    out[i, j] += a[i, k] * b[k, j]     block for ib, jb: thread for it, jt:  8 x 4 sums, of which each term
                                           for k:                            multiplies 8 of a by 4 of b

What does not depend on the column, `a`, is loaded once for all columns of a thread, and what does not depend on the
row, `b`, once for all of its rows. Threads load both through the cache of their multiprocessor, in which their
neighbours find them.
"""

from __future__ import annotations

from math import prod

from ...dataclass import dataclass
from ...expr.visit import names
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.names import fresh
from ...schedule.updates import accumulation, constant, is_independent, loop_names, pure_dims
from ...target.gpu import WARP_SIZE
from ..strategy import Problem
from .marking import Part

ROWS, COLUMNS = 8, 4  # the sums of a thread
ROWS_OF_THREADS = 8  # at most; a row of threads is a warp
TERMS = 4  # that are unrolled
FEWEST_TERMS = 16
MOST_BYTES = 8  # of the values of one point: a thread has 255 registers of 4 bytes


@dataclass(frozen=True)
class RegisterTile:
    """A stage that is a sum of products, and the dims of the tile: its columns are the contiguous dim."""

    stage: Stage
    row: str
    column: str

    @staticmethod
    def of(problem: Problem, stage: Stage) -> RegisterTile | None:
        """The tile of a stage whose terms are used again along two dims, if it is long enough along both."""
        if not _is_sum_at_each_point(stage) or sum(t.bytes for t in stage.dtypes) > MOST_BYTES:
            return None
        extents = dict(zip(stage.dims, problem.facts.extents(stage.name), strict=True))
        *others, column = stage.dims
        loads = [load for load in stage.updates[0].loads if load.buffer not in stage.buffers]
        along = [{name for index in load.indices for name in names(index)} for load in loads]
        rows = [d for d in others if extents[d] >= ROWS and any(column in used and d not in used for used in along)]
        is_row_used_again = extents[column] >= COLUMNS * WARP_SIZE and any(column not in used for used in along)
        return RegisterTile(stage, rows[-1], column) if rows and is_row_used_again else None

    def scheduled(self, problem: Problem) -> Part:
        """The directives of the stage, which stores the tiles, and of its sums."""
        stage, update, row, column = self.stage, self.stage.updates[0], self.row, self.column
        graph = problem.graph
        known = {*graph.stage, *graph.input, *(p.name for p in graph.params)}
        sums = fresh(f"{stage.name}_sums", known.__contains__)
        others = [d for d in stage.dims if d not in (row, column)]
        taken = {*stage.dims, *loop_names(stage, update)}
        rows, columns = (_Split(d, taken) for d in (row, column))
        blocks = [*others, rows.block, columns.block]
        threads = [rows.thread, columns.thread]
        stored = (
            on(stage.name)
            .compute_root()
            .copy_out(sums)
            .split(row, rows.block, rows.tile, ROWS * self._rows_of_threads(problem))
            .split(rows.tile, rows.thread, rows.own, ROWS)
            .split(column, columns.block, columns.tile, COLUMNS * WARP_SIZE)
            .split(columns.tile, columns.thread, columns.own, COLUMNS)
            .reorder(*blocks, *threads, rows.own, columns.own)
            .block(*blocks)
            .thread(*threads)
            .unroll(rows.own)
            .vectorize(columns.own)
        )
        summed = _in_registers(on(sums).compute_at(stage.name, columns.thread).store_in("register"), row, column)
        return stored, self._terms(summed.update(), update, others)

    def _terms(self, chain: StageSchedule, update: Definition, others: list[str]) -> StageSchedule:
        """All terms of a thread's sums, some iterations of the last reduction loop at a time."""
        *outer, last = [r.name for r in update.domain]
        count = constant(update.domain[-1].extent)
        if count is None or count > TERMS:
            taken = {*self.stage.dims, *outer, last}
            outer += [fresh(f"{last}_o".replace(".", "_"), taken.__contains__)]
            step = fresh(f"{last}_i".replace(".", "_"), taken.__contains__)
            chain, last = chain.split(last, outer[-1], step, TERMS), step
        return _in_registers(
            chain.reorder(*others, *outer, last, self.row, self.column).unroll(last), self.row, self.column
        )

    def _rows_of_threads(self, problem: Problem) -> int:
        """As many as leave two blocks for each multiprocessor."""
        extents = problem.facts.extents(self.stage.name)
        size = dict(zip(self.stage.dims, extents, strict=True))
        others = prod(n for d, n in size.items() if d not in (self.row, self.column))
        across = others * -(-size[self.column] // (COLUMNS * WARP_SIZE))
        count = ROWS_OF_THREADS
        while count > 1 and across * -(-size[self.row] // (ROWS * count)) < 2 * problem.gpu.multiprocessors:
            count //= 2
        return count


class _Split:
    """The names of the loops that a dim is split into."""

    def __init__(self, dim: str, taken: set[str]) -> None:
        self.block, self.tile, self.thread, self.own = (
            fresh(dim + s, taken.__contains__) for s in ("_o", "_i", "_t", "_p")
        )
        taken.update((self.block, self.tile, self.thread, self.own))


def _in_registers(chain: StageSchedule, row: str, column: str) -> StageSchedule:
    return chain.unroll(row).vectorize(column)


def _is_sum_at_each_point(stage: Stage) -> bool:
    """Whether a stage is a sum of more than a few terms at every point by itself."""
    if len(stage.updates) != 1 or len(stage.dims) < 2:
        return False
    (update,) = stage.updates
    values, counts = accumulation(stage, update), [constant(r.extent) for r in update.domain]
    if values is None or any(v.op != "add" for v in values) or update.condition is not None or not counts:
        return False
    is_long = None in counts or prod(n or 0 for n in counts) >= FEWEST_TERMS
    return (
        is_long and pure_dims(stage, update) == stage.dims and all(is_independent(stage, update, d) for d in stage.dims)
    )
