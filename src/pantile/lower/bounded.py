"""The constant that an extent never exceeds: memory of threads and blocks is planned when code is made."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.interval import Scope, interval
from ..expr.linear import Linear, linear, simplify
from ..expr.nodes import Const, Expr, Op
from ..expr.visit import names, substitute
from ..ir.nodes import Let
from .footprint import bound_by

_DEEPEST = 3  # cases inside of cases


def most(e: Expr, scope: Scope) -> int | None:
    """The least one that is found, if there is one.

    The last of many blocks may be shorter, never longer: min(lo + 7, n) - lo + 1. What whole blocks of 8 leave over is
    less than one: n - n//8*8. Where two loops begin, it is one of them: n - min(a, b) is n - a or n - b."""
    e = simplify(e)
    high = interval(e, scope).high
    found = [high] if isinstance(high, int) else []
    found += _bounds(linear(simplify(_written_out(e, scope))), _DEEPEST)
    if isinstance(high, Expr):
        found += _bounds(linear(simplify(high)), _DEEPEST)
    return min(found, default=None)


def _bounds(form: Linear, depth: int) -> Iterator[int]:
    if not form.terms:
        yield form.constant
        return
    yield from _of_minima(form)
    yield from _left_over(form)
    if depth:
        yield from _in_each_case(form, depth - 1)


def _in_each_case(form: Linear, depth: int) -> Iterator[int]:
    """One of two numbers is what a minimum or maximum is."""
    for k, (atom, coefficient) in form.terms.items():
        if isinstance(atom, Op) and atom.op == ("min" if coefficient < 0 else "max"):
            cases = [form.without(k).plus(linear(a), coefficient) for a in atom.args]
            bounds = [min(_bounds(case, depth), default=None) for case in cases]
            known = [b for b in bounds if b is not None]
            if len(known) == len(cases):
                yield max(known)


def _written_out(e: Expr, scope: Scope) -> Expr:
    """With what lets stand for: two ends of a range move together."""
    while values := {n: by.value for n in names(e) if isinstance(by := bound_by(scope.get(n)), Let)}:
        e = substitute(e, values)
    return e


def _of_minima(form: Linear) -> Iterator[int]:
    """No minimum exceeds its operands."""
    for k, (atom, coefficient) in form.terms.items():
        if coefficient > 0 and isinstance(atom, Op) and atom.op == "min":
            larger = [form.without(k).plus(linear(a), coefficient) for a in atom.args]
            yield from (x.constant for x in larger if not x.terms)


def _left_over(form: Linear) -> Iterator[int]:
    """m*x - m*n*(x//n) is less than m*n."""
    for k, (atom, coefficient) in form.terms.items():
        if isinstance(atom, Op) and atom.op == "floordiv" and isinstance(atom.args[1], Const):
            n = int(atom.args[1].value)
            times = -coefficient // n if n > 0 and coefficient < 0 and coefficient % n == 0 else 0
            rest = form.without(k).plus(linear(atom.args[0]), -times)
            if times and not rest.terms:
                yield rest.constant + times * (n - 1)
