"""Conditions on a loop variable: the bounds that they imply, and expressions with decided conditions replaced."""

from __future__ import annotations

from collections.abc import Mapping

from ..dataclass import memoized
from ..expr.build import expr
from ..expr.linear import Facts, Linear, linear, simplify
from ..expr.nodes import Cast, Const, Expr, Op, Var
from ..expr.types import INDEX, UINT64
from ..expr.visit import children, conjuncts, depends, rebuild
from ..ir import visit as ir
from ..ir.nodes import If, Stmt, Store

COMPARED = ("le", "lt", "ge", "gt")
Bounds = dict[str, tuple[int | None, int | None]]
_MIRROR = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt", "eq": "eq"}


def is_comparison(e: Expr) -> bool:
    """Whether the expression is an order comparison of two indices."""
    return isinstance(e, Op) and e.op in COMPARED and e.args[0].dtype == INDEX and e.lanes == 1


def limit(holds: Expr, name: str, facts: Facts) -> tuple[bool, Expr] | None:
    """Solve holds >= 0 for a variable: (True, b) for variable >= b, (False, b) for variable < b.

    None if it is not linear in the variable, or if coefficients do not fit in an index (8*x where x is times 2**61).
    """
    form = linear(simplify(expr(holds, INDEX), facts))
    c = form.coefficient(name)
    others = {k: t for k, t in form.terms.items() if not (isinstance(t[0], Var) and t[0].name == name)}
    if c == 0 or any(depends(atom, [name]) for atom, _ in others.values()) or not form.fits:
        return None
    bound = Linear(form.constant, others).expr() // abs(c)
    return c > 0, simplify(0 - bound if c > 0 else bound + 1, facts)


class Decided:
    """Replaces nodes by identity, before visiting their operands, and removes branches and masks that are true."""

    def __init__(self, choices: Mapping[int, tuple[Expr, Expr]]) -> None:
        self.choices = choices  # id(node) -> (node, replacement)

    def statement(self, s: Stmt) -> Stmt:
        inside = tuple([self.statement(c) for c in ir.children(s)])
        s = ir.rebuild(s, tuple([self.expression(e) for e in ir.expressions(s)]), inside)
        if isinstance(s, If) and is_true(s.condition):
            return s.then
        if isinstance(s, Store) and s.mask is not None and is_true(s.mask):
            return Store(s.buffer, s.indices, s.value, None, s.manner)
        return s

    @memoized
    def expression(self, e: Expr) -> Expr:
        if id(e) in self.choices:
            return self.expression(self.choices[id(e)][1])
        old = children(e)
        new = tuple([self.expression(c) for c in old])
        if isinstance(e, Op) and e.op == "and" and any(map(is_true, new)):
            return new[0] if is_true(new[1]) else new[1]
        return e if all(a is b for a, b in zip(new, old, strict=True)) else rebuild(e, new)


def promised(e: Expr) -> Expr | None:
    """The value inside a `within` promise."""
    return e.args[0] if isinstance(e, Op) and e.op == "within" else None


def is_true(e: Expr) -> bool:
    """Whether the expression is the constant True."""
    return isinstance(e, Const) and e.dtype.is_bool and bool(e.value)


def assume(condition: Expr, bounds: Mapping[str, tuple[int | None, int | None]]) -> tuple[dict[str, Expr], Bounds]:
    """The scalars that the condition makes constant, and `bounds` combined with those that it implies."""
    known: dict[str, Expr] = {}
    result: Bounds = dict(bounds)
    for c in conjuncts(condition):
        fact = _comparison(c)
        if fact is None:
            continue
        name, op, value = fact
        if op == "eq" and (name.dtype.is_int or value.value != 0):  # a float equal to 0 may be -0
            known[name.name] = Const(name.dtype, 1, value.value)
        if name.dtype.is_int:
            result[name.name] = _narrow(result.get(name.name, (None, None)), op, int(value.value))
    return known, result


def is_impossible(bounds: Mapping[str, tuple[int | None, int | None]]) -> bool:
    """Whether some of the bounds are an empty range."""
    return any(low is not None and high is not None and low > high for low, high in bounds.values())


def _comparison(e: Expr) -> tuple[Var, str, Const] | None:
    """The condition in the form variable <op> constant, or None if it does not have it."""
    if not (isinstance(e, Op) and e.op in _MIRROR):
        return None
    a, b = (x.value if isinstance(x, Cast) and _keeps_values(x) else x for x in e.args)
    if isinstance(a, Var) and isinstance(b, Const):
        return a, e.op, b
    return (b, _MIRROR[e.op], a) if isinstance(b, Var) and isinstance(a, Const) else None


def _keeps_values(e: Cast) -> bool:
    """Whether a cast to an index preserves all values."""
    return e.dtype is INDEX and e.value.dtype.is_int and e.value.dtype is not UINT64


def _narrow(old: tuple[int | None, int | None], op: str, value: int) -> tuple[int | None, int | None]:
    low, high = old
    at_least = {"ge": value, "gt": value + 1, "eq": value}.get(op)
    at_most = {"le": value, "lt": value - 1, "eq": value}.get(op)
    low = at_least if low is None else low if at_least is None else max(low, at_least)
    high = at_most if high is None else high if at_most is None else min(high, at_most)
    return low, high
