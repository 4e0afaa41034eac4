"""Run the last block of a split, shifted inwards, in the same loop as the whole blocks.

before:  for x in 0..n:                     after:  for x.piece in 0..n - x.whole + 1:
             let lo = min(x*8, w - 8)                   let x.start = select(x.piece < 1, 0, w - 8)
             f[ramp(lo, 1, 8)] = ...                    for x in 0..select(x.piece < 1, x.whole, 1):
                                                            let lo = x*8 + x.start
                                                            f[ramp(lo, 1, 8)] = ...

Nearly every loop over vectors has such a block. A second loop for it would double the code and the compile time; a
minimum in each iteration would hide from LLVM that addresses advance in equal steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..dataclass import dataclass
from ..expr.build import select
from ..expr.congruence import known_remainder
from ..expr.linear import Facts, simplify
from ..expr.nodes import Const, Expr, Op, const, var
from ..expr.types import INDEX
from ..expr.visit import depends, substitute, walk
from ..ir import visit as ir
from ..ir.nodes import For, Let, Stmt
from .names import of_loop
from .size import size

_ZERO, _ONE = const(0, INDEX), const(1, INDEX)
_LEAST = 100  # least number of expressions in the body of a short loop: selecting the piece costs some instructions


@dataclass(frozen=True)
class LastBlock:
    """A loop in which a single let, `min(moving, limit)`, is clamped and nothing else."""

    loop: For
    let: Let
    moving: Expr
    limit: Expr

    def shared(self, whole: Expr, facts: Facts) -> Stmt:
        """One loop nest for the iterations before `whole` and for each iteration from there on."""
        s = self.loop
        piece, start, end = (var(of_loop(s.var, word)) for word in ("piece", "start", "whole"))
        moved = simplify(substitute(self.moving, {s.var: s.min + var(s.var)}) - self.first, facts)
        body = ir.transform(s.body, lambda i: Let(i.name, moved + start, i.body) if i is self.let else None)
        inside = For(s.var, _ZERO, select(piece < 1, end - s.min, _ONE), s.kind, body)
        begun = Let(start.name, select(piece < 1, self.first, self.limit), inside)
        pieces = simplify(s.min + s.extent - end + 1, facts)
        return Let(end.name, whole, For(piece.name, _ZERO, pieces, s.kind, begun))

    @property
    def first(self) -> Expr:
        """The start of the first block."""
        return substitute(self.moving, {self.loop.var: self.loop.min})

    def keeps_alignment(self, facts: Facts) -> bool:
        """Whether facts about quotients and remainders of indices also hold in the last block."""
        shift = simplify(self.limit - self.moving, facts)
        divisors = [_divisor(e) for e in _divided(self.let.body, {self.let.name})]
        return all(d is not None and known_remainder(shift, d, {}) == 0 for d in divisors)


def last_block(s: For, choices: Mapping[int, tuple[Expr, Expr]], facts: Facts) -> LastBlock | None:
    """The clamp of a loop, if its steady iterations (`choices`) differ from the others only by that clamp; otherwise
    None.

    Also None if a second loop is better: for short bodies with few iterations, and for indices whose alignment matters.
    """
    if len(choices) != 1 or isinstance(s.extent, Const) and size(s.body) < _LEAST:
        return None
    ((node, moving),) = choices.values()
    if not (isinstance(node, Op) and node.op == "min"):
        return None
    inside, let = set[str](), s.body
    while isinstance(let, Let) and let.value is not node:
        inside.add(let.name)
        let = let.body
    limit = node.args[1 if node.args[0] is moving else 0]
    if not isinstance(let, Let) or depends(limit, {s.var, *inside}) or depends(moving, inside):
        return None
    if any(depends(e, [s.var]) for i in ir.walk(s.body) for e in ir.expressions(i) if e is not node):
        return None
    block = LastBlock(s, let, moving, limit)
    return block if block.keeps_alignment(facts) else None


def _divided(s: Stmt, moving: set[str]) -> Iterator[Op]:
    """Yield the quotients and remainders of indices that depend on some names."""
    for e in walk(*ir.expressions(s)):
        if isinstance(e, Op) and e.op in ("floordiv", "mod") and e.dtype == INDEX and depends(e.args[0], moving):
            yield e
    if isinstance(s, (Let, For)) and any(depends(e, moving) for e in ir.expressions(s)):
        moving = {*moving, s.name if isinstance(s, Let) else s.var}
    for inner in ir.children(s):
        yield from _divided(inner, moving)


def _divisor(e: Op) -> int | None:
    d = e.args[1]
    return int(d.value) if isinstance(d, Const) and int(d.value) > 0 else None
