"""Widen indices: indices that depend on data are computed in 64 bits where they may not fit in the usual 32 bits.

before:  lut[max(min(index(b[x]) + x, n), 0)]      after:  lut[index(max(min(int64(b[x]) + int64(x), int64(n)), 0))]

Coordinates and extents, and all values clamped to them, are those of arrays of less than 2^31 elements, so expressions
of these alone stay unchanged. Data may have any value of its type, unless it is clamped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from math import ceil, floor
from typing import NamedTuple

from ...analysis.float_ends import is_number
from ...analysis.interval import interval
from ...expr.build import cast
from ...expr.nodes import COMPARISON, Broadcast, Cast, Const, Expr, Op, Ramp, Shuffle, Var, const
from ...expr.types import INDEX, INT32, INT64
from ...expr.visit import children as operands
from ...expr.visit import each_once, names, rebuild_op
from ...expr.visit import rebuild as rebuilt
from ...ir.nodes import Let, Program, Stmt
from ...ir.visit import children, expressions, rebuild

_Range = tuple[int, int]
_NEAR = 1 << 30
_PLACE: _Range = (-_NEAR, _NEAR)  # coordinates, and the offsets that stencils add to them
_ANY: _Range = (INT64.min, INT64.max)


class _Ranged(NamedTuple):
    """A rewritten expression and the range of its values. The range is None for a plain index, which is near."""

    e: Expr
    range: _Range | None = None

    @property
    def numbers(self) -> _Range:
        return _PLACE if self.range is None else self.range

    @property
    def is_near(self) -> bool:
        return _PLACE[0] <= self.numbers[0] and self.numbers[1] <= _PLACE[1]

    @property
    def fits(self) -> bool:
        return INT32.min <= self.numbers[0] and self.numbers[1] <= INT32.max

    def narrow(self) -> Expr:
        """The expression as an index. The program guarantees that it fits."""
        return cast(INDEX, self.e) if self.e.dtype is INT64 else self.e


def widen_indices(program: Program) -> Program:
    """Compute indices that depend on data in 64 bits, so that they are correct whatever the data is."""
    far: dict[int, bool] = {}  # node id -> whether its indices contain data or a large constant
    return replace(program, kernels=tuple([replace(k, body=_visit(k.body, {}, far)) for k in program.kernels]))


def _visit(s: Stmt, known: Mapping[str, _Range], far: dict[int, bool]) -> Stmt:
    """Visit a statement. `known` has the lets of 64 bits."""
    visit = _Expressions(known, far)
    made = [visit.made(e) if visit.concerns(e) else _Ranged(e) for e in expressions(s)]
    if isinstance(s, Let) and s.value.dtype is INDEX and made[0].e.dtype is INT64:
        return Let(s.name, made[0].e, _visit(s.body, {**known, s.name: made[0].numbers}, far))
    if isinstance(s, Let) and s.name in known:
        known = {name: r for name, r in known.items() if name != s.name}
    new = [m.narrow() if e.dtype is INDEX else m.e for e, m in zip(expressions(s), made, strict=True)]
    return rebuild(s, tuple(new), tuple([_visit(c, known, far) for c in children(s)]))


class _Expressions:
    def __init__(self, known: Mapping[str, _Range], far: dict[int, bool]) -> None:
        self.known, self.far = known, far
        self.memo: dict[int, _Ranged] = {}

    def concerns(self, e: Expr) -> bool:
        """Whether an index of the expression may need 64 bits."""
        return not self.known.keys().isdisjoint(names(e)) or each_once(e, self.far, self._is_far)

    def _is_far(self, e: Expr) -> bool:
        if e.dtype is INDEX and (isinstance(e, Cast) or isinstance(e, Const) and abs(int(e.value)) > _NEAR):
            return True
        return any(self.far[id(c)] for c in operands(e))

    def made(self, e: Expr) -> _Ranged:
        if id(e) not in self.memo:
            self.memo[id(e)] = self.of_index(e) if e.dtype is INDEX else self.of_data(e)
        return self.memo[id(e)]

    def of_data(self, e: Expr) -> _Ranged:
        if not self.concerns(e):
            return _Ranged(e)
        parts = [self.made(c) for c in operands(e)]
        if isinstance(e, Op) and e.op in COMPARISON and any(p.e.dtype is INT64 for p in parts):
            return _Ranged(rebuild_op(e.op, tuple([cast(INT64, p.e) for p in parts])))
        if isinstance(e, Cast):
            return _Ranged(cast(e.dtype, parts[0].e))
        return self.as_it_is(e, parts)

    def as_it_is(self, e: Expr, parts: list[_Ranged]) -> _Ranged:
        if all(new.e is old for new, old in zip(parts, operands(e), strict=True)):
            return _Ranged(e)
        narrow = [p.narrow() if c.dtype is INDEX else p.e for c, p in zip(operands(e), parts, strict=True)]
        return _Ranged(rebuilt(e, tuple(narrow)))

    def of_index(self, e: Expr) -> _Ranged:
        if isinstance(e, Const):
            value = int(e.value)
            made = _Ranged(e, (value, value))
            return made if made.fits else _Ranged(const(value, INT64, e.lanes), made.range)
        if isinstance(e, Var):
            return _Ranged(Var(INT64, e.lanes, e.name), self.known[e.name]) if e.name in self.known else _Ranged(e)
        parts = [self.made(c) for c in operands(e)]
        if isinstance(e, Cast):
            return _of_cast(e, parts[0].e)
        if isinstance(e, (Broadcast, Ramp, Shuffle)):
            return self.of_lanes(e, parts)
        if not isinstance(e, Op):
            return self.as_it_is(e, parts)
        return self.of_operation(e, parts[1:] if e.op == "select" else parts, parts)

    def of_lanes(self, e: Broadcast | Ramp | Shuffle, parts: list[_Ranged]) -> _Ranged:
        """Rewrite a vector made of scalars or of other vectors."""
        values = _range_of_steps(e.lanes, *parts) if isinstance(e, Ramp) else _range_of_any(parts)
        if values is None or all(p.e.dtype is INDEX for p in parts) and _Ranged(e, values).fits:
            return _Ranged(self.as_it_is(e, parts).e, values)
        wider = tuple([cast(INT64, p.e) for p in parts])
        return _Ranged(Shuffle(INT64, e.lanes, wider, e.order) if isinstance(e, Shuffle) else rebuilt(e, wider), values)

    def of_operation(self, e: Op, values: list[_Ranged], parts: list[_Ranged]) -> _Ranged:
        if all(v.range is None for v in values):
            return self.as_it_is(e, parts)
        result_range = _range(e.op, values)
        if all(v.e.dtype is INDEX for v in values) and _Ranged(e, result_range).fits:
            return _Ranged(self.as_it_is(e, parts).e, result_range)
        wider = [p if p.e.dtype.is_bool else _Ranged(cast(INT64, p.e)) for p in parts]
        result = _Ranged(rebuild_op(e.op, tuple([w.e for w in wider])), result_range)
        return _Ranged(result.narrow(), result_range) if result.is_near else result


def _of_cast(e: Cast, value: Expr) -> _Ranged:
    """Rewrite data that is part of an index."""
    numbers = _of_data(value)
    made = _Ranged(cast(INDEX, value), numbers)
    return made if made.fits else _Ranged(cast(INT64, value), numbers)


def _of_data(value: Expr) -> _Range:
    """The range of data converted to an integer: that of its type, or a smaller one if the data is clamped."""
    t = value.dtype
    own = _ANY if t.is_float else (0, 1) if t.is_bool else (t.min, t.max)
    bounds = interval(value, {})
    if is_number(bounds.low) and is_number(bounds.high) and own[0] < bounds.low and bounds.high < own[1]:
        own = (floor(bounds.low), ceil(bounds.high))
    if t.is_float and own is not _ANY:
        own = (min(own[0], 0), max(own[1], 0))  # NaN becomes 0
    return _ANY if own[1] > INT64.max else own


def _range(name: str, values: list[_Ranged]) -> _Range | None:
    """The range of an operation's result, or None if it is near, as indices are."""
    rule = _RULES.get(name)
    if any(v.range is None for v in values) and all(v.is_near for v in values):
        return None
    low, high = _ANY if rule is None else rule(*[v.numbers for v in values])
    return max(low, _ANY[0]), min(high, _ANY[1])


def _range_of_any(parts: list[_Ranged]) -> _Range | None:
    """The range of a value that is one of several values."""
    if any(p.range is None for p in parts) and all(p.is_near for p in parts):
        return None
    return min(p.numbers[0] for p in parts), max(p.numbers[1] for p in parts)


def _range_of_steps(lanes: int, base: _Ranged, stride: _Ranged) -> _Range | None:
    """The range of all lanes of a ramp."""
    far = None if stride.range is None else _times(stride.range, (0, lanes - 1))
    return _range("add", [base, _Ranged(stride.e, far)])


def _times(a: _Range, b: _Range) -> _Range:
    all_ = [x * y for x, y in product(a, b)]
    return min(all_), max(all_)


def _most(a: _Range) -> int:
    return max(abs(a[0]), abs(a[1]))


_RULES: dict[str, Callable[..., _Range]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _times,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": lambda a: (0, _most(a)),
    "floordiv": lambda a, b: (-_most(a), _most(a)),
    "mod": lambda a, b: (min(b[0], 0), max(b[1], 0)),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "select": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "within": lambda a, low, high: (low[0], high[1]),
}
