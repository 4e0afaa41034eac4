"""Narrows the integer arithmetic of values to 16 bits where it certainly fits: definition -> values.

before:  uint8((uint32(a[x]) + uint32(a[x + 1]) + uint32(a[x + 2]))//3)     with a of type uint8
after:   uint8((uint16(a[x]) + uint16(a[x + 1]) + uint16(a[x + 2]))//3)

A vector register holds twice as many 16-bit integers. Sums of small integers have 32 bits unless users say otherwise,
and their types alone often show that they need fewer. Only values are narrowed, since indices have a type of their own.
"""

from __future__ import annotations

from ..expr.build import cast
from ..expr.nodes import COMPARISON, Cast, Const, Expr, Load, Op, const
from ..expr.types import INDEX, INT16, UINT16, DType
from ..expr.visit import children, each_once, rebuild, rebuild_op, walk_values
from ..graph.nodes import Definition
from .interval import Evaluator

_ANY_OPERANDS = {"add", "sub", "mul", "min", "max", "neg", "abs", "select", *COMPARISON}
_BY_A_CONSTANT = {"floordiv", "mod", "shr"}


def narrowed_values(d: Definition) -> tuple[Expr, ...]:
    """The values of a definition with narrowed arithmetic; the same objects if there is nothing to narrow."""
    if not any(isinstance(e, Cast) and _is_extended(e) for e in walk_values(*d.values)):
        return d.values
    narrower = _Narrower()
    return tuple(map(narrower.visit, d.values))


class _Narrower:
    """Rewrites the values of one definition."""

    def __init__(self) -> None:
        self.ranges = Evaluator({})
        self.memo: dict[int, Expr] = {}

    def visit(self, e: Expr) -> Expr:
        return each_once(e, self.memo, self.node, _operands)

    def node(self, e: Expr) -> Expr:
        old = _operands(e)
        new = tuple(self.memo[id(c)] for c in old)
        narrowed = self.narrowed(e, new) if isinstance(e, Op) else None
        if narrowed is not None:
            return narrowed
        if isinstance(e, Cast) and isinstance(new[0], Cast) and _is_extended(new[0]):
            return cast(e.dtype, new[0].value)
        return e if all(a is b for a, b in zip(new, old, strict=True)) else rebuild(e, new)

    def narrowed(self, e: Op, new: tuple[Expr, ...]) -> Expr | None:
        """The operation in 16 bits, extended to its type again; None if it needs more bits."""
        wide = e.args[-1].dtype
        if not wide.is_int or wide is INDEX or wide.bits <= 16 or e.lanes > 1:
            return None
        if e.op not in _ANY_OPERANDS and not (e.op in _BY_A_CONSTANT and isinstance(new[1], Const)):
            return None
        first = 1 if e.op == "select" else 0
        if not any(isinstance(a, Cast) for a in new[first:]) or not all(map(_is_small, new[first:])):
            return None
        t = self.type_for([*e.args[first:], *([] if e.op in COMPARISON else [e])])
        if t is None:
            return None
        result = rebuild_op(e.op, (*new[:first], *(_in_type(a, t) for a in new[first:])))
        return result if e.op in COMPARISON else cast(e.dtype, result)

    def type_for(self, expressions: list[Expr]) -> DType | None:
        """A type of 16 bits that holds the values of all expressions, or None."""
        ranges = [self.ranges.visit(e) for e in expressions]
        if not all(isinstance(r.low, int) and isinstance(r.high, int) for r in ranges):
            return None
        low, high = min(r.low for r in ranges), max(r.high for r in ranges)
        return next((t for t in (UINT16, INT16) if t.min <= low and high <= t.max), None)


def _operands(e: Expr) -> tuple[Expr, ...]:
    """The operands that are values, which excludes the indices of loads."""
    return () if isinstance(e, Load) else children(e)


def _is_small(e: Expr) -> bool:
    return isinstance(e, Const) or isinstance(e, Cast) and _is_extended(e)


def _is_extended(e: Cast) -> bool:
    """Whether a cast extends an integer of at most 16 bits to a type that holds all its values."""
    t = e.value.dtype
    return t.is_int and t.bits <= 16 and e.dtype.is_int and e.dtype.min <= t.min and t.max <= e.dtype.max


def _in_type(e: Expr, t: DType) -> Expr:
    return const(e.value, t) if isinstance(e, Const) else cast(t, e.value if isinstance(e, Cast) else e)
