"""Reductions of an expression over an RDom, in the order of its loops. As in NumPy, `minimum(a, b)` is not `min(e)`.

Sums and products of 8- and 16-bit integers are computed in 32 bits of the same sign, those of conditions in int32;
every other type is kept (NumPy would widen further, to 64 bits). A sum that may overflow warns. Means are summed in a
type that holds the sum. Reductions over no points yield 0, 1, the type's largest value, its smallest, False and True.
"""

from __future__ import annotations

import builtins
from functools import reduce
from operator import mul

from ..errors import DefinitionWarning, UserTypeError, warn
from ..expr.build import cast, expr
from ..expr.nodes import Expr, ExprLike, Reduce
from ..expr.nodes import const as constant_of
from ..expr.types import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType, DTypeLike
from .math import cast as to_type
from .math import within
from .ranges import Range, is_constant, most_points, range_of, scaled
from .rdom import RDom

__all__ = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum"]

_ELEMENTWISE = {
    "min": "for the smaller of two values use pt.minimum(a, b)",
    "max": "for the larger of two values use pt.maximum(a, b)",
    "any": "to combine conditions use |",
    "all": "to combine conditions use &",
}

_FEW = 1024  # points of windows whose means are summed in float32
_MOST_POINTS = 1 << 40  # points of a mean over extents that are known at the call; more would take hours
_PIXEL = (1 << 16) - 1  # the assumed largest value of a pixel of a wide type
_SIDE = 1 << 16  # the assumed largest extent of a picture


def sum(value: ExprLike, over: RDom | None = None, dtype: DTypeLike | None = None) -> Expr:
    """The sum of `value` over the points of `over`; small integers are held in 32 bits, floats in their own type.

    `dtype` is the type that values are converted to before they are summed.
    """
    domain = _domain("sum", over)
    if dtype is not None:
        return _reduce("sum", to_type(dtype, value), domain)
    e = expr(value)
    held = _widened(e)
    _warn_of_overflow(e, held.dtype, domain)
    return _reduce("sum", held, domain)


def mean(value: ExprLike, over: RDom | None = None) -> Expr:
    """The mean of `value` over the points of `over`, which is float32 of integers and conditions. Over no points: NaN.

    Values are summed in a type that holds their sum: integers in 32 bits, 64 bits or float64, whatever is wide enough
    for their number; floats in float64, up to a thousand or so in float32.
    """
    domain, e = _domain("mean", over), expr(value)
    points = most_points(domain, _MOST_POINTS)
    held = _float_of_mean(e.dtype, points) if e.dtype.is_float else _integer_of_mean(e, points)
    total = _reduce("sum", cast(held, e), domain)
    wide = FLOAT32 if held.bits <= 32 else FLOAT64
    return cast(e.dtype if e.dtype.is_float else FLOAT32, cast(wide, total) / _count(domain, points, wide))


def _count(domain: RDom, points: int, kind: DType) -> Expr:
    """The number of points of a mean."""
    if not domain.predicates:
        return reduce(mul, (cast(kind, extent) for _, extent in domain.loops.bounds))
    one = INT32 if points <= INT32.max else INT64
    return cast(kind, _reduce("sum", constant_of(1, one), domain))


def _float_of_mean(t: DType, points: int) -> DType:
    """The type in which floats are summed. Up to `_FEW` rounding errors do not matter, and windows stay fast."""
    return FLOAT32 if t.bits <= 32 and points <= _FEW else FLOAT64


def _integer_of_mean(e: Expr, points: int) -> DType:
    """The narrowest type of at least 32 bits, and no narrower than the values, that holds their sum."""
    kind = "uint" if e.dtype.kind == "uint" else "int"
    total = scaled(range_of(e), points)
    wide = (DType(kind, bits) for bits in (32, 64) if bits >= e.dtype.bits)
    return next((t for t in wide if _holds(t, total)), FLOAT64)


def _holds(t: DType, values: Range) -> bool:
    return t.min <= values[0] and values[1] <= t.max


def _warn_of_overflow(value: Expr, t: DType, domain: RDom) -> None:
    """Warn on the line of a sum whose domain is too large for its type, assuming that values are at most those of
    pixels of 16 bits: larger ones are the user's own arithmetic."""
    if not t.is_int or t.bits == 64:
        return
    points, (low, high) = most_points(domain, INT32.max, _SIDE), range_of(value)
    pixels = (builtins.max(low, -_PIXEL), builtins.min(high, _PIXEL))
    if _holds(t, scaled(pixels, points)):
        return
    many = f"{points:,} values" if is_constant(domain) else "as many values as the call decides"
    wide = DType(t.kind, 64)
    warn(
        f"pt.sum adds {many} of {value} in {t}, which wraps where the sum is larger than {t.max:,}; write "
        f'pt.sum(..., dtype="{wide}"), or dtype="{t}" if it never is',
        DefinitionWarning,
    )


def prod(value: ExprLike, over: RDom | None = None) -> Expr:
    """The product of `value` over the points of `over`; small integers are held in 32 bits."""
    return _reduce("prod", _widened(expr(value)), over)


def min(value: ExprLike, over: RDom | None = None) -> Expr:
    """The smallest `value` over the points of `over`; NaN if any is NaN."""
    return _reduce("min", expr(value), over)


def max(value: ExprLike, over: RDom | None = None) -> Expr:
    """The largest `value` over the points of `over`; NaN if any is NaN."""
    return _reduce("max", expr(value), over)


def any(value: ExprLike, over: RDom | None = None) -> Expr:
    """Whether the condition holds at some point of `over`."""
    return _reduce("any", _condition("any", expr(value)), over)


def all(value: ExprLike, over: RDom | None = None) -> Expr:
    """Whether the condition holds at every point of `over`."""
    return _reduce("all", _condition("all", expr(value)), over)


def argmin(value: ExprLike, over: RDom | None = None) -> tuple[Expr, ...]:
    """Where `value` is smallest, and that value: `iy, ix, v = pt.argmin(e, over=r)` for an `r` of two loops.

    The first of equals wins. The search starts at the domain's first point with the type's worst value, and a point
    wins by being strictly better: NaN never wins.
    """
    return _extremum("argmin", expr(value), over)


def argmax(value: ExprLike, over: RDom | None = None) -> tuple[Expr, ...]:
    """Where `value` is largest, and that value; otherwise as `argmin`."""
    return _extremum("argmax", expr(value), over)


def _domain(kind: str, over: object) -> RDom:
    if not isinstance(over, RDom):
        hint = "; " + _ELEMENTWISE[kind] if kind in _ELEMENTWISE else ""
        raise UserTypeError(f"pt.{kind} reduces over an RDom: write pt.{kind}(expression, over=r){hint}")
    return over


def _reduce(kind: str, value: Expr, over: RDom | None) -> Expr:
    return Reduce(value.dtype, 1, kind, value, _domain(kind, over), 0)


def _extremum(kind: str, value: Expr, over: RDom | None) -> tuple[Expr, ...]:
    domain = _domain(kind, over)
    bounds = enumerate(domain.loops.bounds)
    places = [within(Reduce(INT32, 1, kind, value, domain, k), low, low + extent - 1) for k, (low, extent) in bounds]
    return (*places, Reduce(value.dtype, 1, kind, value, domain, len(places)))


def _widened(value: Expr) -> Expr:
    if value.dtype == BOOL:
        return cast(INT32, value)
    if value.dtype.is_int and value.dtype.bits < 32:
        return cast(DType(value.dtype.kind, 32), value)
    return value


def _condition(kind: str, value: Expr) -> Expr:
    if not value.dtype.is_bool:
        raise UserTypeError(f"pt.{kind} needs a condition, but {value} is {value.dtype}; write {value} != 0")
    return value
