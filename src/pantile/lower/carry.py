"""Carry: a minimum or maximum takes its loop-carried operand last.

before:  for x in 0..n:
             d[x] = min(d[x], min(u[x], d[x - 1]) + 0.9)
after:   for x in 0..n:
             d[x] = min(min(d[x], u[x] + 0.9), d[x - 1] + 0.9)

An iteration waits for the previous one only where it uses a loop-carried value; everything else is computed meanwhile.
The fewer operations depend on that value, the shorter the critical path of the loop. Adding a constant preserves the
order of floats, so the constant may be added before they are compared: results are identical to the last bit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import replace
from functools import partial, reduce

from ..expr.linear import linear
from ..expr.nodes import Broadcast, Const, Expr, Load, Op, Var, const, op
from ..expr.types import INDEX
from ..expr.visit import children, loaded, operands_first, substitute, walk_values
from ..ir import visit as ir
from ..ir.nodes import Block, For, Let, Manner, Stmt, Store
from ..target.kinds import Kind
from .lanes import first_lane

_EXTREMES = ("min", "max")


def carry(body: Stmt) -> Stmt:
    """Shorten the loop-carried dependence chain from the result of one iteration to that of the next."""
    return ir.transform(body, _sooner)


def _sooner(s: Stmt) -> Stmt | None:
    """Rewrite a serial loop so that its stores take their loop-carried operands last."""
    if not isinstance(s, For) or s.kind is not Kind.SERIAL:
        return None
    body = _in_iteration(s.body, s.var)
    return None if body is s.body else replace(s, body=body)


def _in_iteration(s: Stmt, loop: str) -> Stmt:
    if isinstance(s, (Block, Let)):
        return ir.map_children(s, lambda c: _in_iteration(c, loop))
    if not isinstance(s, Store) or s.buffer not in loaded(s.value) or s.manner is Manner.ATOMIC:
        return s
    if not isinstance(s.value, Op) or s.value.op not in _EXTREMES or s.value.dtype is INDEX:
        return s
    return Store(s.buffer, s.indices, _carried_last(s.value, s, loop), s.mask, s.manner)


def _carried_last(root: Op, store: Store, loop: str) -> Expr:
    """The terms in their original order, except that loop-carried ones come last."""
    waits = _waiting(root, store, loop)
    terms = list(_terms(root, waits)) if id(root) in waits else []
    value, *others = [term for _, term in sorted(terms, key=lambda t: t[0])] or [root]
    return reduce(partial(op, root.op), others, value)


def _waiting(root: Expr, store: Store, loop: str) -> set[int]:
    """The ids of the nodes that depend on what the previous iteration has stored."""
    dependent: set[int] = set()
    for e in operands_first(root, lambda e: () if isinstance(e, Load) else children(e)):
        if _is_carried(e, store, loop) if isinstance(e, Load) else any(id(c) in dependent for c in children(e)):
            dependent.add(id(e))
    return dependent


def _is_carried(e: Load, store: Store, loop: str) -> bool:
    """Whether the load reads what the store wrote in the previous iteration."""
    if e.buffer != store.buffer or e.mask is not None or e.lanes != store.value.lanes:
        return False
    previous = substitute(first_lane(store.indices[0]), {loop: Var(INDEX, 1, loop) - const(1, INDEX)})
    distance = linear(first_lane(e.indices[0])).plus(linear(previous), -1)
    return not distance.terms and distance.constant == 0


def _terms(root: Op, waits: Container[int]) -> Iterator[tuple[bool, Expr]]:
    """Yield the operands of a nested minimum or maximum, with the constants added to each, and whether each is
    loop-carried.

    Operands that are not loop-carried or have other uses stay whole.
    """
    uses = Counter(id(c) for e in walk_values(root) if not isinstance(e, Load) for c in children(e))
    pending: list[tuple[Expr, tuple[Expr, ...]]] = [(root, ())]
    while pending:
        e, added = pending.pop()
        apart = id(e) in waits and uses[id(e)] < 2
        if apart and isinstance(e, Op) and e.op == root.op:
            pending += [(c, added) for c in reversed(e.args)]
        elif apart and (parts := _plus_constant(e, root.op)):
            pending.append((parts[0], (parts[1], *added)))
        else:
            yield id(e) in waits, reduce(partial(op, "add"), added, e)


def _plus_constant(e: Expr, extreme: str) -> tuple[Expr, Expr] | None:
    """A minimum or maximum of floats, and the finite constant added to it, or None. The constant must be finite because
    infinity minus infinity is NaN."""
    if not isinstance(e, Op) or e.op != "add" or not e.dtype.is_float:
        return None
    for value, number in (e.args, e.args[::-1]):
        constant = number.value if isinstance(number, Broadcast) else number
        if (
            isinstance(value, Op)
            and value.op == extreme
            and isinstance(constant, Const)
            and math.isfinite(constant.value)
        ):
            return value, number
    return None
