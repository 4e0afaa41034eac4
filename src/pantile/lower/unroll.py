"""Unroll: an unrolled loop becomes a sequence of its iterations.

before:  unroll for i in 0..2: f[y + i] = g[y + i]
after:   f[y] = g[y]
         f[y + 1] = g[y + 1]

A loop runs serially if its iterations would exceed the budget of a loop or of the program. The body of such a loop is
long, for example because stages with loops of their own are computed in it, and copying it gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InternalError
from ..expr.nodes import Const, Expr, Var
from ..expr.visit import names, transform
from ..ir import visit as ir
from ..ir.nodes import For, Stmt
from ..schedule.limits import MOST_LANES
from ..target.kinds import Kind
from .size import Room, size

_MOST_OF_A_LOOP = 16_000  # most expressions in all iterations of a loop: five times the largest size known to gain
_MOST_OF_ALL = 64_000  # most expressions added to a program, or eight times its own size if larger


def unroll(body: Stmt, refused: Callable[[str], None] = lambda _: None, widest: int = MOST_LANES) -> Stmt:
    """Replace every unrolled loop, inner ones first, while the budget lasts. `refused` is called with the other
    loops. `widest` is the number of lanes of the vectors that one instruction computes."""
    room = Room(_MOST_OF_ALL, larger=lambda: 8 * size(body, False, widest))

    def change(s: Stmt) -> Stmt | None:
        if not (isinstance(s, For) and s.kind is Kind.UNROLL):
            return None
        if not isinstance(s.extent, Const):
            raise InternalError(f"unrolled loop {s.var} of extent {s.extent}")
        unrolled = size(s, widest=widest)
        if unrolled > _MOST_OF_A_LOOP or not room.take(unrolled):
            refused(s.var)
            return For(s.var, s.min, s.extent, Kind.SERIAL, s.body)
        return ir.block(*[_at(s, s.min + i) for i in range(int(s.extent.value))])

    return ir.transform(body, change)


def _at(s: For, value: Expr) -> Stmt:
    memo: dict[int, Expr] = {}

    def name(e: Expr) -> Expr | None:
        return value if isinstance(e, Var) and e.name == s.var else None

    return ir.map_exprs(s.body, lambda e: transform(e, name, memo, lambda part: s.var in names(part)))
