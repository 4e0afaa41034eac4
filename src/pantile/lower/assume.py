"""Facts that follow from a condition: values of scalars that it fixes, bounds of those it limits."""

from __future__ import annotations

from collections.abc import Mapping

from ..expr.nodes import Cast, Const, Expr, Op, Var
from ..expr.types import INDEX, UINT64
from ..expr.visit import conjuncts

Bounds = dict[str, tuple[int | None, int | None]]
_MIRROR = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt", "eq": "eq"}


def assume(condition: Expr, bounds: Mapping[str, tuple[int | None, int | None]]) -> tuple[dict[str, Expr], Bounds]:
    """The scalars that the condition makes constant, and `bounds` with those that it adds."""
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
    """The condition in the form variable <op> constant, if it has it."""
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
