"""Building blocks of the functions: float formats, exact constants, fused multiply-add, polynomials, powers of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast as as_type

from ...dataclass import dataclass
from ...expr.build import bits, broadcast
from ...expr.nodes import Const, Expr, op
from ...expr.types import FLOAT32, FLOAT64, UINT32, UINT64, DType
from .coefficients import Table


@dataclass(frozen=True)
class Format:
    """An IEEE format: its type, the unsigned integer type for its bits, and the layout of its fields."""

    dtype: DType
    uint: DType
    mantissa: int  # stored bits
    bias: int

    @property
    def one(self) -> int:
        """The bits of 1.0, which is also what turns a shifted exponent into a biased one when added to it."""
        return self.bias << self.mantissa

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.uint.bits - 1)

    @property
    def fraction(self) -> int:
        """The bits of the stored mantissa."""
        return (1 << self.mantissa) - 1

    @property
    def rounder(self) -> float:
        """1.5 * 2**mantissa. Added to a number, it leaves the nearest integer in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def least(self) -> float:
        """The smallest positive number."""
        return 2.0 ** (1 - self.bias - self.mantissa)

    def number(self, value: float, lanes: int) -> Const:
        """A literal, rounded to the format."""
        return Const(self.dtype, lanes, float(self.dtype.numpy.type(value)))

    def of(self, table: Table) -> tuple[float, ...]:
        """This format's row of a table."""
        return table[self.dtype.name]


_FORMATS = {FLOAT32: Format(FLOAT32, UINT32, 23, 127), FLOAT64: Format(FLOAT64, UINT64, 52, 1023)}


def format_of(x: Expr) -> Format:
    """The format of a float32 or float64 expression."""
    return _FORMATS[x.dtype]


def fma(a: Expr, b: Expr | float, c: Expr | float) -> Expr:
    """a * b + c, rounded once."""
    return op("fma", *(_operand(v, a) for v in (a, b, c)))


def _operand(value: Expr | float, like: Expr) -> Expr:
    if isinstance(value, Expr):
        return broadcast(value, like.lanes)
    return format_of(like).number(value, like.lanes)


# Above this number of coefficients, the latency of a Horner chain costs more than the additional squarings of Estrin's
# scheme.
_HORNER_TERMS = 8


def poly(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Evaluate c[0] + c[1]*x + c[2]*x**2 + ... with fused multiply-adds."""
    return _horner(x, coefficients) if len(coefficients) <= _HORNER_TERMS else _estrin(x, coefficients)


def _horner(x: Expr, coefficients: Sequence[float]) -> Expr:
    result = _operand(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        result = fma(x, result, c)
    return result


def _estrin(x: Expr, coefficients: Sequence[float]) -> Expr:
    terms: list[Expr | float] = list(coefficients)
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        odd_one_out = terms[-1:] if len(terms) % 2 else []
        terms = [*(fma(x, high, low) for low, high in pairs), *odd_one_out]
        x = x * x
    return as_type(Expr, terms[0])


# Compensated arithmetic. A backend may fuse a product into a sum that uses it, which would count the product's rounding
# error twice. Therefore, products are only ever added by an explicit fma.


def two_product(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a * b as a rounded product and its exact error."""
    product = a * b
    return product, fma(a, b, -product)


def add_product(total: Expr, a: Expr, b: float) -> tuple[Expr, Expr]:
    """total + a * b as a rounded sum and its error; total is the larger summand, or zero."""
    new = fma(a, b, total)
    return new, fma(a, b, total - new)


def two_sum(large: Expr, small: Expr) -> tuple[Expr, Expr]:
    """large + small as a rounded sum and its exact error; neither is a bare product."""
    total = large + small
    return total, small - (total - large)


def nearest_integer(x: Expr, factor: float) -> tuple[Expr, Expr]:
    """The integer n nearest to x * factor, as a float and as an unsigned integer with the same low bits as n."""
    fmt = format_of(x)
    total = fma(x, factor, fmt.rounder)
    return total - fmt.rounder, bits(fmt.uint, total)


def power_of_two(n: Expr, fmt: Format) -> Expr:
    """2**n as a float, with n in the low bits of an unsigned integer. The result must be a normal number."""
    return bits(fmt.dtype, (n << fmt.mantissa) + fmt.one)


def scale(x: Expr, n: Expr) -> Expr:
    """x * 2**n in two steps, so that it is rounded only once if the result overflows or becomes denormal."""
    fmt = format_of(x)
    half = n >> 1
    return x * power_of_two(half, fmt) * power_of_two(n - half, fmt)


def sign_of(x: Expr) -> Expr:
    """The bits of x with all but the sign bit cleared."""
    fmt = format_of(x)
    return bits(fmt.uint, x) & fmt.sign


def flip_sign(x: Expr, sign: Expr) -> Expr:
    """x, negated if the sign bit is set in `sign`."""
    fmt = format_of(x)
    return bits(fmt.dtype, bits(fmt.uint, x) ^ sign)
