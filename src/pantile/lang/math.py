"""Element-wise functions on expressions and numbers. Numbers are weak: they take the other side's type."""

from __future__ import annotations

from functools import reduce

from ..errors import UserError, UserTypeError
from ..expr import build
from ..expr.build import binary, expr, is_number, maximum, minimum, plain_number, select, unary
from ..expr.nodes import Expr, ExprLike, op
from ..expr.nodes import const as constant_of
from ..expr.types import FLOAT32, DType, DTypeLike, dtype, promote

__all__ = [
    "abs", "absd", "acos", "asin", "atan", "atan2", "bits", "case", "cast", "cbrt", "ceil", "clamp", "clip", "cos",
    "erf", "exp", "floor", "halving_add", "lerp", "log", "maximum", "minimum", "mul_shift", "popcount", "pow", "round",
    "rounding_cast", "rounding_halving_add", "rounding_mul_shift", "rsqrt", "saturating_add", "saturating_cast",
    "saturating_sub", "select", "sin", "sqrt", "tan", "tanh", "trunc", "where", "within",
]  # fmt: skip


def unify(*values: ExprLike) -> tuple[Expr, ...]:
    """All values in their common type; numbers take the type of the expressions."""
    weak = [v for v in values if is_number(v)]
    strong = [v for v in values if not is_number(v)]
    common: DType = reduce(promote, (expr(v).dtype for v in strong or weak))
    if not common.is_float and any(isinstance(plain_number(v), float) for v in weak):
        common = FLOAT32
    return tuple(build.cast(common, expr(v, common)) for v in values)


# ---- conversions


def cast(to: DTypeLike, value: ExprLike) -> Expr:
    """Convert by value. Integers wrap; float to integer truncates towards zero and saturates, and NaN gives 0."""
    to, value = dtype(to), plain_number(value)
    whole = isinstance(value, int) and to.is_int and to.min <= value <= to.max
    return build.cast(to, expr(value, to if whole or (isinstance(value, float) and to.is_float) else None))


def saturating_cast(to: DTypeLike, value: ExprLike) -> Expr:
    """Convert by value; what does not fit becomes the nearest value that does."""
    to, e = dtype(to), expr(value)
    if e.dtype.is_int and to.is_int:
        if e.dtype.max > to.max:
            e = minimum(e, to.max)
        if e.dtype.min < to.min:
            e = maximum(e, to.min)
    return build.cast(to, e)


def rounding_cast(to: DTypeLike, value: ExprLike) -> Expr:
    """Convert by value; a float is rounded to the nearest integer (half to even) instead of truncated."""
    to, e = dtype(to), expr(value)
    return build.cast(to, round(e) if to.is_int else e)


def bits(to: DTypeLike, value: ExprLike) -> Expr:
    """Reinterpret the bits of `value` as another type of the same size."""
    return build.bits(to, expr(value))


# ---- choices and ranges


def case(*pieces: tuple[ExprLike, ExprLike], otherwise: ExprLike) -> Expr:
    """The value of the first pair `(condition, value)` whose condition holds.

    `pt.case((y < 1, a), ((y >= 1) & (y < h), b), otherwise=0)`
    """
    for piece in pieces:
        if not isinstance(piece, tuple) or len(piece) != 2:
            raise UserTypeError(f"pt.case takes (condition, value) pairs, not {piece!r}")
    *values, result = unify(*(value for _, value in pieces), otherwise)
    for (condition, _), value in zip(reversed(pieces), reversed(values), strict=True):
        result = select(condition, value, result)
    return result


def clamp(value: ExprLike, low: ExprLike, high: ExprLike) -> Expr:
    """`value` clamped to [low, high]."""
    return maximum(minimum(value, high), low)


# NumPy's names of these functions.
clip, where = clamp, select


def within(value: ExprLike, low: ExprLike, high: ExprLike) -> Expr:
    """`value`, which you promise lies in [low, high]. Costs nothing; a broken promise may read another pixel."""
    return op("within", *unify(value, low, high))


def lerp(a: ExprLike, b: ExprLike, weight: ExprLike) -> Expr:
    """Interpolate linearly between a (weight 0) and b (weight 1): a*(1 - weight) + b*weight."""
    w = float(plain_number(weight)) if is_number(weight) else expr(weight)
    if isinstance(w, Expr) and not w.dtype.is_float:
        raise UserTypeError(f"the weight of pt.lerp is {w}, of type {w.dtype}; it must be a float")
    return expr(a * (1 - w) + b * w)


# ---- bits


def popcount(value: ExprLike) -> Expr:
    """The number of set bits of an integer, in its type; negative integers are in two's complement."""
    return unary("popcount", value)


# ---- arithmetic


def abs(value: ExprLike) -> Expr:
    """The absolute value; that of the most negative integer is itself (it wraps)."""
    return unary("abs", value)


def sqrt(value: ExprLike) -> Expr:
    """The square root; that of an integer is float32."""
    return unary("sqrt", value)


def cbrt(value: ExprLike) -> Expr:
    """The cube root, also of negative numbers; that of an integer is float32."""
    return unary("cbrt", value)


def rsqrt(value: ExprLike) -> Expr:
    """1 / sqrt(value)."""
    return unary("rsqrt", value)


def exp(value: ExprLike) -> Expr:
    """e to the power of value."""
    return unary("exp", value)


def log(value: ExprLike) -> Expr:
    """Return the natural logarithm of a value."""
    return unary("log", value)


def sin(value: ExprLike) -> Expr:
    """Sine of radians."""
    return unary("sin", value)


def cos(value: ExprLike) -> Expr:
    """Cosine of radians."""
    return unary("cos", value)


def tan(value: ExprLike) -> Expr:
    """Tangent of radians."""
    return unary("tan", value)


def tanh(value: ExprLike) -> Expr:
    """Return the hyperbolic tangent of a value."""
    return unary("tanh", value)


def asin(value: ExprLike) -> Expr:
    """The angle in [-pi/2, pi/2] whose sine is value; NaN beyond 1."""
    return unary("asin", value)


def acos(value: ExprLike) -> Expr:
    """The angle in [0, pi] whose cosine is value; NaN beyond 1."""
    return unary("acos", value)


def erf(value: ExprLike) -> Expr:
    """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to value."""
    return unary("erf", value)


def floor(value: ExprLike) -> Expr:
    """The largest whole number not above a float; integers stay as they are."""
    return unary("floor", value)


def ceil(value: ExprLike) -> Expr:
    """The smallest whole number not below a float; integers stay as they are."""
    return unary("ceil", value)


def round(value: ExprLike) -> Expr:
    """The nearest whole number, half to even; integers stay as they are."""
    return unary("round", value)


def trunc(value: ExprLike) -> Expr:
    """A float without its fraction; integers stay as they are."""
    return unary("trunc", value)


def atan2(y: ExprLike, x: ExprLike) -> Expr:
    """The angle of the point (x, y), in (-pi, pi]."""
    return binary("atan2", y, x)


def atan(value: ExprLike) -> Expr:
    """The angle in [-pi/2, pi/2] whose tangent is value."""
    return binary("atan2", value, 1.0)


def pow(base: ExprLike, exponent: ExprLike) -> Expr:
    """base ** exponent. A small whole-number exponent multiplies, in the base's own type; others are floats."""
    return binary("pow", base, exponent)


# ---- fixed point


def _fixed_point(name: str, *values: ExprLike) -> tuple[Expr, ...]:
    unified = unify(*values)
    if not unified[0].dtype.is_int:
        raise UserTypeError(f"pt.{name} is for integers, not {unified[0].dtype}; use ordinary arithmetic")
    return unified


def halving_add(a: ExprLike, b: ExprLike) -> Expr:
    """(a + b) // 2 of integers, as if in a wider type."""
    return op("halving_add", *_fixed_point("halving_add", a, b))


def rounding_halving_add(a: ExprLike, b: ExprLike) -> Expr:
    """(a + b + 1) // 2 of integers, as if in a wider type."""
    return op("rounding_halving_add", *_fixed_point("rounding_halving_add", a, b))


def saturating_add(a: ExprLike, b: ExprLike) -> Expr:
    """a + b of integers, stopping at the ends of their type."""
    return op("saturating_add", *_fixed_point("saturating_add", a, b))


def saturating_sub(a: ExprLike, b: ExprLike) -> Expr:
    """a - b of integers, stopping at the ends of their type."""
    return op("saturating_sub", *_fixed_point("saturating_sub", a, b))


def absd(a: ExprLike, b: ExprLike) -> Expr:
    """|a - b|: of integers exact, in the unsigned type of the same size."""
    x, y = unify(a, b)
    return abs(x - y) if x.dtype.is_float else op("absd", *_fixed_point("absd", x, y))


def mul_shift(a: ExprLike, b: ExprLike, shift: int) -> Expr:
    """a*b >> shift of integers, computed wide, saturated to their type."""
    return _scaled("mul_shift", a, b, shift)


def rounding_mul_shift(a: ExprLike, b: ExprLike, shift: int) -> Expr:
    """(a*b + half) >> shift of integers, with half of the last place added first; computed wide, saturated."""
    return _scaled("rounding_mul_shift", a, b, shift)


def _scaled(name: str, a: ExprLike, b: ExprLike, shift: int) -> Expr:
    x, y = _fixed_point(name, a, b)
    shift, most = plain_number(shift), 2 * x.dtype.bits - 1
    if isinstance(shift, bool) or not isinstance(shift, int) or not 0 <= shift <= most:
        raise UserError(f"the shift of pt.{name} is {shift!r}; for {x.dtype} it is a Python number in 0 .. {most}")
    return op(name, x, y, constant_of(shift, x.dtype))
