"""The interval evaluator: which values an expression can take while its variables range over intervals.

There is one implementation, generic in its scalars. With Python ints it checks a call's regions, with NumPy arrays the
cost model evaluates many candidate tiles at once, and with expressions it builds the arithmetic that computes a tile's
bounds at run time.

    interval(2*x + 1, {"x": Interval(0, 9)})  ->  Interval(1, 19)

Constants stay Python numbers in every mode. A bound of None is unknown (plus or minus infinity). Arithmetic of type
index is exact. That of data wraps: its result is known only where it provably stays within its type. Ends that are
expressions are indices; those of floats are of their type (`float_ends`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ..cached import cached_property
from ..expr import build
from ..expr.linear import Facts, linear
from ..expr.magnitude import Magnitudes
from ..expr.nodes import COMPARISON, Bits, Broadcast, Cast, Const, Expr, Load, Op, Ramp, Var, const, node, op
from ..expr.types import INDEX, INT64, UINT64, DType
from ..expr.visit import children, has_floats, loaded, names, once_per_node, operands_first, walk
from . import float_ends
from .divisors import may_divide_by_zero
from .float_ends import is_number

# int | float | np.ndarray | Expr | None
Scalar = Any
Scope = Mapping[str, "Interval"]
_DEEPEST = 2  # the nesting depth of conditions that refine a scope
MOST_SCOPES = 32  # scopes that an expression is evaluated in, one for each path to it through selects


@node()
class Interval:
    """An interval of values: low <= value <= high. For floats, `sure` says that none of them is NaN."""

    low: Scalar
    high: Scalar
    sure: bool = field(default=False, kw_only=True)

    @staticmethod
    def point(value: Scalar) -> Interval:
        """Exactly one value."""
        return Interval(value, value)

    def evaluated(self) -> Interval:
        """The interval itself, evaluated if it is lazy; see `LazyInterval`."""
        return self

    @property
    def is_point(self) -> bool:
        return self.low is self.high and self.low is not None

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        low = None if self.low is None or other.low is None else smin(self.low, other.low)
        high = None if self.high is None or other.high is None else smax(self.high, other.high)
        return Interval(low, high)

    def meet(self, other: Interval) -> Interval:
        """The intersection of both; an unknown bound gives way."""
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
        apart = _distance(a, b)
        if apart is None:
            return symbolic(a, b)
        return a if python(apart, 0) == apart else b
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return numpy(a, b)
    return python(a, b)


def _distance(a: Scalar, b: Scalar) -> int | None:
    """a - b, if they visibly differ by a constant: taking the smaller at once keeps the hull of many taps short."""
    if not (isinstance(a, Expr) and isinstance(b, Expr)) or a.dtype.is_float:
        return None
    difference = linear(a).plus(linear(b), -1)
    return None if difference.terms else difference.constant


def _lift(f: Callable[[Scalar, Scalar], Scalar], a: Scalar, b: Scalar) -> Scalar:
    return None if a is None or b is None else f(a, b)


def values_of(buffer: str) -> str:
    """The name under which a scope holds the range of a buffer's values, where more is known of it than its type."""
    return f"{buffer}[]"


def interval(e: Expr, scope: Scope) -> Interval:
    """The values of `e`; a variable that is not in scope stands for itself."""
    return Evaluator(scope).visit(e)


class Evaluator:
    """Evaluates an expression, once per shared node and without recursion. The branches of selects are evaluated under
    what their conditions imply, each by another evaluator.

    A node that is shared by many such branches is evaluated under some of their conditions and then under none, because
    there may be as many sets of conditions as there are paths through the selects.
    """

    def __init__(self, scope: Scope, outermost: Evaluator | None = None) -> None:
        self.scope = scope
        self.memo: dict[int, Interval] = {}
        self.outermost = outermost  # None: this is the outermost one
        self.is_loose = False  # of the outermost: whether it was used in the place of one whose scope is narrower
        self.often: dict[int, int] = {} if outermost is None else outermost.often
        self.branches: dict[tuple[int, bool], tuple[Expr, Evaluator]] = {}
        self.made: list[Expr] = []  # expressions that only the memo, by their ids, refers to

    def of_made(self, e: Expr) -> Interval:
        """Evaluate an expression that was built for this purpose, and keep it alive as long as the memo has its id."""
        self.made.append(e)
        return self.visit(e)

    def visit(self, e: Expr) -> Interval:
        known = self.memo.get(id(e))
        if known is not None:
            return known
        stack = [(self, e)]
        while stack:
            evaluator, node = stack[-1]
            if id(node) in evaluator.memo:
                stack.pop()
                continue
            waiting = []
            for inner, c in evaluator.operands(node):
                if id(c) not in inner.memo:
                    if c.operands:
                        waiting.append((inner, c))
                    else:
                        inner.note(c)
            if waiting:
                stack += reversed(waiting)
                continue
            stack.pop()
            evaluator.note(node)
        return self.memo[id(e)]

    def note(self, e: Expr) -> None:
        """Evaluate a node whose operands are in the memo."""
        self.memo[id(e)] = self.node(e)
        self.often[id(e)] = self.often.get(id(e), 0) + 1

    def within(self, condition: Expr, holds: bool) -> Evaluator:
        """The evaluator of a branch that is taken where `condition` holds (or does not)."""
        known = (id(condition), holds)
        if known not in self.branches:
            scope = refine(self.scope, condition, holds, self)
            inner = self if scope is self.scope else Evaluator(scope, self.outermost or self)
            self.branches[known] = (condition, inner)
        return self.branches[known][1]

    def of(self, e: Expr) -> Evaluator:
        """The evaluator for a node that is reached in this scope: this one for variables and constants, which take no
        time."""
        if id(e) in self.memo or not e.operands:
            return self
        return self.unless_often(self.often.get(id(e), 0))

    def unless_often(self, times: int) -> Evaluator:
        """This evaluator, or the outermost one for a node that has been evaluated in too many scopes."""
        if times < MOST_SCOPES or self.outermost is None:
            return self
        self.outermost.is_loose = True
        return self.outermost

    def operands(self, e: Expr) -> list[tuple[Evaluator, Expr]]:
        """The operands that `node` needs, and the evaluators that evaluate them."""
        if not isinstance(e, (Op, Cast, Broadcast, Ramp)) or e.dtype.is_bool or self.is_scalar(e):
            return []
        if isinstance(e, Op) and e.op == "select":
            condition, then, otherwise = e.args
            sides = [(self.within(condition, True), then), (self.within(condition, False), otherwise)]
            return [(by.of(c), c) for by, c in sides]
        if isinstance(e, Op) and e.op not in (_FLOAT_OPS if e.dtype.is_float else _OPS):
            return []
        return [(self.of(c), c) for c in e.operands]

    def known(self, e: Expr) -> Interval:
        """The interval of an operand, which is in the memo."""
        return self.of(e).memo[id(e)]

    def node(self, e: Expr) -> Interval:
        if isinstance(e, Const):
            if e.dtype.is_float:
                return _rounded(Interval(e.value, e.value, sure=True), e.dtype)
            return Interval.point(int(e.value))
        if isinstance(e, Var) and e.name in self.scope:
            return _given(self.scope[e.name], e.dtype)
        if isinstance(e, Var) and e.dtype in float_ends.COMPUTED:
            return Interval(e, e, sure=True)
        if self.is_scalar(e):  # both ends share it: otherwise each use would double the expression
            return Interval.point(build.cast(INDEX, e))
        if e.dtype.is_bool:
            return Interval(0, 1)
        if isinstance(e, Op):
            return self.operation(e)
        if isinstance(e, Cast):
            r = self.known(e.value)
            result = _cast(r, e.value.dtype, e.dtype)
            return _in_order(e, r, result) if e.value.dtype.is_float and not e.dtype.is_float else result
        if isinstance(e, Load):
            return self.scope.get(values_of(e.buffer)) or type_range(e.dtype)
        if isinstance(e, Bits):
            return type_range(e.dtype)
        if isinstance(e, Broadcast):
            return self.known(e.value)
        if isinstance(e, Ramp):
            step = _OPS["mul"](self.known(e.stride), Interval(0, e.lanes - 1))
            return _OPS["add"](self.known(e.base), step)
        return EVERYTHING

    def is_scalar(self, e: Expr) -> bool:
        """Whether an expression is one number at run time, so that it is its own bound, wrapped or not.

        Floats may be rounded otherwise at the next place, and uint64 has numbers that no index has.
        """
        own = names(e)
        if not own or not self.scope.keys().isdisjoint(own) or not e.dtype.is_int or e.dtype is UINT64 or e.lanes > 1:
            return False
        return not loaded(e) and (e.dtype is INDEX or not has_floats(e))

    def operation(self, e: Op) -> Interval:
        if e.op in COMPARISON or e.dtype.is_bool:
            return Interval(0, 1)
        if e.op == "select":
            return self.select(e)
        if e.op == "popcount":
            return Interval(0, e.dtype.bits)
        if e.dtype.is_float:
            return self.float_operation(e)
        rule = _OPS.get(e.op)
        if rule is None:
            return type_range(e.dtype)
        result = rule(*[self.known(a) for a in e.args])
        if e.dtype is INDEX:
            return result
        return _wrapped(result, e.dtype) if e.op in _MAY_WRAP else _held(result, e.dtype)

    def float_operation(self, e: Op) -> Interval:
        rule = _FLOAT_OPS.get(e.op)
        if rule is None:
            return EVERYTHING
        operands = [self.known(a) for a in e.args]
        result = rule(*operands)
        sure = all(r.sure for r in operands)
        if may_divide_by_zero(e) and isinstance(operands[1].low, Expr):
            result, sure = result if operands[1].is_point else EVERYTHING, False
        result = _rounded(Interval(result.low, result.high, sure=sure), e.dtype)
        if float_ends.may_be_rounded_otherwise(e):
            result = Interval(*float_ends.outwards(result.low, result.high, e.dtype), sure=result.sure)
        return _whole("floor")(result) if e.op == "floordiv" else result

    def select(self, e: Op) -> Interval:
        condition, then, otherwise = e.args
        a, b = self.within(condition, True).known(then), self.within(condition, False).known(otherwise)
        both = a.hull(b)
        return Interval(both.low, both.high, sure=a.sure and b.sure)


_FARTHEST = 1 << 40
_MAY_WRAP = {"add", "sub", "neg", "mul", "floordiv", "abs", "shl"}


def type_range(t: DType) -> Interval:
    """All values of a type; floats count as unbounded."""
    return EVERYTHING if t.is_float else Interval(t.min, t.max)


def _given(r: Interval, t: DType) -> Interval:
    """The range of a variable; the value of a param in a call is rounded to its type."""
    return _rounded(Interval(r.low, r.high, sure=True), t) if t.is_float and r.bounded else r


def _rounded(r: Interval, t: DType) -> Interval:
    """Round the ends: rounding is monotonic, so they bound all rounded values. An end that is NaN is unknown."""
    low = float_ends.rounded(r.low, t)
    high = low if r.is_point else float_ends.rounded(r.high, t)
    return Interval(low, high, sure=r.sure and float_ends.is_finite(low) and float_ends.is_finite(high))


def _constant(r: Interval) -> int | float | None:
    """The value of an interval that has only one, if it is a number."""
    return r.low if is_number(r.low) and is_number(r.high) and r.low == r.high else None


def _wrapped(r: Interval, t: DType) -> Interval:
    """The range of wrapping arithmetic: the result if it fits the type, or the value that a single number wraps to."""
    if not (is_number(r.low) and is_number(r.high)):
        return r if _fits(r, t) else _wrapped_in_code(r, t)
    if t.min <= r.low and r.high <= t.max:
        return r
    return Interval.point(const(r.low, t).value) if r.low == r.high else type_range(t)


def _wrapped_in_code(r: Interval, t: DType) -> Interval:
    """The range of wrapping arithmetic with symbolic ends: compiled code compares them, in 64 bits, with the type's
    range."""
    whole = type_range(t)
    if t is UINT64 or not r.bounded or not all(isinstance(end, Expr) or _is_index(end) for end in (r.low, r.high)):
        return whole
    low, high = (build.expr(end, INDEX) for end in (r.low, r.high))
    wrapped = Interval.point(build.cast(INDEX, build.cast(t, low)))
    if r.is_point:
        return wrapped
    if not all(map(Magnitudes().fits, (low, high))):
        return whole
    return _either(build.logical_and(low >= t.min, high <= t.max), r, _either(low == high, wrapped, whole))


def _is_index(end: Scalar) -> bool:
    """Whether an end is a number within the range of indices."""
    return is_number(end) and INDEX.min <= end <= INDEX.max


def _held(r: Interval, t: DType) -> Interval:
    """The interval with unknown ends replaced by those of the type."""
    whole = type_range(t)
    return Interval(whole.low if r.low is None else r.low, whole.high if r.high is None else r.high)


def _cast(r: Interval, source: DType, to: DType) -> Interval:
    if to.is_float:
        return _rounded(r if source.is_float else Interval(r.low, r.high, sure=True), to)
    if to.is_bool:
        return Interval(0, 1)
    if source.is_float:
        return _truncated(r, to)
    if source is INDEX and to is INT64:
        return r
    if to is INDEX:
        return _near(_wrapped(r, INDEX) if source is UINT64 else r)
    return _held(r, source) if to.min <= source.min and source.max <= to.max else _wrapped(r, to)


def _fits(r: Interval, t: DType) -> bool:
    """Whether symbolic ends, such as clamped ones, are certainly within the range of a type.

    They are never for uint64, with whose values they would be combined, because an index cannot hold all of those.
    """
    if t is UINT64 or not (isinstance(r.low, Expr) or isinstance(r.high, Expr)) or not r.bounded:
        return False
    low, high = _numbers(r)
    return low is not None and high is not None and t.min <= low and high <= t.max


def _numbers(r: Interval) -> tuple[float | None, float | None]:
    """Numbers that bound the ends of a bounded interval, where some are known; they may be larger than any index."""

    def bound(end: Scalar, side: int) -> float | None:
        return Facts().bound(linear(end), side) if isinstance(end, Expr) else end

    return bound(r.low, -1), bound(r.high, 1)


def _near(r: Interval) -> Interval:
    """The range of data that is cast to an index. Ends beyond any memory are as good as unknown, and arithmetic on them
    might overflow. A single number is a param of a call, whose arithmetic is checked."""
    if _constant(r) is not None:
        return r
    low, high = (None if is_number(end) and abs(end) > _FARTHEST else end for end in (r.low, r.high))
    return Interval(low, high)


def _truncated(r: Interval, to: DType) -> Interval:
    """The range of floats that are cast to an integer type, whose range saturates them. NaN becomes 0."""
    result = _held(Interval(*(float_ends.truncated(end, to) for end in (r.low, r.high))), to)
    return result if r.sure else result.hull(Interval(0, 0))


def _in_order(e: Cast, r: Interval, cast: Interval) -> Interval:
    """The range of floats as integers, `cast`, or that of the whole type where ends that code computes are NaN."""
    if not isinstance(r.low, Expr) or not cast.bounded or not any(map(may_divide_by_zero, walk(e.value))):
        return cast
    if e.dtype is UINT64:  # an index cannot hold all of its values
        return type_range(e.dtype)
    limits = (cast.low, e.dtype.min), (cast.high, e.dtype.max)
    return Interval(*(build.select(r.low <= r.high, build.expr(end, INDEX), most) for end, most in limits))


def _ends(f: Callable[[Scalar, Scalar], Scalar], low: tuple[Scalar, Scalar], high: tuple[Scalar, Scalar]) -> Interval:
    """f for each end; once if both have the same operands, so that a point stays a point."""
    (a, b), (c, d) = low, high
    least = None if a is None or b is None else f(a, b)
    return Interval(least, least if a is c and b is d else None if c is None or d is None else f(c, d))


def _add(a: Interval, b: Interval) -> Interval:
    return _ends(operator.add, (a.low, b.low), (a.high, b.high))


def _sub(a: Interval, b: Interval) -> Interval:
    return _ends(operator.sub, (a.low, b.high), (a.high, b.low))


def _neg(a: Interval) -> Interval:
    return _sub(Interval.point(0), a)


def _mul(a: Interval, b: Interval) -> Interval:
    if _constant(a) is not None:
        a, b = b, a
    factor = _constant(b)
    if factor is not None:
        if factor == 0:
            return Interval(0, 0)
        least, most = (a.low, a.high) if factor > 0 else (a.high, a.low)
        return _ends(operator.mul, (least, factor), (most, factor))
    if a.is_point and b.is_point:
        return Interval.point(a.low * b.low)
    if not (a.bounded and b.bounded):
        return EVERYTHING
    if a.is_point:
        products = [a.low * b.low, a.low * b.high]
    elif b.is_point:
        products = [a.low * b.low, a.high * b.low]
    else:
        products = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    low = high = products[0]
    for p in products[1:]:
        low, high = smin(low, p), smax(high, p)
    return Interval(low, high)


def _floordiv(a: Interval, b: Interval) -> Interval:
    d = _constant(b)
    if d is not None:
        if d == 0:
            return Interval(0, 0)
        least, most = (a.low, a.high) if d > 0 else (a.high, a.low)
        return _ends(operator.floordiv, (least, d), (most, d))
    if a.is_point and b.is_point:
        return Interval.point(a.low // b.low)
    # |a // b| <= |a| for |b| >= 1, and floor may add one below.
    anything = _symmetric(a)
    if not (a.bounded and b.bounded) or not (isinstance(b.low, Expr) or isinstance(b.high, Expr)):
        return anything
    low, high, by = (build.expr(end, INDEX) for end in (a.low, a.high, b.low))
    exact = Interval(smin(low // by, high // by), smax(low // by, high // by))
    return exact if b.is_point else _either(b.low == b.high, exact, anything)


def _either(condition: Expr, a: Interval, b: Interval) -> Interval:
    """One interval where a condition holds, another one elsewhere. So compiled code, whose ends are expressions,
    computes no more of a stage than the check of a call, whose ends are numbers, has checked."""
    ends = ((build.expr(x, INDEX), build.expr(y, INDEX)) for x, y in ((a.low, b.low), (a.high, b.high)))
    return Interval(*(build.select(condition, x, y) for x, y in ends))


def _symmetric(a: Interval) -> Interval:
    if not a.bounded:
        return EVERYTHING
    reach = smax(smax(a.low, 0 - a.low), smax(a.high, 0 - a.high))
    return Interval(0 - reach - 1, reach + 1)


def _mod(a: Interval, b: Interval) -> Interval:
    d = _constant(b)
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
    return Interval(_lift(smin, a.low, b.low), high)


def _max(a: Interval, b: Interval) -> Interval:
    low = a.low if b.low is None else b.low if a.low is None else smax(a.low, b.low)
    return Interval(low, _lift(smax, a.high, b.high))


def _abs(a: Interval) -> Interval:
    return Interval(0, _lift(smax, a.high, None if a.low is None else 0 - a.low))


def _shl(a: Interval, b: Interval) -> Interval:
    shift = _constant(b)
    return _mul(a, Interval.point(1 << int(shift))) if shift is not None and 0 <= shift < 63 else EVERYTHING


def _shr(a: Interval, b: Interval) -> Interval:
    shift = _constant(b)
    return _floordiv(a, Interval.point(1 << int(shift))) if shift is not None and 0 <= shift < 64 else EVERYTHING


def _and(a: Interval, b: Interval) -> Interval:
    masks = [m for m in map(_constant, (a, b)) if m is not None and m >= 0]
    return Interval(0, min(masks)) if masks else EVERYTHING


def _within(a: Interval, low: Interval, high: Interval) -> Interval:
    return a.meet(Interval(low.low, high.high))


def _float_mul(a: Interval, b: Interval) -> Interval:
    constants = [c for c in map(_constant, (a, b)) if c is not None]
    if 0 in constants and not (a.bounded and b.bounded) or any(not float_ends.is_finite(c) for c in constants):
        return EVERYTHING
    return _mul(a, b) if constants else _corners(operator.mul, a, b)


def _div(a: Interval, b: Interval) -> Interval:
    d = _constant(b)
    if d is None:
        return _corners(operator.truediv, a, b)
    if d == 0 or not float_ends.is_finite(d):
        return EVERYTHING
    least, most = (a.low, a.high) if d > 0 else (a.high, a.low)
    return _ends(operator.truediv, (least, d), (most, d))


def _corners(f: Callable[[Scalar, Scalar], Scalar], a: Interval, b: Interval) -> Interval:
    """The range of a product or quotient of floats neither of which is one known number."""
    if a.is_point and b.is_point and isinstance(b.low, Expr):
        return Interval.point(f(a.low, b.low))
    ends = [(r.low,) if r.is_point else (r.low, r.high) for r in (a, b)]
    return Interval(*float_ends.corners(f, *ends)) if a.bounded and b.bounded else EVERYTHING


def _whole(name: str) -> Callable[[Interval], Interval]:
    def rule(a: Interval) -> Interval:
        low = float_ends.whole(name, a.low)
        return Interval(low, low if a.is_point else float_ends.whole(name, a.high), sure=a.sure)

    return rule


_OPS: dict[str, Callable[..., Interval]] = {
    "add": _add, "sub": _sub, "neg": _neg, "mul": _mul, "floordiv": _floordiv, "mod": _mod, "min": _min, "max": _max,
    "abs": _abs, "shl": _shl, "shr": _shr, "and": _and, "within": _within,
}  # fmt: skip
_FLOAT_OPS: dict[str, Callable[..., Interval]] = {
    "add": _add, "sub": _sub, "neg": _neg, "mul": _float_mul, "min": _min, "max": _max, "abs": _abs,
    "within": _within, "div": _div, "floordiv": _div, **{n: _whole(n) for n in ("floor", "ceil", "round", "trunc")},
}  # fmt: skip


class IntervalProgram:
    """Index arithmetic on constants and variables, compiled to the list of steps that `interval` would take, to be
    evaluated in many scopes."""

    def __init__(self, e: Expr) -> None:
        self._e, self._names = e, names(e)
        self._steps: list[tuple[Callable[..., Interval], tuple[int, ...]] | Interval | str] | None = []
        positions: dict[int, int] = {}
        for n in operands_first(e):
            step = _step(n, positions)
            if step is None:
                self._steps = None
                break
            positions[id(n)] = len(self._steps)
            self._steps.append(step)

    def interval(self, scope: Scope) -> Interval:
        """The interval of the expression in a scope."""
        if self._steps is None or not all(name in scope for name in self._names):
            return interval(self._e, scope)
        results: list[Interval] = []
        for step in self._steps:
            if isinstance(step, tuple):
                results.append(step[0](*[results[k] for k in step[1]]))
            else:
                results.append(scope[step] if isinstance(step, str) else step)
        return results[-1]


def _step(
    e: Expr, positions: Mapping[int, int]
) -> tuple[Callable[..., Interval], tuple[int, ...]] | Interval | str | None:
    """The step of a node: a rule and the positions of its operands' steps, the interval of a constant, or the name of a
    variable; None for any other node."""
    if e.dtype is not INDEX:
        return None
    if isinstance(e, Const):
        return Interval.point(int(e.value))
    if isinstance(e, Var):
        return e.name
    if isinstance(e, Op) and e.op in _OPS:
        return _OPS[e.op], tuple(positions[id(c)] for c in e.args)
    return None


def refine(scope: Scope, condition: Expr, holds: bool, by: Evaluator | None = None) -> Scope:
    """The scope where `condition` holds (or does not), with variables bounded by its comparisons; the same object if
    none is. `by` is an evaluator that may have evaluated parts of the condition in this scope.

    Deeply nested conditions are ignored: each would be evaluated for all paths through the conditions inside of it."""
    if _depth(condition) > _DEEPEST:
        return scope
    stack = [(condition, holds)]
    while stack:
        c, wanted = stack.pop()
        if not isinstance(c, Op):
            continue
        if c.op == "not":
            stack.append((c.args[0], not wanted))
        elif c.op == ("and" if wanted else "or"):
            stack += [(c.args[1], wanted), (c.args[0], wanted)]
        elif c.op in COMPARISON and c.args[0].dtype is INDEX:
            scope = _refine_comparison(scope, c if wanted else op(_OPPOSITE[c.op], *c.args), by)
    return scope


def narrowed_by(condition: Expr) -> frozenset[str]:
    """The variables that `refine` may bound: none for y % 2 == 0."""
    variables: set[str] = set()
    stack = [condition]
    while stack:
        c = stack.pop()
        if isinstance(c, Op) and c.op in ("not", "and", "or"):
            stack += c.args
        elif isinstance(c, Op) and c.op in COMPARISON and c.args[0].dtype is INDEX:
            form = linear(c.args[0]).plus(linear(c.args[1]), -1)
            variables.update(_named(atom) for atom, _ in form.terms.values())
    return frozenset(variables)


@once_per_node("_depth")
def _depth(e: Expr) -> int:
    """The nesting depth of conditions of selects."""
    below = [_depth(c) for c in children(e)]
    if isinstance(e, Op) and e.op == "select":
        below[0] += 1
    return max(below, default=0)


def _refine_comparison(scope: Scope, c: Op, by: Evaluator | None) -> Scope:
    a, b = c.args
    for x, y, strict in {
        "le": [(a, b, 0)],
        "lt": [(a, b, 1)],
        "ge": [(b, a, 0)],
        "gt": [(b, a, 1)],
        "eq": [(a, b, 0), (b, a, 0)],
        "ne": [],
    }[c.op]:
        scope = _refine_le(scope, x, y, strict, by if by is not None and by.scope is scope else Evaluator(scope))
    return scope


_NEVER = "#never"  # a name with an empty interval, in the scope of a branch that is certainly not taken
_OPPOSITE = {"le": "gt", "lt": "ge", "ge": "lt", "gt": "le", "eq": "ne", "ne": "eq"}


def _refine_le(scope: Scope, a: Expr, b: Expr, strict: int, by: Evaluator) -> Scope:
    """Use a + strict <= b, that is c*v + rest <= 0 for each variable v."""
    form = linear(a).plus(linear(b), -1)
    if not any(_named(atom) in scope for atom, _ in form.terms.values()):
        low = by.of_made(form.expr()).low
        return {**scope, _NEVER: Interval(1, 0)} if is_number(low) and low + strict > 0 else scope
    bounds: dict[str, Interval] = {}
    for k, (atom, c) in form.terms.items():
        name = _named(atom)
        if name in scope:
            rest = form.without(k)
            low = by.of_made(rest.expr()).low
            if low is None:
                continue
            limit = 0 - (low + strict)
            side = Interval(None, limit // c) if c > 0 else Interval(0 - limit // (0 - c), None)
            bounds[name] = bounds.get(name, scope[name]).meet(side)
    return {**scope, **bounds} if bounds else scope


def _named(atom: Expr) -> str:
    """The name of the variable that an atom is, a coordinate or a param cast to an index; otherwise an empty string."""
    e = atom.value if isinstance(atom, Cast) else atom
    return e.name if isinstance(e, Var) else ""
