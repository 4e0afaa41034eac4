"""The matrix instructions of warpgroups: `wgmma.mma_async` of PTX, by which four warps compute d = a @ b + c.

    a    64 rows, `terms` columns            in shared memory, as core matrices (`CoreMatrices`)
    b    `terms` rows, `columns` columns     likewise
    c, d 64 rows, `columns` columns          in registers: each warp has 16 rows, as fragments of `target.mma`

GPUs of compute capability 9.0 have them, and no others, later ones included.
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
WARPS = 4  # of a warpgroup, of which the first has a number that is a multiple of it
COLUMNS = range(3 * COLUMN_STEP, 256 + 1, COLUMN_STEP)  # of b and c; fewer ones are those of one warp (`target.mma`)
STEP = 16  # terms of an instruction
MOST_STEPS = 8  # instructions in a row
ROWS = WARPS * ROWS_OF_WARP
OPERANDS = {("float16", "float32"): "f32.f16.f16", ("bfloat16", "float32"): "f32.bf16.bf16"}
CORE = 8  # rows of a core matrix, each of as many elements of 16 bits: 16 bytes
_NAME = re.compile(rf"wgmma\.m{ROWS}n(\d+)k(\d+)\.(\w+)\.(\w+)")


@value()
class Wgmma:
    """Instructions in a row, by the types of what they multiply and add up, and the sizes of it."""

    operand: str
    accumulator: str
    columns: int
    terms: int

    @property
    def name(self) -> str:
        return f"wgmma.m{ROWS}n{self.columns}k{self.terms}.{self.operand}.{self.accumulator}"

    @property
    def types(self) -> str:
        """The types as PTX writes them: of sums, `a` and `b`."""
        return OPERANDS[self.operand, self.accumulator]

    @property
    def registers(self) -> int:
        """The elements of `c` that a thread holds."""
        return self.c.count(Unit.REGISTER)

    @property
    def c(self) -> Layout:
        """Which thread of the warpgroup has an element of `c` and `d`: rows, then columns."""
        rows, columns = self.fragment.dims
        return Layout(((*rows, Digit(WARPS, Unit.THREAD, ROW_LANES.size * ROW_LANES.weight)), columns))

    @property
    def fragment(self) -> Layout:
        """Which lane of a warp has an element of its 16 rows of `c` and `d`."""
        rows = (ROW_LANES, Digit(2, Unit.REGISTER, PACKED))
        several = Digit(self.columns // COLUMN_STEP, Unit.REGISTER, 2 * PACKED)
        return Layout((rows, (Digit(PACKED, Unit.REGISTER), COLUMN_LANES, several)))


@cache
def wgmma(operand: str, accumulator: str, columns: int, terms: int) -> Wgmma | None:
    """The instructions of these types and sizes, if there are such."""
    is_known = (operand, accumulator) in OPERANDS and columns in COLUMNS
    is_whole = terms % STEP == 0 and 0 < terms <= MOST_STEPS * STEP
    return Wgmma(operand, accumulator, columns, terms) if is_known and is_whole else None


def named_wgmma(name: str) -> Wgmma | None:
    """The instructions of a name, if there are such."""
    parts = _NAME.fullmatch(name)
    return wgmma(parts[3], parts[4], int(parts[1]), int(parts[2])) if parts else None


@value()
class CoreMatrices:
    """How a matrix of 16-bit elements lies in shared memory: in core matrices of 8 rows of 16 bytes, each of 128
    adjacent bytes. Distances are in elements.

    Rows are those of `a` or columns of `b`, and their elements are terms; or, with `transposed`, the other way round.
    """

    rows_apart: int  # from 8 rows of `a`, or columns of `b`, to the next ones: the stride offset of a descriptor
    terms_apart: int  # from 8 terms to the next ones: its leading offset
    transposed: bool

    def offset(self, row: int, term: int) -> int:
        """The distance of an element from the first one."""
        row_step, term_step = (1, CORE) if self.transposed else (CORE, 1)
        inside = row % CORE * row_step + term % CORE * term_step
        return inside + row // CORE * self.rows_apart + term // CORE * self.terms_apart
