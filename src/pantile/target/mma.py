"""The matrix instructions of tensor cores: PTX's `mma.sync`, with which a warp computes d = a @ b + c.

    a    16 rows, `terms` columns            each lane holds the elements that the PTX manual calls its fragment:
    b    `terms` rows, 8 columns             lane 5 holds two adjacent elements of rows 1 and 9 of a, and so on
    c, d 16 rows, 8 columns

They exist since compute capability 8.0, and all later GPUs have them.
"""

from __future__ import annotations

from ..dataclass import value
from .layout import Digit, Layout, Unit

FIRST_WITH_MMA = (8, 0)
ROWS, COLUMNS = 16, 8  # of c
TERMS = 16  # for operands of 16 bits
WORD = 4  # bytes of a register
MATRIX = 8  # rows, and columns, of a matrix of 16-bit elements that `ldmatrix` loads
PACKED = 2  # 16-bit elements in a register
# The digits of a lane's number that count the rows and columns of fragments.
ROW_LANES, COLUMN_LANES = Digit(8, Unit.THREAD, 4), Digit(4, Unit.THREAD)


@value()
class Mma:
    """A matrix instruction, identified by the types of its operands and of its accumulator."""

    operand: str
    accumulator: str
    terms: int
    suffix: str  # the types, as the name of LLVM's intrinsic writes them

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
        """The fragment of `b`, or of `times` of them side by side: terms, then columns."""
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
