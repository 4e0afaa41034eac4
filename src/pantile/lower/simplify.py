"""Simplify: bring index arithmetic into normal form, and remove constant branches and trivial lets.

before:  let a = 4; if 1 < 2: f[a + x - 1 + 2] = ...
after:   f[x + 5] = ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..expr.congruence import congruence
from ..expr.linear import Facts, Simplifier, VersionsSimplifier, linear
from ..expr.nodes import Const, Expr, Var, var
from ..expr.types import INDEX
from ..expr.visit import Key, key, names
from ..ir import visit as ir
from ..ir.atomic import is_neutral
from ..ir.nodes import Block, For, If, Let, Manner, Stmt, Store
from ..target.kinds import AT_ONCE


def clean_program(body: Stmt, facts: Facts) -> Stmt:
    """Simplify index arithmetic and remove dead code.

    Statements do not share the nodes created here, since later passes decide about nodes, each in its own context.
    """
    return _Simplify(facts, Simplifier).statement(body)


def simplify_program(body: Stmt, facts: Facts) -> Stmt:
    """Simplify once more at the end, when there may be many versions of the same code."""
    return _Simplify(facts, VersionsSimplifier).statement(body)


class _Simplify:
    def __init__(self, facts: Facts, simplifier: type[Simplifier]) -> None:
        self.facts = facts.copy()
        self.simplifier = simplifier
        self.instead: dict[str, Expr] = {}  # replacements for names around the statement
        self.holders: dict[Key, Var] = {}  # value -> a name around the statement that already holds it
        self.used: set[str] = set()  # names used in the statements made so far

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Let):
            return self.let(s)
        if isinstance(s, If):
            return self.branch(s)
        if isinstance(s, Block):
            return ir.block(*[i for i in self.block(s.stmts) if not _is_nothing(i)])
        return self.other(s, self.simplifier(self.facts, self.instead))

    def block(self, stmts: Iterable[Stmt]) -> Iterator[Stmt]:
        """Simplify a block. In the last run, consecutive stores share the simplified forms of shared expressions."""
        rewrite = None
        for s in stmts:
            if isinstance(s, Store) and self.simplifier is VersionsSimplifier:
                rewrite = rewrite or self.simplifier(self.facts, self.instead)
                yield self.other(s, rewrite)
            else:
                rewrite = None
                yield self.statement(s)

    def other(self, s: Stmt, rewrite: Simplifier) -> Stmt:
        new = tuple(rewrite.visit(e) for e in ir.expressions(s))
        if isinstance(s, For):
            return self.loop(s, new)
        inside = tuple([self.statement(c) for c in ir.children(s)])
        simpler = ir.rebuild(s, new, inside)
        return Block(()) if isinstance(simpler, Store) and _stores_nothing(simpler) else self.using(simpler, new)

    def using(self, s: Stmt, expressions: Iterable[Expr]) -> Stmt:
        """Note the names in the statement's own expressions. Lets that are never used are removed."""
        self.used.update(*map(names, expressions))
        return s

    def let(self, s: Let) -> Stmt:
        value = self.simplifier(self.facts, self.instead).visit(s.value)
        if isinstance(value, Const):
            return self.without(s, value)
        if value.dtype != INDEX or value.lanes > 1:
            return self.named(s, value)
        holder = self.holders.get(key(value))
        if holder is not None or _is_offset(value):
            return self.without(s, value if holder is None else holder)
        self.facts.bounds[s.name] = self.facts.lower(value), self.facts.upper(value)
        self.facts.classes[s.name] = congruence(value, self.facts.classes)
        self.holders[key(value)] = var(s.name)
        result = self.named(s, value)
        del self.holders[key(value)]
        return result

    def without(self, s: Let, value: Expr) -> Stmt:
        """The body of a let with the value substituted for its name."""
        around = self.instead.get(s.name)
        self.instead[s.name] = value
        body = self.statement(s.body)
        if around is None:
            del self.instead[s.name]
        else:
            self.instead[s.name] = around
        return body

    def named(self, s: Let, value: Expr) -> Stmt:
        """The let, if it is used."""
        outside = s.name in self.used  # used by another version of the same code
        self.used.discard(s.name)
        body = self.statement(s.body)
        if s.name in self.used:
            body = self.using(Let(s.name, value, body), (value,))
        (self.used.add if outside else self.used.discard)(s.name)
        return body

    def branch(self, s: If) -> Stmt:
        condition = self.simplifier(self.facts, self.instead).visit(s.condition)
        if isinstance(condition, Const):
            taken = s.then if condition.value else s.otherwise
            return Block(()) if taken is None else self.statement(taken)
        then = self.statement(s.then)
        otherwise = None if s.otherwise is None else self.statement(s.otherwise)
        if otherwise is not None and _is_nothing(otherwise):
            otherwise = None
        if _is_nothing(then) and otherwise is None:
            return Block(())
        return self.using(If(condition, then, otherwise), (condition,))

    def loop(self, s: For, bounds: tuple[Expr, ...]) -> Stmt:
        low, extent = bounds[:2]
        if isinstance(extent, Const) and int(extent.value) <= 0:
            return Block(())
        if isinstance(extent, Const) and int(extent.value) == 1 and s.kind not in AT_ONCE:
            return self.let(Let(s.var, low, s.body))
        self.facts.bounds[s.var] = self.facts.lower(low), self.facts.upper(low + extent - 1)
        self.facts.classes.pop(s.var, None)
        body = self.statement(s.body)
        return Block(()) if _is_nothing(body) else self.using(ir.rebuild(s, bounds, (body,)), bounds)


def _stores_nothing(s: Store) -> bool:
    """Whether the store has no effect: its mask is false, or it atomically combines an element with a neutral value."""
    return _is_false(s.mask) or (s.manner is Manner.ATOMIC and is_neutral(s))


def _is_offset(e: Expr) -> bool:
    """Whether it is a variable, or a variable plus a constant, neither of which is worth a name."""
    terms = list(linear(e).terms.values())
    return len(terms) == 1 and isinstance(terms[0][0], Var) and terms[0][1] == 1


def _is_nothing(s: Stmt) -> bool:
    return isinstance(s, Block) and not s.stmts


def _is_false(mask: Expr | None) -> bool:
    return isinstance(mask, Const) and not mask.value
