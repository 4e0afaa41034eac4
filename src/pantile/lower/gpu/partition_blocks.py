"""Partition blocks: blocks in the interior of an image compute without clamps and conditions. Each block tests once
whether it is one of them.

before:  block for yo, xo:                        after:  block for yo, xo:
             f[clamp(8*yo + yi - 1, 0, h - 1)]                if 1 <= yo and yo < h//8:
                                                                  f[8*yo + yi - 1]
                                                              else:
                                                                  f[clamp(8*yo + yi - 1, 0, h - 1)]

`partition` does the same with loops on CPUs: a steady middle and edges. The branch is uniform over a block and costs
next to nothing, whereas each separate kernel for an edge would be one more launch.

If the versions would differ only in that the last block is shifted inwards, there is a single version: `min(8*yo, h -
8)` is computed only once per block, and a second version would double the code (`block_starts`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ...analysis.interval import Scope, interval
from ...expr.build import logical_and
from ...expr.congruence import Class, congruence
from ...expr.linear import Facts, simplify
from ...expr.nodes import Expr, var
from ...expr.types import INDEX
from ...expr.visit import depends
from ...ir.nodes import For, If, Let, Stmt
from ...ir.visit import children, expressions, rebuild
from ...target.kinds import Kind
from ..conditions import Decided, is_true
from ..partition import Steady
from ..size import Room, size
from .block_starts import Starts
from .make_blocks import has_blocks

_MOST_OF_ALL = 32_000  # most expressions added to a program


def partition_blocks(
    body: Stmt, facts: Facts, never: Collection[str], refused: Callable[[str], None], starts: Starts
) -> Stmt:
    """Version blocks by conditions that are uniform over a block. `never` names the block loops to leave alone."""
    return _Edges(facts, never, Room(_MOST_OF_ALL, larger=lambda: size(body)), refused, starts).visit(
        body, (), {}, facts.classes
    )


class _Edges:
    def __init__(
        self, facts: Facts, never: Collection[str], room: Room, refused: Callable[[str], None], starts: Starts
    ) -> None:
        self.facts, self.never, self.room, self.refused, self.starts = facts, never, room, refused, starts

    def visit(self, s: Stmt, around: tuple[str, ...], scope: Scope, classes: Mapping[str, Class]) -> Stmt:
        """Visit a statement.

        `around` has the block loops around it, including loops over tails that contain block loops. `scope` has the
        ranges of the lets between them. `classes` says what names are multiples of.
        """
        if isinstance(s, For) and (s.kind is Kind.BLOCK or (around and has_blocks(s.body))):
            around = (*around, s.var)
        elif around and isinstance(s, Let) and s.value.dtype == INDEX and has_blocks(s.body):
            if not _decides_blocks(s):
                return self.visit(_innermost(s, s.body), around, scope, classes)
            scope = {**scope, s.name: interval(s.value, scope)}
        elif around and not has_blocks(s):
            return self.decided(s, around, scope, classes)
        if isinstance(s, Let) and s.value.dtype == INDEX:
            classes = {**classes, s.name: congruence(s.value, classes)}
        inside = tuple([self.visit(c, around, scope, classes) for c in children(s)])
        return rebuild(s, expressions(s), inside)

    def decided(self, s: Stmt, around: tuple[str, ...], scope: Scope, classes: Mapping[str, Class]) -> Stmt:
        steady, conditions = s, list[Expr]()
        for name in (n for n in reversed(around) if n not in self.never):
            middle = Steady(name, self.facts)
            middle.statement(steady, scope)
            if not middle.choices or middle.contradicted:
                continue
            steady = Decided(middle.choices).statement(steady)
            conditions += [var(name) >= bound for bound in middle.lower] + [var(name) < bound for bound in middle.upper]
        conditions = [c for c in (simplify(c, self.facts) for c in conditions) if not is_true(c)]
        if not conditions:
            return steady
        if (both := self.starts.one_version(s, steady, classes)) is not None:
            return both
        if not self.room.take(size(s)):
            self.refused(around[-1])
            return s
        return If(logical_and(*conditions), steady, s)


def _decides_blocks(s: Let) -> bool:
    """Whether the bounds of block loops, or other lets between these, depend on the let."""
    inner = s.body
    while has_blocks(inner):
        if any(depends(e, [s.name]) for e in expressions(inner)):
            return True
        (inner,) = children(inner)
    return False


def _innermost(let: Let, s: Stmt) -> Stmt:
    """Sink the let into all block loops, since its value may be simpler in interior blocks."""
    if not has_blocks(s):
        return Let(let.name, let.value, s)
    (inner,) = children(s)
    return rebuild(s, expressions(s), (_innermost(let, inner),))
