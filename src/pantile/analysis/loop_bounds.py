"""Conditions that become bounds of loops: inequalities between sums of coordinates, such as k > i.

    out[i, j] = pt.sum(a[k, i] * b[k, j], over=k where k > i)     for i: for k in i + 1..n

Along each loop such a condition holds from some iteration on, or up to one, so that the others are not run.
"""

from __future__ import annotations

from ..expr.linear import linear
from ..expr.nodes import Expr, Op, Var
from ..expr.visit import conjuncts

_ORDERED = ("lt", "le", "gt", "ge")


def bounding(condition: Expr | None) -> list[Op]:
    """The parts of a condition that bound loops."""
    parts = [] if condition is None else conjuncts(condition)
    return [c for c in parts if isinstance(c, Op) and c.op in _ORDERED and _is_linear(c)]


def only_bounds(condition: Expr) -> bool:
    """Whether all parts of a condition bound loops."""
    return len(bounding(condition)) == len(conjuncts(condition))


def _is_linear(e: Op) -> bool:
    parts = [linear(a) for a in e.args if a.dtype.is_int]
    return len(parts) == len(e.args) and all(isinstance(atom, Var) for p in parts for atom, _ in p.terms.values())
