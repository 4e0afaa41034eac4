"""Unroll: an unrolled loop becomes its iterations, one after the other.

before:  unroll for i in 0..2: f[y + i] = g[y + i]
after:   f[y] = g[y]
         f[y + 1] = g[y + 1]
"""

from __future__ import annotations

from ..errors import InternalError
from ..expr.nodes import Const, Expr, Var
from ..expr.visit import transform
from ..ir import visit as ir
from ..ir.nodes import For, Kind, Stmt


def unroll(body: Stmt) -> Stmt:
    """Replace every unrolled loop."""

    def change(s: Stmt) -> Stmt | None:
        if not (isinstance(s, For) and s.kind is Kind.UNROLL):
            return None
        if not isinstance(s.extent, Const):
            raise InternalError(f"unrolled loop {s.var} of extent {s.extent}")
        return ir.block(*[_at(s, s.min + i) for i in range(int(s.extent.value))])

    return ir.transform(body, change)


def _at(s: For, value: Expr) -> Stmt:
    memo: dict[int, Expr] = {}

    def name(e: Expr) -> Expr | None:
        return value if isinstance(e, Var) and e.name == s.var else None

    return ir.map_exprs(s.body, lambda e: transform(e, name, memo))
