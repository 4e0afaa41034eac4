"""Simplify: index arithmetic in normal form, constant branches and trivial lets gone.

before:  let a = 4; if 1 < 2: f[a + x - 1 + 2] = ...
after:   f[x + 5] = ...
"""

from __future__ import annotations

from ..expr.linear import Facts, Simplifier
from ..expr.nodes import Const, Expr, Var
from ..expr.types import INT64
from ..expr.visit import depends
from ..ir import visit as ir
from ..ir.nodes import Block, For, If, Kind, Let, Stmt


def simplify_program(body: Stmt, facts: Facts) -> Stmt:
    """The same statement with simpler index arithmetic and without dead code."""
    return _Simplify(facts).statement(body, {})


class _Simplify:
    def __init__(self, facts: Facts) -> None:
        self.facts = Facts(facts.bounds)

    def statement(self, s: Stmt, names: dict[str, Expr]) -> Stmt:
        if isinstance(s, Let):
            return self.let(s, names)
        if isinstance(s, If):
            return self.branch(s, names)
        rewrite = Simplifier(self.facts, names)
        new = tuple(rewrite.visit(e) for e in ir.expressions(s))
        if isinstance(s, For):
            return self.loop(s, new, names)
        inside = tuple(self.statement(c, names) for c in ir.children(s))
        if isinstance(s, Block):
            return ir.block(*[i for i in inside if not _is_nothing(i)])
        return ir.rebuild(s, new, inside)

    def let(self, s: Let, names: dict[str, Expr]) -> Stmt:
        value = Simplifier(self.facts, names).visit(s.value)
        if isinstance(value, Const) or (isinstance(value, Var) and value.dtype == INT64):
            return self.statement(s.body, {**names, s.name: value})
        if value.dtype == INT64 and value.lanes == 1:
            self.facts.bounds[s.name] = self.facts.lower(value), self.facts.upper(value)
        body = self.statement(s.body, names)
        return Let(s.name, value, body) if not _is_nothing(body) and _uses(body, s.name) else body

    def branch(self, s: If, names: dict[str, Expr]) -> Stmt:
        condition = Simplifier(self.facts, names).visit(s.condition)
        if isinstance(condition, Const):
            taken = s.then if condition.value else s.otherwise
            return Block(()) if taken is None else self.statement(taken, names)
        then = self.statement(s.then, names)
        otherwise = None if s.otherwise is None else self.statement(s.otherwise, names)
        return Block(()) if _is_nothing(then) and otherwise is None else If(condition, then, otherwise)

    def loop(self, s: For, bounds: tuple[Expr, ...], names: dict[str, Expr]) -> Stmt:
        low, extent = bounds[:2]
        if isinstance(extent, Const) and int(extent.value) <= 0:
            return Block(())
        if isinstance(extent, Const) and int(extent.value) == 1 and s.kind is not Kind.PARALLEL:
            return self.let(Let(s.var, low, s.body), names)
        self.facts.bounds[s.var] = self.facts.lower(low), self.facts.upper(low + extent - 1)
        body = self.statement(s.body, names)
        return Block(()) if _is_nothing(body) else ir.rebuild(s, bounds, (body,))


def _is_nothing(s: Stmt) -> bool:
    return isinstance(s, Block) and not s.stmts


def _uses(s: Stmt, name: str) -> bool:
    return any(depends(e, (name,)) for i in ir.walk(s) for e in ir.expressions(i))


