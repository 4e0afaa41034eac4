"""The matrix instructions of tensor cores: `mma.sync` of PTX, by which a warp computes d = a @ b + c.

    a    16 rows, `terms` columns            each lane holds the elements that the PTX manual calls its fragment:
    b    `terms` rows, 8 columns             of a, lane 5 has two neighbours of rows 1 and 9, and so on
    c, d 16 rows, 8 columns

They exist from compute capability 8.0 on, and later GPUs have all of them.
"""

from __future__ import annotations

from ..dataclass import value
from .layout import Digit, Layout, Unit

FIRST_WITH_MMA = (8, 0)
ROWS, COLUMNS = 16, 8  # of c
TERMS = 16  # of operands of 16 bits
WORD = 4  # bytes of a register
MATRIX = 8  # rows of what `ldmatrix` loads, of as many elements of 16 bits
PACKED = 2  # of these elements in a register
# The digits of a lane's number that count rows and columns of fragments.
ROW_LANES, COLUMN_LANES = Digit(8, Unit.THREAD, 4), Digit(4, Unit.THREAD)


@value()
class Mma:
    """A matrix instruction, by the types of what it multiplies and of what it adds up."""

    operand: str
    accumulator: str
    terms: int
    suffix: str  # the types in the name of LLVM's intrinsic

    @property
    def shape(self) -> str:
        return f"mma.m{ROWS}n{COLUMNS}k{self.terms}"

    @property
    def name(self) -> str:
        return f"{self.shape}.{self.operand}.{self.accumulator}"

    @property
    def packed(self) -> int:
        """The number of elements of `a` or `b` in a register."""
        return 2 * self.terms // ROWS

    @property
    def a(self) -> Layout:
        """The fragment of `a`: rows, then terms."""
        e = self.packed
        rows = (ROW_LANES, Digit(2, Unit.REGISTER, e))
        return Layout((rows, (Digit(e, Unit.REGISTER), COLUMN_LANES, Digit(2, Unit.REGISTER, 2 * e))))

    def b(self, times: int = 1) -> Layout:
        """The fragment of `b`, or of several side by side: terms, then columns."""
        e = self.packed
        columns = (ROW_LANES, *([Digit(times, Unit.REGISTER, 2 * e)] if times > 1 else []))
        return Layout(((Digit(e, Unit.REGISTER), COLUMN_LANES, Digit(2, Unit.REGISTER, e)), columns))

    @property
    def c(self) -> Layout:
        """The fragment of `c` and `d`: rows, then columns."""
        rows = (ROW_LANES, Digit(2, Unit.REGISTER, 2))
        return Layout((rows, (Digit(2, Unit.REGISTER), COLUMN_LANES)))


MMAS = {
    (mma.operand, mma.accumulator): mma
    for mma in (
        Mma("float16", "float32", TERMS, "f32.f32"),
        Mma("bfloat16", "float32", TERMS, "bf16"),
        Mma("float16", "float16", TERMS, "f16.f16"),
        Mma("int8", "int32", 2 * TERMS, "s8"),
        Mma("uint8", "int32", 2 * TERMS, "u8"),
    )
}
