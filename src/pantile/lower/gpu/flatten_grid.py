"""Flatten the grid: directly nested block loops become one loop, whose variable is the block's number.

before:  block for yo in 0..m:             after:  block for yo.block in 0..m*n:
             block for xo in 0..n:                     let yo = yo.block // n
                 ...                                   let xo = yo.block % n
                                                       ...

Neighbouring blocks run at about the same time and read the same cache lines.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ...analysis.interval import Scope, interval
from ...expr.build import expr, maximum
from ...expr.linear import Facts, simplify
from ...expr.nodes import Const, Expr, const, var
from ...expr.types import INDEX
from ...expr.visit import depends, substitute
from ...ir.nodes import For, If, Let, Stmt
from ...ir.visit import expressions, rebuild
from ...target.kinds import Kind
from ..footprint import step
from ..names import of_loop
from ..simplify import clean_program
from .make_blocks import has_blocks

_ZERO = const(0, INDEX)


def flatten_grid(body: Stmt, facts: Facts) -> Stmt:
    """Make one block loop of the nested ones of each kernel."""
    return _visit(body, facts, {})


def _visit(s: Stmt, facts: Facts, scope: Scope) -> Stmt:
    if isinstance(s, For) and s.kind is Kind.BLOCK:
        return _Chain(s, facts, scope).collapsed()
    return rebuild(s, expressions(s), tuple([_visit(c, facts, inner) for c, inner in step(s, scope)]))


class _Chain:
    """Nested block loops and the lets between them, outermost first, and the innermost body."""

    def __init__(self, s: For, facts: Facts, scope: Scope) -> None:
        self.outermost, self.facts = s, facts
        self.steps: list[Stmt] = []
        self.extents: list[Expr] = []
        self.varies: list[bool] = []  # whether the extent depends on the loops outside
        self.values: dict[str, Expr] = {}  # values of lets between the loops
        at: Stmt = s
        while has_blocks(at):
            self.steps.append(at)
            if isinstance(at, For):
                self.extents.append(self.extent(at, scope))
            elif isinstance(at, Let):
                self.values[at.name] = substitute(at.value, self.values)
            ((at, scope),) = step(at, scope)
        self.body = at

    def extent(self, s: For, scope: Scope) -> Expr:
        """An upper bound of a loop's trip count, in names that the host knows."""
        known = simplify(substitute(s.extent, self.values), self.facts)
        if not depends(known, [x.var for x in self.steps if isinstance(x, For)]):
            self.varies.append(False)
            return known
        self.varies.append(True)
        return expr(interval(s.extent, scope).high, INDEX)

    def collapsed(self) -> Stmt:
        block = var(of_loop(self.outermost.var, "block"))
        extents = list(self.extents)
        count = simplify(reduce(lambda a, b: a * b, extents), self.facts)
        body, rest = self.body, len(extents)
        inside: Expr = const(1, INDEX)
        for s in reversed(self.steps):
            if not isinstance(s, For):
                body = rebuild(s, expressions(s), (body,))
                continue
            rest -= 1
            # If any block runs, no extent is 0. Stating this with `maximum` allows unsigned divisions.
            number: Expr = block if _is_one(inside) else block // maximum(inside, const(1, INDEX))
            number = number % maximum(extents[rest], const(1, INDEX)) if rest else number
            body = Let(s.var, s.min + number, body)
            if self.varies[rest]:
                body = If(number < s.extent, body)
            inside = simplify(inside * extents[rest], self.facts)
        if any(map(_is_one, extents)):  # the variables of these loops are constants
            body = clean_program(body, self.facts)
        return replace(self.outermost, var=block.name, min=_ZERO, extent=count, body=body)


def _is_one(e: Expr) -> bool:
    return isinstance(e, Const) and int(e.value) == 1
