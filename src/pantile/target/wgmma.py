"""The matrix instructions of warpgroups: PTX's `wgmma.mma_async`, with which four warps compute d = a @ b + c.

    a    64 rows, `terms` columns            in shared memory, as core matrices (`CoreMatrices`)
    b    `terms` rows, `columns` columns     likewise
    c, d 64 rows, `columns` columns          in registers: each warp holds 16 rows, as fragments of `target.mma`

Only GPUs of compute capability 9.0 have them; later ones do not.
"""

from __future__ import annotations

import re
from functools import cache

from ..dataclass import value
from .layout import Digit, Layout, Unit
from .mma import COLUMN_LANES, PACKED, ROW_LANES
from .mma import COLUMNS as COLUMN_STEP
from .mma import ROWS as ROWS_OF_WARP

CAPABILITY = (9, 0)
WARPS = 4  # of a warpgroup; the number of its first warp is a multiple of this
COLUMNS = range(3 * COLUMN_STEP, 256 + 1, COLUMN_STEP)  # of b and c; for fewer, one warp's instructions (`target.mma`)
STEP = 16  # terms of an instruction
MOST_STEPS = 8  # consecutive instructions
ROWS = WARPS * ROWS_OF_WARP
OPERANDS = {("float16", "float32"): "f32.f16.f16", ("bfloat16", "float32"): "f32.bf16.bf16"}
CORE = 8  # rows of a core matrix, and 16-bit elements in each of them: 16 bytes
_NAME = re.compile(rf"wgmma\.m{ROWS}n(\d+)k(\d+)\.(\w+)\.(\w+)")


@value()
class Wgmma:
    """Consecutive instructions that compute one product, identified by the types of operands and accumulator, and by
    sizes."""

    operand: str
    accumulator: str
    columns: int
    terms: int

    @property
    def name(self) -> str:
        return f"wgmma.m{ROWS}n{self.columns}k{self.terms}.{self.operand}.{self.accumulator}"

    @property
    def types(self) -> str:
        """The types of the accumulator, `a` and `b`, as PTX writes them."""
        return OPERANDS[self.operand, self.accumulator]

    @property
    def registers(self) -> int:
        """The number of elements of `c` that a thread holds."""
        return self.c.count(Unit.REGISTER)

    @property
    def c(self) -> Layout:
        """The layout of `c` and `d` over the threads of the warpgroup: rows, then columns."""
        rows, columns = self.fragment.dims
        return Layout(((*rows, Digit(WARPS, Unit.THREAD, ROW_LANES.size * ROW_LANES.weight)), columns))

    @property
    def fragment(self) -> Layout:
        """The layout of a warp's 16 rows of `c` and `d` over its lanes: rows, then columns."""
        rows = (ROW_LANES, Digit(2, Unit.REGISTER, PACKED))
        several = Digit(self.columns // COLUMN_STEP, Unit.REGISTER, 2 * PACKED)
        return Layout((rows, (Digit(PACKED, Unit.REGISTER), COLUMN_LANES, several)))


@cache
def wgmma(operand: str, accumulator: str, columns: int, terms: int) -> Wgmma | None:
    """The instructions with these types and sizes, or None if there are none."""
    is_known = (operand, accumulator) in OPERANDS and columns in COLUMNS
    is_whole = terms % STEP == 0 and 0 < terms <= MOST_STEPS * STEP
    return Wgmma(operand, accumulator, columns, terms) if is_known and is_whole else None


def named_wgmma(name: str) -> Wgmma | None:
    """The instructions with this name, or None if there are none."""
    parts = _NAME.fullmatch(name)
    return wgmma(parts[3], parts[4], int(parts[1]), int(parts[2])) if parts else None


@value()
class CoreMatrices:
    """The layout of a matrix of 16-bit elements in shared memory. It consists of core matrices, each of which has 8
    rows of 16 bytes in 128 contiguous bytes. Distances are in elements.

    The rows of a core matrix are rows of `a` or columns of `b`, and the elements of a row are terms. If `transposed`,
    it is the other way round.
    """

    rows_apart: int  # distance from 8 rows of `a`, or columns of `b`, to the next 8: a descriptor's stride offset
    terms_apart: int  # distance from 8 terms to the next 8: a descriptor's leading offset
    transposed: bool

    def offset(self, row: int, term: int) -> int:
        """The distance of an element from the first element."""
        row_step, term_step = (1, CORE) if self.transposed else (CORE, 1)
        inside = row % CORE * row_step + term % CORE * term_step
        return inside + row // CORE * self.rows_apart + term // CORE * self.terms_apart
