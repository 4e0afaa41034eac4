"""Atomic stores, as an operation and the value that it combines an element with.

f[i] = f[i] + a + b, atomic    ->    "add", a + b
f[i] = 0, atomic, simplified from f[i] & 0    ->    "xchg", 0
"""

from __future__ import annotations

from ..errors import InternalError
from ..expr.nodes import Expr, Load, Op, op
from ..expr.visit import loaded, same
from .nodes import Store


def combined(s: Store) -> tuple[str, Expr]:
    """The operation of an atomic store, by LLVM's name, and the value that it combines the element with."""
    value = s.value
    if s.buffer not in loaded(value) and s.mask is None and value.lanes == 1:
        return "xchg", value
    term = _without(value, value.op, s) if isinstance(value, Op) else None
    if term is None or not isinstance(value, Op) or s.mask is not None or value.lanes != 1:
        raise InternalError(f"what is stored to {s.buffer} is not what was there, combined with something else")
    return value.op, term


def is_neutral(s: Store) -> bool:
    """Whether an atomic store changes nothing, because it combines the element with a neutral value such as 0 in a
    sum."""
    return _is_place(s.value, s)


def _is_place(e: Expr, s: Store) -> bool:
    return isinstance(e, Load) and e.buffer == s.buffer and all(map(same, e.indices, s.indices))


def _without(e: Expr, name: str, s: Store) -> Expr | None:
    """Remove the load of the stored element from an expression of operations `name`. Return the rest, or None if the
    expression is not of that form."""
    if not isinstance(e, Op) or e.op != name:
        return None
    for mine, other in (e.args, e.args[::-1]):
        if s.buffer in loaded(other):
            continue
        if _is_place(mine, s):
            return other
        inner = _without(mine, name, s)
        if inner is not None:
            return op(name, inner, other)
    return None
