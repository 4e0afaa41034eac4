"""Converts between 8- or 16-bit integers and float32 by way of the low mantissa bits, on targets whose conversions are
slower than additions.

    float32(n)          the bits of 2**23 + n are those of 2**23 with n in the low bits: build them, subtract 2**23
    uint8(round(x))     the low bits of 2**23 + x, with x clamped first: additions round to nearest, ties to even

Signed integers are biased: n + 32768 flips the sign bit, and 3 * 2**22 leaves room for both signs.
"""

from __future__ import annotations

from ..expr.nodes import Cast, Const, Expr, Op
from ..expr.types import FLOAT32, DType
from .context import Context
from .types import constant, integer, integer_type, value_type

_ONES = 2.0**23  # the smallest float32 whose last mantissa bit is worth 1
_UPPER = 0x4B00  # the upper half of its bits
_OF_BOTH_SIGNS = 1.5 * 2.0**23
_LANES, _REGISTER = 4, 128  # float32 lanes of a register, and its bits


def is_slow(ctx: Context, small: DType, lanes: int) -> bool:
    """Whether conversions between whole vectors of a small integer type and float32 are slow, as they are on Arm
    cores."""
    is_small = small.is_int and small.bits <= 16
    return ctx.module.target.architecture == "aarch64" and is_small and lanes % _LANES == 0


def is_slow_to_float(ctx: Context, source: DType, lanes: int) -> bool:
    """Whether conversions from a small integer type to float32 are slow.

    Conversions of whole registers of bytes are not: one instruction widens bytes to 32 bits, while inserting the
    exponent bits takes two.
    """
    return is_slow(ctx, source, lanes) and not (source.bits == 8 and lanes * source.bits % _REGISTER == 0)


def small_to_float(ctx: Context, source: DType, lanes: int, value: str) -> str:
    """Convert by joining 16-bit halves. The result is never infinite or NaN."""
    half, t = integer_type(16, lanes), value_type(FLOAT32, lanes)
    if source.bits < 16:
        extend = "sext" if source.is_signed else "zext"
        value = ctx.fn.value(f"{extend} {value_type(source, lanes)} {value} to {half}")
    if source.is_signed:
        value = ctx.fn.value(f"xor {half} {value}, {integer(-(1 << 15), 16, lanes)}")
    order = ", ".join(f"i32 {lane}, i32 {lanes + lane}" for lane in range(lanes))
    pairs = ctx.fn.value(
        f"shufflevector {half} {value}, {half} {integer(_UPPER, 16, lanes)}, <{2 * lanes} x i32> <{order}>"
    )
    whole = ctx.fn.value(f"bitcast {integer_type(16, 2 * lanes)} {pairs} to {t}")
    zero = _ONES + (1 << 15 if source.is_signed else 0)
    return ctx.fn.value(f"fsub nnan ninf {t} {whole}, {constant(FLOAT32, lanes, zero)}")


def rounded_operand(ctx: Context, e: Cast) -> Expr | None:
    """The operand that a conversion rounds to a small integer, without redundant clamps. None if it does not round, or
    if the usual conversion is fast."""
    rounded = without_limits(e.value, e.dtype)
    if e.value.dtype != FLOAT32 or not is_slow(ctx, e.dtype, e.lanes):
        return None
    if not (isinstance(rounded, Op) and rounded.op == "round"):
        return None
    return without_limits(rounded.args[0], e.dtype)


def without_limits(e: Expr, to: DType) -> Expr:
    """The expression without minima and maxima at or beyond the ends of a type."""
    while isinstance(e, Op) and e.op in ("min", "max"):
        a, b = e.args if isinstance(e.args[1], Const) else e.args[::-1]
        if not isinstance(b, Const) or not (b.value >= to.max if e.op == "min" else b.value <= to.min):
            break
        e = a
    return e


def round_to_small(ctx: Context, to: DType, lanes: int, value: str) -> str:
    """Round and convert a float. Values outside the type's range saturate, and NaN becomes 0."""
    t = value_type(FLOAT32, lanes)
    if to.is_signed:  # only then is 0 not an end of the range
        ordered = ctx.fn.value(f"fcmp ord {t} {value}, {value}")
        zero = constant(FLOAT32, lanes, 0.0)
        value = ctx.fn.value(f"select <{lanes} x i1> {ordered}, {t} {value}, {t} {zero}")
    for name, end in (("max", to.min), ("min", to.max)):
        limit = constant(FLOAT32, lanes, float(end))
        value = ctx.fn.intrinsic(f"{name}num", t, value, limit)
    start = constant(FLOAT32, lanes, _OF_BOTH_SIGNS if to.is_signed else _ONES)
    moved = ctx.fn.value(f"fadd {t} {value}, {start}")
    whole = ctx.fn.value(f"bitcast {t} {moved} to {integer_type(32, lanes)}")
    return ctx.fn.value(f"trunc {integer_type(32, lanes)} {whole} to {value_type(to, lanes)}")
