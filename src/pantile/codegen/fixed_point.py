"""Fixed-point operations, written in the forms that LLVM turns into one instruction if the target has it."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InternalError
from ..expr.nodes import Const, Op
from .casts import truncate
from .context import Context
from .types import integer, integer_type, mangled, value_type
from .vectors import shuffle


def _halving_add(ctx: Context, e: Op, args: list[str]) -> str:
    """Write (a & b) + ((a ^ b) >> 1)."""
    return _average(ctx, e, args, "hadd", "add", "and")


def _rounding_halving_add(ctx: Context, e: Op, args: list[str]) -> str:
    """Write (a | b) - ((a ^ b) >> 1): vpavg."""
    return _average(ctx, e, args, "rhadd", "sub", "or")


def _average(ctx: Context, e: Op, args: list[str], native: str, last: str, common: str) -> str:
    if _has_average(ctx, e):
        return _native_average(ctx, e, args, native)
    t = value_type(e.dtype, e.lanes)
    differs = ctx.fn.value(f"xor {t} {args[0]}, {args[1]}")
    shift = "ashr" if e.dtype.is_signed else "lshr"
    half = ctx.fn.value(f"{shift} {t} {differs}, {integer(1, e.dtype.bits, e.lanes)}")
    return ctx.fn.value(f"{last} {t} {ctx.fn.value(f'{common} {t} {args[0]}, {args[1]}')}, {half}")


def _has_average(ctx: Context, e: Op) -> bool:
    """Whether to use the target's averaging instructions for whole registers of this type.

    The plain form would suffice, except that LLVM does not recognize it after reassociating it with surrounding sums.
    """
    return ctx.module.target.architecture == "aarch64" and e.dtype.bits < 64 and e.lanes * e.dtype.bits % 128 == 0


def _native_average(ctx: Context, e: Op, args: list[str], name: str) -> str:
    lanes = 128 // e.dtype.bits
    element, part = value_type(e.dtype, 1), value_type(e.dtype, lanes)
    intrinsic = f"llvm.aarch64.neon.{'s' if e.dtype.is_signed else 'u'}{name}.{mangled(part)}"

    def average(first: int) -> str:
        order = range(first, first + lanes)
        a, b = args if lanes == e.lanes else (shuffle(ctx.fn, [x], element, e.lanes, order) for x in args)
        return ctx.fn.value(f"call {part} @{intrinsic}({part} {a}, {part} {b})")

    parts = [average(k) for k in range(0, e.lanes, lanes)]
    return parts[0] if len(parts) == 1 else shuffle(ctx.fn, parts, element, lanes, range(e.lanes))


def _saturating(name: str) -> Callable[[Context, Op, list[str]], str]:
    def writer(ctx: Context, e: Op, args: list[str]) -> str:
        sign = "s" if e.dtype.is_signed else "u"
        return ctx.fn.intrinsic(f"{sign}{name}.sat", value_type(e.dtype, e.lanes), *args)

    return writer


def _absd(ctx: Context, e: Op, args: list[str]) -> str:
    """Write max - min: uabd, sabd."""
    t = value_type(e.dtype, e.lanes)
    if e.dtype.is_float:
        return ctx.fn.intrinsic("fabs", t, ctx.fn.value(f"fsub {t} {args[0]}, {args[1]}"))
    sign = "s" if e.args[0].dtype.is_signed else "u"
    larger, smaller = (ctx.fn.intrinsic(f"{sign}{name}", t, *args) for name in ("max", "min"))
    return ctx.fn.value(f"sub {t} {larger}, {smaller}")


class _WideProduct:
    """The product a * b in twice the bits, shifted right and saturated back."""

    def __init__(self, ctx: Context, e: Op, args: list[str]) -> None:
        if not isinstance(e.args[2], Const):
            raise InternalError(f"the shift of {e} is not constant")
        self.ctx, self.fn, self.t, self.lanes = ctx, ctx.fn, e.dtype, e.lanes
        self.shift = int(e.args[2].value)
        self.bits = 2 * e.dtype.bits
        self.narrow, self.wide = value_type(e.dtype, e.lanes), integer_type(self.bits, e.lanes)
        self.extend, self.right = ("sext", "ashr") if e.dtype.is_signed else ("zext", "lshr")
        a, b = (ctx.fn.value(f"{self.extend} {self.narrow} {x} to {self.wide}") for x in args[:2])
        self.product = ctx.fn.value(f"mul {self.wide} {a}, {b}")

    def number(self, value: int) -> str:
        return integer(value, self.bits, self.lanes)

    def shifted(self, value: str, by: int) -> str:
        if by >= self.bits:
            if not self.t.is_signed:
                return self.number(0)
            by = self.bits - 1
        return self.fn.value(f"{self.right} {self.wide} {value}, {self.number(by)}") if by else value

    def rounded(self) -> str:
        if self.shift == 0:
            return self.product
        if self.shift <= self.t.bits:  # the sum fits
            half = self.number(1 << (self.shift - 1))
            return self.shifted(self.fn.value(f"add {self.wide} {self.product}, {half}"), self.shift)
        doubled = self.shifted(self.product, self.shift - 1)
        return self.shifted(self.fn.value(f"add {self.wide} {doubled}, {self.number(1)}"), 1)

    def saturated(self, value: str) -> str:
        """Narrow to the type with saturation. After a shift by all bits of the type, no value exceeds its range; after
        one bit less, a value can exceed only the maximum."""
        if self.shift < self.t.bits:
            value = self.limited("min", self.t.max, value)
            if self.t.is_signed and self.shift < self.t.bits - 1:
                value = self.limited("max", self.t.min, value)
        return truncate(self.ctx, value, self.bits, self.t.bits, self.lanes)

    def limited(self, name: str, limit: int, value: str) -> str:
        sign = "s" if self.t.is_signed else "u"
        return self.fn.intrinsic(f"{sign}{name}", self.wide, value, self.number(limit))


def _mul_shift(ctx: Context, e: Op, args: list[str]) -> str:
    product = _WideProduct(ctx, e, args)
    return product.saturated(product.shifted(product.product, product.shift))


def _rounding_mul_shift(ctx: Context, e: Op, args: list[str]) -> str:
    product = _WideProduct(ctx, e, args)
    return product.saturated(product.rounded())


FIXED_POINT_WRITERS: dict[str, Callable[[Context, Op, list[str]], str]] = {
    "halving_add": _halving_add,
    "rounding_halving_add": _rounding_halving_add,
    "saturating_add": _saturating("add"),
    "saturating_sub": _saturating("sub"),
    "absd": _absd,
    "mul_shift": _mul_shift,
    "rounding_mul_shift": _rounding_mul_shift,
}
