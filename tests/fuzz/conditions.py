"""Random conditions: on coordinates, on data, on Params, and combinations of these."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.types import BOOL, INT32

from .grammar import COORDINATE_SIZE, SCALAR, Grammar, Scope
from .terms import Term, integer

_COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]


def condition(g: Grammar, scope: Scope) -> Term:
    """A comparison, usually of coordinates, for piecewise definitions over intervals and triangles."""
    if g.chance(12):
        return _combined(g, scope)
    if len(scope.coordinates) > 1 and g.chance(20):
        v, w, n = g.pick(scope.coordinates), g.pick(scope.coordinates), g.number(-2, 9)
        return integer(g.pick([f"({v} <= {w} + {n})", f"({v} + {w} < {n})", f"({v} > 2 * {w} - {n})"]), BOOL)
    if scope.coordinates and g.chance(60):
        return _of_a_coordinate(g, g.pick(scope.coordinates))
    return _comparison(g, g.exact(scope), g.exact(scope), scope)


def _of_a_coordinate(g: Grammar, v: str) -> Term:
    if g.chance(15):
        return _comparison(g, Term(v, INT32, COORDINATE_SIZE), g.exact_int(SCALAR), SCALAR)
    bound = g.pick(g.extents) if g.extents and g.chance(40) else str(g.number(-1, 9))
    low = g.number(-1, 4)
    return integer(g.pick([
        f"({v} < {bound})", f"({v} >= {low})", f"({v} == {low})", f"(({v} >= {low}) & ({v} < {bound} - 1))",
        f"(({v} % 2) == 0)", f"(({v} < {low}) | ({v} > {bound} // 2))", f"~({v} != {low})",
    ]), BOOL)  # fmt: skip


def _comparison(g: Grammar, a: Term, b: Term, scope: Scope) -> Term:
    a, b, _ = g.unified(a, b, scope)
    return integer(f"({a.text} {g.pick(_COMPARISONS)} {b.text})", BOOL)


def _combined(g: Grammar, scope: Scope) -> Term:
    """A combination of several conditions, or a comparison of a value that a condition selects."""
    a, b = condition(g, scope).text, condition(g, scope).text
    if g.chance(30):
        near = replace(scope, depth=min(scope.depth, 1))
        one, other, _ = g.unified(g.exact_int(near), g.exact_int(near), scope)
        return integer(f"(pt.select({a}, {one.text}, {other.text}) {g.pick(_COMPARISONS)} 1)", BOOL)
    return integer(g.pick([f"({a} & {b})", f"({a} | {b})", f"(~{a} ^ {b})", f"pt.select({a}, {b}, ~{b})"]), BOOL)
