"""Floor division and remainder. x // 0 and x % 0 are 0, and the smallest integer // -1 wraps."""

from __future__ import annotations

from ..expr.nodes import Const, Op
from .context import Context
from .rounding import round_bfloat
from .types import integer, integer_type, value_type


def write_floordiv(ctx: Context, e: Op, args: list[str]) -> str:
    """Write floor(a / b)."""
    if e.dtype.is_float:
        return _floor_quotient(ctx, e, args)
    if isinstance(e.args[1], Const) and int(e.args[1].value) >= 0:
        return _IntegerDivision(ctx, e).quotient_by_constant(args[0], int(e.args[1].value))
    return _IntegerDivision(ctx, e).quotient(*args)


def write_mod(ctx: Context, e: Op, args: list[str]) -> str:
    """Write a - b * floor(a / b)."""
    if e.dtype.is_float:
        return _float_mod(ctx, e, args)
    if isinstance(e.args[1], Const) and int(e.args[1].value) >= 0:
        return _IntegerDivision(ctx, e).remainder_by_constant(args[0], int(e.args[1].value))
    return _IntegerDivision(ctx, e).remainder(*args)


def _floor_quotient(ctx: Context, e: Op, args: list[str]) -> str:
    t = value_type(e.dtype, e.lanes)
    quotient = ctx.fn.value(f"fdiv {t} {args[0]}, {args[1]}")
    if e.dtype.kind == "bfloat":
        quotient = round_bfloat(ctx.fn, quotient, e.lanes)
    return ctx.fn.intrinsic("floor", t, quotient)


def _float_mod(ctx: Context, e: Op, args: list[str]) -> str:
    t = value_type(e.dtype, e.lanes)
    product = ctx.fn.value(f"fmul {t} {args[1]}, {_floor_quotient(ctx, e, args)}")
    if e.dtype.kind == "bfloat":
        product = round_bfloat(ctx.fn, product, e.lanes)
    return ctx.fn.value(f"fsub {t} {args[0]}, {product}")


class _IntegerDivision:
    """The integer division of one type."""

    def __init__(self, ctx: Context, e: Op) -> None:
        self.fn = ctx.fn
        self.bits, self.lanes = e.dtype.bits, e.lanes
        lows = [ctx.places.least(a) for a in e.args]
        self.signed = e.dtype.is_signed and not all(low is not None and low >= 0 for low in lows)
        self.low = lows[0]  # lower bound of the dividend
        self.shift = "ashr" if self.signed or e.dtype.is_signed and not ctx.threads else "lshr"
        self.type = integer_type(self.bits, self.lanes)
        self.bools = integer_type(1, self.lanes)

    def number(self, value: int) -> str:
        return integer(value, self.bits, self.lanes)

    def do(self, name: str, a: str, b: str) -> str:
        return self.fn.value(f"{name} {self.type} {a}, {b}")

    def select(self, condition: str, then: str, otherwise: str) -> str:
        return self.fn.value(f"select {self.bools} {condition}, {self.type} {then}, {self.type} {otherwise}")

    def quotient_by_constant(self, a: str, b: int) -> str:
        if b == 0:
            return self.number(0)
        if b & (b - 1) == 0:
            return self.do(self.shift, a, self.number(b.bit_length() - 1))
        if not self.signed:
            return self.do("udiv", a, self.number(b))
        # floor(a / b) == ~(~a / b) for negative a, and ~a is not negative, so one unsigned division serves both signs.
        sign = self.do("ashr", a, self.number(self.bits - 1))
        size = self.do("udiv", self.do("xor", a, sign), self.number(b))
        return self.do("xor", size, sign)

    def remainder_by_constant(self, a: str, b: int) -> str:
        if b == 0:
            return self.number(0)
        if b & (b - 1) == 0:
            return self.do("and", a, self.number(b - 1))
        if not self.signed:
            return self.do("urem", a, self.number(b))
        # Adding a multiple of the divisor makes the dividend nonnegative and leaves the remainder unchanged.
        if self.low is not None and max(-self.low, b) < 1 << (self.bits - 2):
            return self.do("urem", self.do("add", a, self.number(-(self.low // b) * b)), self.number(b))
        return self.do("sub", a, self.do("mul", self.quotient_by_constant(a, b), self.number(b)))

    def quotient(self, a: str, b: str) -> str:
        is_zero = self.do("icmp eq", b, self.number(0))
        safe = self.safe_divisor(a, b, is_zero)
        if not self.signed:
            return self.select(is_zero, self.number(0), self.do("udiv", a, safe))
        quotient = self.do("sdiv", a, safe)
        rest = self.do("sub", a, self.do("mul", quotient, safe))
        below = self.fn.value(f"sext {self.bools} {self.wrong_side(rest, safe)} to {self.type}")
        return self.select(is_zero, self.number(0), self.do("add", quotient, below))

    def remainder(self, a: str, b: str) -> str:
        is_zero = self.do("icmp eq", b, self.number(0))
        safe = self.safe_divisor(a, b, is_zero)
        if not self.signed:
            return self.select(is_zero, self.number(0), self.do("urem", a, safe))
        rest = self.do("srem", a, safe)
        moved = self.select(self.wrong_side(rest, safe), self.do("add", rest, safe), rest)
        return self.select(is_zero, self.number(0), moved)

    def safe_divisor(self, a: str, b: str, is_zero: str) -> str:
        """The divisor, or 1 if the processor's division would trap; 1 also yields the wrapped quotient."""
        if not self.signed:
            return self.select(is_zero, self.number(1), b)
        smallest = self.do("icmp eq", a, self.number(-(1 << (self.bits - 1))))
        minus_one = self.do("icmp eq", b, self.number(-1))
        overflows = self.fn.value(f"and {self.bools} {smallest}, {minus_one}")
        traps = self.fn.value(f"or {self.bools} {is_zero}, {overflows}")
        return self.select(traps, self.number(1), b)

    def wrong_side(self, rest: str, b: str) -> str:
        """Whether a nonzero remainder does not have the divisor's sign."""
        nonzero = self.do("icmp ne", rest, self.number(0))
        differs = self.do("icmp slt", self.do("xor", rest, b), self.number(0))
        return self.fn.value(f"and {self.bools} {nonzero}, {differs}")
