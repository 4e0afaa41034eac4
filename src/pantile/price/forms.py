"""Indices as linear forms of loop variables, in numbers: where a read moves as loops go on.

    f[2*y + 1, clamp(x - 1, 0, w)]   ->   (y: 2, at 1), (x: 1, at -1)
    f[y // 2, lut[x]]                ->   (y: 1/2, at -1/2 to 0), unknown: anywhere

Clamps and mirrors at edges count as what they clamp: prices are those of the inner pixels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..expr.nodes import Cast, Const, Expr, Number, Op, Var
from ..expr.visit import each_once, loaded

Slopes = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Form:
    """The sum of slope * variable, plus something from `low` to `high`."""

    slopes: Slopes
    low: float
    high: float

    def span(self, extents: Mapping[str, int]) -> float:
        """How far apart the places are that it takes while variables run over so many values each."""
        return self.high - self.low + sum(abs(s) * (extents.get(v, 1) - 1) for v, s in self.slopes)

    def slope(self, variable: str) -> float:
        return next((s for v, s in self.slopes if v == variable), 0.0)


_Part = tuple[Form | None]  # what a node is, or that it is unknown


def index_form(e: Expr, loops: Collection[str], scalars: Mapping[str, Number]) -> Form | None:
    """The form of an index; None where data or anything but sums decides."""
    if loaded(e):
        return None
    memo: dict[int, _Part] = {}

    def visit(node: Expr) -> _Part:
        return (_node(node, [memo[id(c)][0] for c in node.operands], loops, scalars),)

    return each_once(e, memo, visit)[0]


def _node(e: Expr, parts: list[Form | None], loops: Collection[str], scalars: Mapping[str, Number]) -> Form | None:
    if isinstance(e, Const):
        return _constant(float(e.value))
    if isinstance(e, Var):
        return Form(((e.name, 1.0),), 0.0, 0.0) if e.name in loops else _constant(float(scalars.get(e.name, 0)))
    if isinstance(e, Cast):
        return parts[0]
    if isinstance(e, Op):
        return _operation(e, parts)
    return None


def _constant(value: float) -> Form:
    return Form((), value, value)


def _operation(e: Op, parts: list[Form | None]) -> Form | None:
    first = parts[0]
    if e.op == "within":  # a mirrored or repeated index is itself, inside of the limits
        return first
    if e.op == "select":
        return parts[1] if parts[1] is not None and parts[1].slopes else parts[2]
    if any(p is None for p in parts) or first is None:
        return None
    second = parts[1] if len(parts) > 1 else None
    if e.op == "neg":
        return _scaled(first, -1.0)
    if second is None:
        return None
    if e.op in ("add", "sub"):
        return _plus(first, _scaled(second, 1.0 if e.op == "add" else -1.0))
    if e.op == "mul":
        return _times(first, second)
    if e.op in ("min", "max"):
        return first if first.slopes else second
    if e.op == "floordiv" and not second.slopes and second.low == second.high > 0:
        by = second.low
        divided = _scaled(first, 1 / by)
        return Form(divided.slopes, divided.low - (by - 1) / by, divided.high) if first.slopes else divided
    if e.op == "mod" and not second.slopes and second.low == second.high > 0:
        return Form((), 0.0, second.low - 1) if first.slopes else _constant(first.low % second.low)
    return None


def _scaled(form: Form, by: float) -> Form:
    ends = sorted((form.low * by, form.high * by))
    return Form(tuple((v, s * by) for v, s in form.slopes), ends[0], ends[1])


def _plus(a: Form, b: Form) -> Form:
    if not b.slopes:
        return Form(a.slopes, a.low + b.low, a.high + b.high)
    total = dict(a.slopes)
    for v, s in b.slopes:
        total[v] = total.get(v, 0.0) + s
    kept = tuple(sorted((v, s) for v, s in total.items() if s))
    return Form(kept, a.low + b.low, a.high + b.high)


def _times(a: Form, b: Form) -> Form | None:
    if not a.slopes and a.low == a.high:
        return _scaled(b, a.low)
    if not b.slopes and b.low == b.high:
        return _scaled(a, b.low)
    return None
