"""The interval rule of each operation, which computes the interval of its result from those of its operands in exact
arithmetic.

OPS["add"](Interval(0, 4), Interval(1, 2))  ->  Interval(1, 6)
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ..expr import build
from ..expr.nodes import Expr
from ..expr.types import INDEX
from . import float_ends
from .float_ends import is_number
from .interval_values import EVERYTHING, FARTHEST, Interval, Scalar, beyond_type, constant_of, either, lift, smax, smin


def _ends(f: Callable[[Scalar, Scalar], Scalar], low: tuple[Scalar, Scalar], high: tuple[Scalar, Scalar]) -> Interval:
    """The interval from f(*low) to f(*high). If both have the same operands, f is applied once, so that a point stays a
    point."""
    (a, b), (c, d) = low, high
    least = _end(f, a, b)
    return Interval(least, least if a is c and b is d else _end(f, c, d))


def _end(f: Callable[[Scalar, Scalar], Scalar], a: Scalar, b: Scalar) -> Scalar:
    if a is None or b is None or (type(a) is not type(b) and _does_not_fit(a, b)):
        return None
    return f(a, b)


def _does_not_fit(a: Scalar, b: Scalar) -> bool:
    """Whether one operand is an integer expression, and the other is a number that does not fit its type."""
    number, other = (a, b) if isinstance(b, Expr) else (b, a)
    return type(number) is int and beyond_type(number, other)


def _add(a: Interval, b: Interval) -> Interval:
    return _ends(operator.add, (a.low, b.low), (a.high, b.high))


def _sub(a: Interval, b: Interval) -> Interval:
    return _ends(operator.sub, (a.low, b.high), (a.high, b.low))


def _neg(a: Interval) -> Interval:
    return _sub(Interval.point(0), a)


def _by_number(f: Callable[[Scalar, Scalar], Scalar], a: Interval, number: Scalar) -> Interval:
    """The range of f, a product with or quotient by a nonzero number, for values in an interval."""
    least, most = (a.low, a.high) if number > 0 else (a.high, a.low)
    return _ends(f, (least, number), (most, number))


def _mul(a: Interval, b: Interval) -> Interval:
    if constant_of(a) is not None:
        a, b = b, a
    factor = constant_of(b)
    if factor is not None:
        return Interval(0, 0) if factor == 0 else _by_number(operator.mul, a, factor)
    if a.is_point and b.is_point:
        return Interval.point(a.low * b.low)
    lows = (a.low,) if a.is_point else (a.low, a.high)
    highs = (b.low,) if b.is_point else (b.low, b.high)
    products = [_end(operator.mul, x, y) for x in lows for y in highs]
    if any(p is None for p in products):
        return EVERYTHING
    low = high = products[0]
    for p in products[1:]:
        low, high = smin(low, p), smax(high, p)
    return Interval(low, high)


def _floordiv(a: Interval, b: Interval) -> Interval:
    d = constant_of(b)
    if d is not None:
        return Interval(0, 0) if d == 0 else _by_number(operator.floordiv, _within_64_bits(a, d), d)
    if a.is_point and b.is_point:
        return Interval.point(a.low // b.low)
    anything = _symmetric(a)
    if not (a.bounded and b.bounded) or not (isinstance(b.low, Expr) or isinstance(b.high, Expr)):
        return anything
    low, high, by = (build.expr(end, INDEX) for end in (a.low, a.high, b.low))
    exact = Interval(smin(low // by, high // by), smax(low // by, high // by))
    return exact if b.is_point else either(b.low == b.high, exact, anything) if anything.bounded else EVERYTHING


def _within_64_bits(a: Interval, divisor: Scalar) -> Interval:
    """Replace unknown ends by those of a 64-bit integer, if the quotient by this number is then still near."""
    if a.bounded or INDEX.max // abs(divisor) > FARTHEST:
        return a
    return Interval(INDEX.min if a.low is None else a.low, INDEX.max if a.high is None else a.high)


def _symmetric(a: Interval) -> Interval:
    """The range of quotients by any integer, since |a // b| <= |a|. Ends beyond any memory become unknown, so that
    arithmetic on them does not overflow."""
    if not a.bounded:
        return EVERYTHING
    reach = smax(smax(a.low, 0 - a.low), smax(a.high, 0 - a.high))
    return EVERYTHING if is_number(reach) and reach > FARTHEST else Interval(0 - reach, reach)


def _mod(a: Interval, b: Interval) -> Interval:
    d = constant_of(b)
    if a.is_point and b.is_point and d != 0:
        return Interval.point(a.low % b.low)
    if d is not None and d > 0:
        if is_number(a.low) and is_number(a.high) and a.low // d == a.high // d:
            return Interval(a.low % d, a.high % d)
        return Interval(0, d - 1)
    if not b.bounded:
        return EVERYTHING
    return Interval(smin(b.low + 1, 0), smax(b.high - 1, 0))


def _min(a: Interval, b: Interval) -> Interval:
    high = a.high if b.high is None else b.high if a.high is None else smin(a.high, b.high)
    return Interval(lift(smin, a.low, b.low), high)


def _max(a: Interval, b: Interval) -> Interval:
    low = a.low if b.low is None else b.low if a.low is None else smax(a.low, b.low)
    return Interval(low, lift(smax, a.high, b.high))


def _abs(a: Interval) -> Interval:
    return Interval(0, lift(smax, a.high, None if a.low is None else 0 - a.low))


def _shl(a: Interval, b: Interval) -> Interval:
    shift = constant_of(b)
    return _mul(a, Interval.point(1 << int(shift))) if shift is not None and 0 <= shift < 63 else EVERYTHING


def _shr(a: Interval, b: Interval) -> Interval:
    shift = constant_of(b)
    return _floordiv(a, Interval.point(1 << int(shift))) if shift is not None and 0 <= shift < 64 else EVERYTHING


def _and(a: Interval, b: Interval) -> Interval:
    masks = [m for m in map(constant_of, (a, b)) if m is not None and m >= 0]
    return Interval(0, min(masks)) if masks else EVERYTHING


def _within(a: Interval, low: Interval, high: Interval) -> Interval:
    return a.meet(Interval(low.low, high.high))


def _float_mul(a: Interval, b: Interval) -> Interval:
    constants = [c for c in map(constant_of, (a, b)) if c is not None]
    if 0 in constants and not (a.bounded and b.bounded) or any(not float_ends.is_finite(c) for c in constants):
        return EVERYTHING
    return _mul(a, b) if constants else _corners(operator.mul, a, b)


def _div(a: Interval, b: Interval) -> Interval:
    d = constant_of(b)
    if d is None:
        return _corners(operator.truediv, a, b)
    if d == 0 or not float_ends.is_finite(d):
        return EVERYTHING
    return _by_number(operator.truediv, a, d)


def _corners(f: Callable[[Scalar, Scalar], Scalar], a: Interval, b: Interval) -> Interval:
    """The range of a product or quotient of floats, neither of which is a known number."""
    if a.is_point and b.is_point and isinstance(b.low, Expr):
        return Interval.point(f(a.low, b.low))
    ends = [(r.low,) if r.is_point else (r.low, r.high) for r in (a, b)]
    return Interval(*float_ends.corners(f, *ends)) if a.bounded and b.bounded else EVERYTHING


def whole_numbers(name: str) -> Callable[[Interval], Interval]:
    """The rule of floor, ceil, round or trunc, all of which are monotonic."""

    def rule(a: Interval) -> Interval:
        low = float_ends.whole(name, a.low)
        return Interval(low, low if a.is_point else float_ends.whole(name, a.high), sure=a.sure)

    return rule


OPS: dict[str, Callable[..., Interval]] = {
    "add": _add, "sub": _sub, "neg": _neg, "mul": _mul, "floordiv": _floordiv, "mod": _mod, "min": _min, "max": _max,
    "abs": _abs, "shl": _shl, "shr": _shr, "and": _and, "within": _within,
}  # fmt: skip
FLOAT_OPS: dict[str, Callable[..., Interval]] = {
    "add": _add, "sub": _sub, "neg": _neg, "mul": _float_mul, "min": _min, "max": _max, "abs": _abs,
    "within": _within, "div": _div, "floordiv": _div,
    **{n: whole_numbers(n) for n in ("floor", "ceil", "round", "trunc")},
}  # fmt: skip
