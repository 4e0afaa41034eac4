"""Reductions of an expression over an RDom, in the order of its loops. As in NumPy, `minimum(a, b)` is not `min(e)`.

Sums and products of 8- and 16-bit integers are held in 32 bits of the same sign, of conditions in int32; every other
type keeps its own (NumPy would widen further, to 64 bits). Over no points: 0, 1, the type's largest value, its
smallest, False and True.
"""

from __future__ import annotations

from functools import reduce
from operator import mul

from ..errors import UserError
from ..expr.build import cast, expr
from ..expr.nodes import Expr, ExprLike, Reduce
from ..expr.types import BOOL, FLOAT32, INT32, DType
from .math import within
from .rdom import RDom

__all__ = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum"]

_ELEMENTWISE = {"min": "for the smaller of two values use pt.minimum(a, b)",
                "max": "for the larger of two values use pt.maximum(a, b)",
                "any": "to combine conditions use |", "all": "to combine conditions use &"}  # fmt: skip


def sum(value: ExprLike, over: RDom | None = None) -> Expr:
    """The sum of `value` over the points of `over`; small integers are held in 32 bits, floats in their own type."""
    return _reduce("sum", _widened(expr(value)), over)


def mean(value: ExprLike, over: RDom | None = None) -> Expr:
    """The mean of `value` over the points of `over`: its sum divided by their number; integers are summed as such.

    Of integers and conditions it is float32. Over no points: NaN.
    """
    domain = _domain("mean", over)
    total = sum(value, domain)
    points = sum(1, domain) if domain.predicates else reduce(mul, (extent for _, extent in domain.loops.bounds))
    kind = total.dtype if total.dtype.is_float else FLOAT32
    return cast(kind, total) / cast(kind, points)


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
        raise UserError(f"pt.{kind} reduces over an RDom: write pt.{kind}(expression, over=r){hint}")
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
        raise UserError(f"pt.{kind} needs a condition, but {value} is {value.dtype}; write {value} != 0")
    return value
