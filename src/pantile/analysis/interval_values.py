"""Intervals, and their ends as scalars of three modes: Python numbers, NumPy arrays or expressions.

    Interval(0, 4).hull(Interval(3, 9))  ->  Interval(0, 9)

A bound of None is unknown (plus or minus infinity).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ..dataclass import cached_property
from ..expr import build
from ..expr.linear import linear
from ..expr.nodes import Expr, node
from ..expr.types import INDEX
from .float_ends import is_number

# int | float | np.ndarray | Expr | None
Scalar = Any
Scope = Mapping[str, "Interval"]


@node()
class Interval:
    """An interval of values: low <= value <= high. For floats, `sure` says that no value is NaN."""

    low: Scalar
    high: Scalar
    sure: bool = field(default=False, kw_only=True)

    @staticmethod
    def point(value: Scalar) -> Interval:
        """Exactly one value."""
        return Interval(value, value)

    def evaluated(self) -> Interval:
        """The interval itself, or its value if it is lazy (see `LazyInterval`)."""
        return self

    @property
    def is_point(self) -> bool:
        return self.low is self.high and self.low is not None

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that contains both."""
        low = None if self.low is None or other.low is None else smin(self.low, other.low)
        high = None if self.high is None or other.high is None else smax(self.high, other.high)
        return Interval(low, high)

    def meet(self, other: Interval) -> Interval:
        """The intersection of both. A known bound takes precedence over an unknown one."""
        low = other.low if self.low is None else self.low if other.low is None else smax(self.low, other.low)
        high = other.high if self.high is None else self.high if other.high is None else smin(self.high, other.high)
        return Interval(low, high)


class LazyInterval(Interval):
    """A lazy interval, which is evaluated on first use: most names of a scope are never used."""

    find: Callable[[], Interval]

    def __init__(self, find: Callable[[], Interval]) -> None:
        object.__setattr__(self, "find", find)
        object.__setattr__(self, "sure", False)

    @cached_property
    def _interval(self) -> Interval:
        return self.find()

    def evaluated(self) -> Interval:
        return self._interval.evaluated()

    @property
    def low(self) -> Scalar:
        return self._interval.low

    @property
    def high(self) -> Scalar:
        return self._interval.high


EVERYTHING = Interval(None, None)
FARTHEST = 1 << 40  # indices beyond this exceed any memory


def smin(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of two scalars of any mode."""
    return _pick(a, b, min, np.minimum, build.minimum)


def smax(a: Scalar, b: Scalar) -> Scalar:
    """The larger of two scalars of any mode."""
    return _pick(a, b, max, np.maximum, build.maximum)


def _pick(
    a: Scalar, b: Scalar, python: Callable[..., Scalar], numpy: Callable[..., Scalar], symbolic: Callable[..., Scalar]
) -> Scalar:
    if type(a) is type(b) is int:
        return python(a, b)
    if a is b:
        return a
    if isinstance(a, Expr) or isinstance(b, Expr):
        number, other = (a, b) if isinstance(b, Expr) else (b, a)
        if type(number) is int and beyond_type(number, other):
            return number if python(number, 0) == number else other
        apart = _distance(a, b)
        if apart is None:
            return symbolic(a, b)
        return a if python(apart, 0) == apart else b
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return numpy(a, b)
    return python(a, b)


def beyond_type(number: int, other: Scalar) -> bool:
    """Whether the other operand is an integer expression of a type that the number does not fit."""
    return isinstance(other, Expr) and other.dtype.is_int and not other.dtype.min <= number <= other.dtype.max


def _distance(a: Scalar, b: Scalar) -> int | None:
    """a - b, if the two visibly differ by a constant. Choosing the smaller one at once keeps the hull of many taps
    short."""
    if not (isinstance(a, Expr) and isinstance(b, Expr)) or a.dtype.is_float:
        return None
    difference = linear(a).plus(linear(b), -1)
    return None if difference.terms else difference.constant


def lift(f: Callable[[Scalar, Scalar], Scalar], a: Scalar, b: Scalar) -> Scalar:
    return None if a is None or b is None else f(a, b)


def constant_of(r: Interval) -> int | float | None:
    """The value of an interval that contains a single number; otherwise None."""
    return r.low if is_number(r.low) and is_number(r.high) and r.low == r.high else None


def either(condition: Expr, a: Interval, b: Interval) -> Interval:
    """The interval `a` if a condition holds, and otherwise `b`. With this, compiled code, whose ends are expressions,
    computes no more of a stage than the check of a call, whose ends are numbers, has checked."""
    ends = ((build.expr(x, INDEX), build.expr(y, INDEX)) for x, y in ((a.low, b.low), (a.high, b.high)))
    return Interval(*(build.select(condition, x, y) for x, y in ends))
