"""Narrows the intervals of variables by conditions: if x < y holds, x is at most the largest y minus 1.

refine_by(evaluator of {"x": [0, 9], "y": [0, 4]}, x < y, True)  ->  {"x": [0, 3], "y": [1, 4]}
"""

from __future__ import annotations

from typing import Protocol

from ..expr.linear import linear
from ..expr.nodes import COMPARISON, Cast, Expr, Op, Var, op
from ..expr.types import INDEX
from ..expr.visit import children, once_per_node
from .float_ends import is_number
from .interval_values import Interval, Scope

_DEEPEST = 2  # the nesting depth of conditions that refine a scope


class ScopeEvaluator(Protocol):
    """The part of an evaluator that refining a scope needs."""

    scope: Scope

    def at(self, scope: Scope) -> ScopeEvaluator:
        """An evaluator of this scope: this one if the scope is its own."""

    def of_built(self, e: Expr) -> Interval:
        """The interval of an expression that was built for this purpose."""


def refine_by(by: ScopeEvaluator, condition: Expr, holds: bool) -> Scope:
    """The scope of an evaluator in which `condition` holds (or does not), with variables bounded by its comparisons;
    the same object if it bounds none.

    Deeply nested conditions are ignored: each would be evaluated for all paths through the conditions inside it."""
    scope = by.scope
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
    """The variables that `refine_by` may bound by a condition: none for y % 2 == 0."""
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
    """The nesting depth of selects inside conditions of selects."""
    below = [_depth(c) for c in children(e)]
    if isinstance(e, Op) and e.op == "select":
        below[0] += 1
    return max(below, default=0)


def _refine_comparison(scope: Scope, c: Op, by: ScopeEvaluator) -> Scope:
    a, b = c.args
    for x, y, strict in {
        "le": [(a, b, 0)],
        "lt": [(a, b, 1)],
        "ge": [(b, a, 0)],
        "gt": [(b, a, 1)],
        "eq": [(a, b, 0), (b, a, 0)],
        "ne": [],
    }[c.op]:
        scope = _refine_le(scope, x, y, strict, by.at(scope))
    return scope


_NEVER = "#never"  # a name with an empty interval, in the scope of a branch that is certainly not taken
_OPPOSITE = {"le": "gt", "lt": "ge", "ge": "lt", "gt": "le", "eq": "ne", "ne": "eq"}


def _refine_le(scope: Scope, a: Expr, b: Expr, strict: int, by: ScopeEvaluator) -> Scope:
    """Refine a scope by a + strict <= b, that is, by c*v + rest <= 0 for each variable v."""
    form = linear(a).plus(linear(b), -1)
    if not any(_named(atom) in scope for atom, _ in form.terms.values()):
        low = by.of_built(form.expr()).low
        return {**scope, _NEVER: Interval(1, 0)} if is_number(low) and low + strict > 0 else scope
    bounds: dict[str, Interval] = {}
    for k, (atom, c) in form.terms.items():
        name = _named(atom)
        if name in scope:
            rest = form.without(k)
            low = by.of_built(rest.expr()).low
            if low is None:
                continue
            limit = 0 - (low + strict)
            side = Interval(None, limit // c) if c > 0 else Interval(0 - limit // (0 - c), None)
            bounds[name] = bounds.get(name, scope[name]).meet(side)
    return {**scope, **bounds} if bounds else scope


def _named(atom: Expr) -> str:
    """The name of an atom that is a variable: a coordinate, or a param cast to an index. An empty string for any other
    atom."""
    e = atom.value if isinstance(atom, Cast) else atom
    return e.name if isinstance(e, Var) else ""
