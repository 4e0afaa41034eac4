"""Indices as linear forms of loop variables, in numbers: how a read moves with loops.

    f[2*y + 1, clamp(x - 1, 0, w)]   ->   (y: 2, at 1), (x: 1, at -1)
    f[(y + 1) // 2, lut[x] + c]      ->   (y: 1/2, at 1/2, rounded), (c: 1, at a value that depends on data, by x)

Clamps and mirrors at edges count as the index inside of them: costs are those of interior pixels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import ceil, floor, isfinite

from ..dataclass import value
from ..expr.nodes import Cast, Const, Expr, Load, Number, Op, Var
from ..expr.visit import each_once, names

Slopes = tuple[tuple[str, float], ...]


@value()
class LinearForm:
    """The sum of slope * variable, plus a value from `low` to `high`, or plus any value that depends on `decided`."""

    slopes: Slopes
    low: float
    high: float
    decided: frozenset[str] | None = None  # variables on which it depends through data, or otherwise not linearly
    rounded: float = 0.0  # down, by at most this much
    clamped: bool = False  # at an edge, or otherwise not linear

    def places(self, extents: Mapping[str, int]) -> float:
        """The most distinct values that the form takes while each variable takes this number of values. If a division
        leaves no remainder, it is known where they begin: blocks begin at multiples of their sizes."""
        if self.decided is not None:
            return UNKNOWN
        moved = 0.0
        for v, s in self.slopes:
            moved += abs(s) * (extents.get(v, 1) - 1)
        span = self.high - self.low + moved
        if not self.rounded:
            return ceil(span - NOTHING) + 1
        if all((s * extents.get(v, 1)).is_integer() for v, s in self.slopes):
            first = floor(self.low + NOTHING)
            return floor(self.low + span + NOTHING) - first + 1
        return floor(span + self.rounded + NOTHING) + 1

    def slope(self, variable: str) -> float:
        for v, s in self.slopes:
            if v == variable:
                return s
        return 0.0


UNKNOWN = 1e18  # farther than any buffer reaches
NOTHING = 1e-6  # tolerance around an integer


def index_form(e: Expr, loops: Collection[str], scalars: Mapping[str, Number]) -> LinearForm:
    """Return the linear form of an index."""
    memo: dict[int, LinearForm] = {}

    def visit(node: Expr) -> LinearForm:
        return _node(node, [memo[id(c)] for c in _operands(node)], loops, scalars)

    return each_once(e, memo, visit, _operands)


def _operands(e: Expr) -> tuple[Expr, ...]:
    return () if isinstance(e, Load) else e.operands


def _node(e: Expr, parts: list[LinearForm], loops: Collection[str], scalars: Mapping[str, Number]) -> LinearForm:
    if isinstance(e, Const):
        return _constant(float(e.value))
    if isinstance(e, Var):
        return LinearForm(((e.name, 1.0),), 0.0, 0.0) if e.name in loops else _constant(float(scalars.get(e.name, 0)))
    if isinstance(e, Cast):
        return parts[0]
    form = _operation(e, parts) if isinstance(e, Op) else None
    return form if form and _is_finite(form) else LinearForm((), 0.0, 0.0, frozenset(loops) & names(e))


def _constant(value: float) -> LinearForm:
    """A constant form. A value that is not finite is an unknown index that no loop changes."""
    return LinearForm((), value, value) if isfinite(value) else LinearForm((), 0.0, 0.0, frozenset())


def _is_finite(form: LinearForm) -> bool:
    return all(map(isfinite, (form.low, form.high, form.rounded, *(slope for _, slope in form.slopes))))


def _operation(e: Op, parts: list[LinearForm]) -> LinearForm | None:
    first, second = parts[0], parts[1] if len(parts) > 1 else _constant(0.0)
    if e.op == "within":  # a mirrored or repeated index is itself, inside of the limits
        return replace(first, clamped=True)
    if e.op == "select":
        return replace(second if second.slopes else parts[2], clamped=True)
    if e.op == "neg":
        return _scaled(first, -1.0)
    if e.op in ("add", "sub"):
        return _plus(first, _scaled(second, 1.0 if e.op == "add" else -1.0))
    if e.op == "mul":
        return _times(first, second)
    if e.op == "div" and not second.slopes and second.low == second.high and second.low and second.decided is None:
        return _scaled(first, 1 / second.low)
    if e.op in ("floor", "ceil", "round", "trunc"):
        return replace(first, rounded=first.rounded + 1 - NOTHING)
    if e.op in ("min", "max"):
        return replace(first if first.slopes or first.decided is not None else second, clamped=True)
    if e.op in ("floordiv", "mod") and not second.slopes and second.low == second.high > 0 and first.decided is None:
        return (_divided if e.op == "floordiv" else _remainder)(first, second.low)
    return None


def _divided(form: LinearForm, by: float) -> LinearForm:
    quotient = _scaled(form, 1 / by)
    if form.slopes or not _is_finite(quotient):
        return replace(quotient, rounded=quotient.rounded + (by - 1) / by)
    return LinearForm((), floor(quotient.low), floor(quotient.high))


def _remainder(form: LinearForm, by: float) -> LinearForm:
    return LinearForm((), 0.0, by - 1, clamped=True) if form.slopes else _constant(form.low % by)


def _scaled(form: LinearForm, by: float) -> LinearForm:
    ends = sorted((form.low * by, form.high * by))
    slopes = tuple((v, s * by) for v, s in form.slopes if by)
    return LinearForm(slopes, ends[0], ends[1], form.decided, form.rounded * abs(by), form.clamped)


def _plus(a: LinearForm, b: LinearForm) -> LinearForm:
    decided = a.decided if b.decided is None else b.decided if a.decided is None else a.decided | b.decided
    rounded, clamped = a.rounded + b.rounded, a.clamped or b.clamped
    if not b.slopes:
        return LinearForm(a.slopes, a.low + b.low, a.high + b.high, decided, rounded, clamped)
    total = dict(a.slopes)
    for v, s in b.slopes:
        total[v] = total.get(v, 0.0) + s
    kept = tuple(sorted((v, s) for v, s in total.items() if s))
    return LinearForm(kept, a.low + b.low, a.high + b.high, decided, rounded, clamped)


def _times(a: LinearForm, b: LinearForm) -> LinearForm | None:
    for x, y in ((a, b), (b, a)):
        if not x.slopes and x.low == x.high and x.decided is None:
            return _scaled(y, x.low)
    return None
