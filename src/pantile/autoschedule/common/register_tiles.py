"""Sums of products on a GPU: each thread keeps a tile of them in registers while it adds their terms.

    out[i, j] += a[i, k] * b[k, j]     block for ib, jb: thread for it, jt:  8 x 4 sums, of which each term
                                           for k:                            multiplies 8 of a by 4 of b

What does not depend on the column, `a`, is loaded once for all columns of a thread; what does not depend on the row,
`b`, is loaded once for all of its rows. Threads load both through the L1 cache of their multiprocessor, where
neighbouring threads find them.
"""

from __future__ import annotations

from math import prod

from ...dataclass import dataclass
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.names import fresh
from ...schedule.updates import constant, loop_names
from ...target.gpu import WARP_SIZE
from ..strategy import Problem
from .marking import Part
from .sum_of_products import SumOfProducts

ROWS, COLUMNS = 8, 4  # the sums of a thread
ROWS_OF_THREADS = 8  # at most; a row of threads is a warp
TERMS = 4  # that are unrolled


@dataclass(frozen=True)
class RegisterTile:
    """A stage that is a sum of products, and the dims of the tile: its columns are the contiguous dim."""

    stage: Stage
    row: str
    column: str

    @staticmethod
    def of(problem: Problem, stage: Stage) -> RegisterTile | None:
        """The tile of a stage whose factors are used again along two dims, if both are long enough; None if not."""
        found = SumOfProducts.of(problem, stage, ROWS, COLUMNS * WARP_SIZE)
        return None if found is None else RegisterTile(stage, found.row, found.column)

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
        """Schedule all terms of a thread's sums, some iterations of the last reduction loop at a time."""
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
        """The most rows of threads that leave two blocks for each multiprocessor."""
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
