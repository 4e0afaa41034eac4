"""Simplify: index arithmetic in normal form, constant branches and trivial lets gone.

before:  let a = 4; if 1 < 2: f[a + x - 1 + 2] = ...
after:   f[x + 5] = ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..expr.congruence import congruence
from ..expr.linear import Facts, Simplifier, VersionsSimplifier, linear
from ..expr.nodes import Const, Expr, Var, var
from ..expr.types import INDEX
from ..expr.visit import Key, depends, key
from ..ir import visit as ir
from ..ir.nodes import Block, For, If, Kind, Let, Stmt, Store


def clean_program(body: Stmt, facts: Facts) -> Stmt:
    """The same statement with simpler index arithmetic and without dead code.

    Statements share no nodes that are made here: passes that follow decide about nodes, each in its own place.
    """
    return _Simplify(facts, Simplifier).statement(body, _Scope({}, {}))


def simplify_program(body: Stmt, facts: Facts) -> Stmt:
    """The same for the last time, when there may be many versions of the same code."""
    return _Simplify(facts, VersionsSimplifier).statement(body, _Scope({}, {}))


@dataclass(frozen=True)
class _Scope:
    """Names around a statement: what to write instead of some, and which one holds a value already."""

    names: Mapping[str, Expr]
    holders: Mapping[Key, Var]

    def alias(self, name: str, value: Expr) -> _Scope:
        return _Scope({**self.names, name: value}, self.holders)

    def define(self, name: str, value: Expr) -> _Scope:
        return _Scope(self.names, {**self.holders, key(value): var(name)})


class _Simplify:
    def __init__(self, facts: Facts, simplifier: type[Simplifier]) -> None:
        self.facts = Facts(facts.bounds)
        self.simplifier = simplifier

    def statement(self, s: Stmt, scope: _Scope) -> Stmt:
        if isinstance(s, Let):
            return self.let(s, scope)
        if isinstance(s, If):
            return self.branch(s, scope)
        rewrite = self.simplifier(self.facts, scope.names)
        new = tuple(rewrite.visit(e) for e in ir.expressions(s))
        if isinstance(s, For):
            return self.loop(s, new, scope)
        inside = tuple([self.statement(c, scope) for c in ir.children(s)])
        if isinstance(s, Block):
            return ir.block(*[i for i in inside if not _is_nothing(i)])
        simpler = ir.rebuild(s, new, inside)
        return Block(()) if isinstance(simpler, Store) and _is_false(simpler.mask) else simpler

    def let(self, s: Let, scope: _Scope) -> Stmt:
        value = self.simplifier(self.facts, scope.names).visit(s.value)
        if isinstance(value, Const):
            return self.statement(s.body, scope.alias(s.name, value))
        if value.dtype == INDEX and value.lanes == 1:
            holder = scope.holders.get(key(value))
            if holder is not None or _is_offset(value):
                return self.statement(s.body, scope.alias(s.name, value if holder is None else holder))
            self.facts.bounds[s.name] = self.facts.lower(value), self.facts.upper(value)
            self.facts.classes[s.name] = congruence(value, self.facts.classes)
            scope = scope.define(s.name, value)
        body = self.statement(s.body, scope)
        return Let(s.name, value, body) if not _is_nothing(body) and _uses(body, s.name) else body

    def branch(self, s: If, scope: _Scope) -> Stmt:
        condition = self.simplifier(self.facts, scope.names).visit(s.condition)
        if isinstance(condition, Const):
            taken = s.then if condition.value else s.otherwise
            return Block(()) if taken is None else self.statement(taken, scope)
        then = self.statement(s.then, scope)
        otherwise = None if s.otherwise is None else self.statement(s.otherwise, scope)
        if otherwise is not None and _is_nothing(otherwise):
            otherwise = None
        return Block(()) if _is_nothing(then) and otherwise is None else If(condition, then, otherwise)

    def loop(self, s: For, bounds: tuple[Expr, ...], scope: _Scope) -> Stmt:
        low, extent = bounds[:2]
        if isinstance(extent, Const) and int(extent.value) <= 0:
            return Block(())
        if isinstance(extent, Const) and int(extent.value) == 1 and s.kind is not Kind.PARALLEL:
            return self.let(Let(s.var, low, s.body), scope)
        self.facts.bounds[s.var] = self.facts.lower(low), self.facts.upper(low + extent - 1)
        self.facts.classes.pop(s.var, None)
        body = self.statement(s.body, scope)
        return Block(()) if _is_nothing(body) else ir.rebuild(s, bounds, (body,))


def _is_offset(e: Expr) -> bool:
    """A variable, or one plus a constant: not worth a name of its own."""
    terms = list(linear(e).terms.values())
    return len(terms) == 1 and isinstance(terms[0][0], Var) and terms[0][1] == 1


def _is_nothing(s: Stmt) -> bool:
    return isinstance(s, Block) and not s.stmts


def _is_false(mask: Expr | None) -> bool:
    return isinstance(mask, Const) and not mask.value


def _uses(s: Stmt, name: str) -> bool:
    return any(depends(e, (name,)) for i in ir.walk(s) for e in ir.expressions(i))


