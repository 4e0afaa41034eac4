"""The ranges of values in types of limited range and precision: integers wrap, or saturate if converted from floats,
and floats are rounded.

    wrapped(Interval(0, 300), UINT8)  ->  Interval(0, 255)

The divisor of a quotient of floats may be 0 in one iteration of a loop without the check of a call noticing it:

    x / (k >> y)    over all rows, k >> y is any number of its type; in one row, it is a single number, which may be 0

The check evaluates all iterations at once. If the ends of a divisor are computed in the same way for one iteration and
for all of them, the check rejects calls in which one of these ends is NaN.
"""

from __future__ import annotations

from ..expr import build
from ..expr.linear import Facts, linear
from ..expr.magnitude import Magnitudes
from ..expr.nodes import Cast, Const, Expr, Op, const
from ..expr.types import INDEX, INT64, UINT64, DType
from ..expr.visit import walk
from . import float_ends
from .float_ends import is_number
from .interval_values import EVERYTHING, FARTHEST, Interval, Scalar, constant_of, either

_KEEPING_ENDS = {"add", "sub", "neg", "mul", "min", "max"}


def type_range(t: DType) -> Interval:
    """All values of a type; floats count as unbounded."""
    return EVERYTHING if t.is_float else Interval(t.min, t.max)


def variable_range(r: Interval, t: DType) -> Interval:
    """The range of a variable. The value of a param in a call is rounded to its type."""
    return rounded(Interval(r.low, r.high, sure=True), t) if t.is_float and r.bounded else r


def rounded(r: Interval, t: DType) -> Interval:
    """Round the ends, which then bound all rounded values, since rounding is monotonic. An end that is NaN is
    unknown."""
    low = float_ends.rounded(r.low, t)
    high = low if r.is_point else float_ends.rounded(r.high, t)
    return Interval(low, high, sure=r.sure and float_ends.is_finite(low) and float_ends.is_finite(high))


def wrapped(r: Interval, t: DType) -> Interval:
    """The range of a result of wrapping arithmetic: itself if it fits the type, and otherwise the wrapped value of a
    single number, or the range of the type."""
    if not (is_number(r.low) and is_number(r.high)):
        return r if _fits(r, t) else _wrapped_in_code(r, t)
    if t.min <= r.low and r.high <= t.max:
        return r
    return Interval.point(const(r.low, t).value) if r.low == r.high else type_range(t)


def _wrapped_in_code(r: Interval, t: DType) -> Interval:
    """The range of a result of wrapping arithmetic with symbolic ends, which code compares with the type's range in 64
    bits."""
    whole = type_range(t)
    if t is UINT64 or not r.bounded or not all(isinstance(end, Expr) or _is_index(end) for end in (r.low, r.high)):
        return whole
    low, high = (build.expr(end, INDEX) for end in (r.low, r.high))
    wrapped = Interval.point(build.cast(INDEX, build.cast(t, low)))
    if r.is_point:
        return wrapped
    if not all(map(Magnitudes().fits, (low, high))):
        return whole
    return either(build.logical_and(low >= t.min, high <= t.max), r, either(low == high, wrapped, whole))


def _is_index(end: Scalar) -> bool:
    """Whether an end is a number within the range of indices."""
    return is_number(end) and INDEX.min <= end <= INDEX.max


def held(r: Interval, t: DType) -> Interval:
    """The interval with unknown ends replaced by those of the type."""
    whole = type_range(t)
    return Interval(whole.low if r.low is None else r.low, whole.high if r.high is None else r.high)


def cast_range(r: Interval, source: DType, to: DType) -> Interval:
    """The range of values of one type that are converted to another."""
    if to.is_float:
        return rounded(r if source.is_float else Interval(r.low, r.high, sure=True), to)
    if to.is_bool:
        return Interval(0, 1)
    if source.is_float:
        return _truncated(r, to)
    if source is INDEX and to is INT64:
        return r
    if to is INDEX:
        return _near(wrapped(r, INDEX) if source is UINT64 else r)
    if to is UINT64:  # its values, with which symbolic ends would be combined, are more than an index can hold
        return wrapped(r, to)
    return held(r, source) if to.min <= source.min and source.max <= to.max else wrapped(r, to)


def _fits(r: Interval, t: DType) -> bool:
    """Whether symbolic ends, such as clamped ones, are certainly within the range of a type. For uint64, the answer is
    always no: the ends would be combined with its values, not all of which fit an index."""
    if t is UINT64 or not (isinstance(r.low, Expr) or isinstance(r.high, Expr)) or not r.bounded:
        return False
    low, high = _numbers(r)
    return low is not None and high is not None and t.min <= low and high <= t.max


def _numbers(r: Interval) -> tuple[float | None, float | None]:
    """Numbers that bound the ends of a bounded interval, or None if none are known. They may exceed any index."""

    def bound(end: Scalar, side: int) -> float | None:
        return Facts().bound(linear(end), side) if isinstance(end, Expr) else end

    return bound(r.low, -1), bound(r.high, 1)


def _near(r: Interval) -> Interval:
    """The range of data that is cast to an index. Ends beyond any memory become unknown, because they are useless and
    arithmetic on them might overflow. A single number is kept: it is a param of a call, whose arithmetic is checked."""
    if constant_of(r) is not None:
        return r
    low, high = (None if is_number(end) and abs(end) > FARTHEST else end for end in (r.low, r.high))
    return Interval(low, high)


def _truncated(r: Interval, to: DType) -> Interval:
    """The range of floats that are cast to an integer type, at whose range they saturate. NaN becomes 0."""
    result = held(Interval(*(float_ends.truncated(end, to) for end in (r.low, r.high))), to)
    return result if r.sure else result.hull(Interval(0, 0))


def in_order(e: Cast, r: Interval, cast: Interval) -> Interval:
    """The range `cast` of floats that were converted to integers or, if ends that code computes are NaN, that of the
    whole type."""
    if not isinstance(r.low, Expr) or not cast.bounded or not any(map(may_divide_by_zero, walk(e.value))):
        return cast
    if e.dtype is UINT64:  # an index cannot hold all of its values
        return type_range(e.dtype)
    limits = (cast.low, e.dtype.min), (cast.high, e.dtype.max)
    return Interval(*(build.select(r.low <= r.high, build.expr(end, INDEX), most) for end, most in limits))


def may_divide_by_zero(e: Expr) -> bool:
    """Whether an expression is a quotient whose divisor may be 0 in a call that passes the check."""
    if not isinstance(e, Op) or not e.dtype.is_float or e.op not in ("div", "floordiv"):
        return False
    return not all(map(_keeps_ends, walk(e.args[1])))


def _keeps_ends(e: Expr) -> bool:
    """Whether a node's ends are computed in the same way for one iteration of a loop and for all of them."""
    if isinstance(e, Op) and e.dtype is INDEX:
        return e.op in _KEEPING_ENDS or e.op == "floordiv" and isinstance(e.args[1], Const)
    return not isinstance(e, (Op, Cast)) or e.dtype is INDEX or e.dtype.is_float
