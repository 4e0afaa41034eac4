"""Unswitch: loop-invariant conditions of masked loads are tested outside of the loop.

before:  for x in 0..w: v[y, x] = select(y > 0, (u[y - 1, x] if y > 0), 0)
after:   if y > 0:
             for x in 0..w: v[y, x] = u[y - 1, x]
         else:
             for x in 0..w: v[y, x] = 0

Only conditions in masks of loads count: elsewhere, a select costs little, and a second version of the loop costs code.
Conditions stay where they are if versions would exceed the budget of an outermost loop or of the program.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..expr.nodes import Expr, Op, const
from ..expr.types import BOOL
from ..expr.visit import depends, key, loaded, transform
from ..ir import visit as ir
from ..ir.nodes import For, If, Stmt, Store
from ..target.kinds import Kind
from .size import Room, copies, size

_MOST_CONDITIONS = 2  # most conditions tested outside of one loop: each may double the code
_MOST_OF_A_LOOP = 8_000  # most expressions that versions add to an outermost loop: nested loops double them again
_MOST_OF_ALL = 16_000  # most expressions added to a program, or its own size if larger


def unswitch(body: Stmt) -> Stmt:
    """Test invariant conditions outside of serial loops, outer loops first, while the budget for versions lasts."""
    return _outermost(body, Room(_MOST_OF_ALL, larger=lambda: size(body)))


def _outermost(s: Stmt, room: Room) -> Stmt:
    if isinstance(s, For):
        return _Unswitch(Room(_MOST_OF_A_LOOP, room)).inside(s)
    return ir.map_children(s, lambda c: _outermost(c, room))


def branch(s: Store, room: Room) -> Stmt:
    """Turn a scalar store that loads under masks into one store without masks for each outcome."""
    return _Unswitch(room).versions(s, _MOST_CONDITIONS)


class _Unswitch:
    def __init__(self, room: Room, repeated: int = 1) -> None:
        self.room = room
        self.repeated = repeated  # the number of copies that unrolled loops around make of the current statement

    def inside(self, s: Stmt) -> Stmt:
        if isinstance(s, For) and s.kind is Kind.SERIAL:
            return self.versions(s, _MOST_CONDITIONS)
        return self.parts(s)

    def versions(self, s: Stmt, budget: int) -> Stmt:
        condition = next(_invariant_conditions(s), None) if budget else None
        if condition is None or not self.room.take(size(s) * self.repeated):
            return self.parts(s)
        return If(
            condition, *(self.versions(_with_condition(s, condition, holds), budget - 1) for holds in (True, False))
        )

    def parts(self, s: Stmt) -> Stmt:
        within = _Unswitch(self.room, self.repeated * copies(s))
        return ir.map_children(s, within.inside)


def _with_condition(s: Stmt, condition: Expr, holds: bool) -> Stmt:
    """The statement with the condition replaced by its known value."""
    known, value, memo = key(condition), const(holds, BOOL), dict[int, Expr]()

    def settle(e: Expr) -> Expr | None:
        return value if e.dtype.is_bool and key(e) == known else None

    return ir.map_exprs(s, lambda e: transform(e, settle, memo))


def _invariant_conditions(s: Stmt) -> Iterator[Expr]:
    """The largest parts of masks that depend neither on names bound in the statement nor on memory."""
    bound = ir.bound_names(s)
    pending = [e.mask for e in ir.all_loads(s) if e.mask is not None][::-1]
    seen: set[int] = set()  # masks share most of their nodes
    while pending:
        condition = pending.pop()
        if id(condition) in seen:
            continue
        seen.add(id(condition))
        if not depends(condition, bound) and not loaded(condition):
            yield condition
        elif isinstance(condition, Op) and condition.op in ("and", "or", "not"):
            pending += reversed(condition.args)
