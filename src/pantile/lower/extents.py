"""Extents that are never negative, though constant bounds do not show it: of blocks that end with their loop, and of
what slides. Others follow from them: what a stencil reads of such a block is no less.

    known:      min(8*k + 7, n - 1) - 8*k + 1 >= 0           the rows of a block, the last one being shorter
    follows:    min(8*k + 7, n - 1)//2 - 4*k + 2 >= 0        the rows that it reads of a stage half as high
"""

from __future__ import annotations

from ..expr.linear import Facts, linear, simplify
from ..expr.nodes import Const, Expr, Op, const
from ..expr.types import INT64
from ..expr.visit import Key


class Extents:
    """Remembers extents, and knows others by them."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.known: list[dict[tuple[Key, bool], Expr]] = []  # per extent: atom, and from above or below -> bound of it

    def learn(self, extent: Expr) -> None:
        """It is not negative."""
        bounds: dict[tuple[Key, bool], Expr] = {}
        for k, (atom, c) in linear(extent).terms.items():
            if isinstance(atom, Op) and c == 1:
                bounds[k, False] = simplify(atom - extent, self.facts)
            elif isinstance(atom, Op) and c == -1:
                bounds[k, True] = simplify(atom + extent, self.facts)
        if bounds:
            self.known.append(bounds)

    def follows(self, extent: Expr) -> bool:
        """Whether an extent is not negative, as one of the others is not."""
        zero = const(0, INT64)
        for bounds in self.known:
            least = _bound(extent, False, bounds)
            if least is not extent and self.facts.ge(simplify(least, self.facts), zero):
                return True
        return False


def _bound(e: Expr, above: bool, bounds: dict[tuple[Key, bool], Expr]) -> Expr:
    """A bound of `e`, which is `e` itself if none of the atoms that have one occurs as a term or in a quotient."""
    result = e
    for k, (atom, c) in linear(e).terms.items():
        side = above == (c > 0)
        if (k, side) in bounds:
            result = result + (bounds[k, side] - atom) * c
        elif isinstance(atom, Op) and atom.op == "floordiv" and _is_positive(atom.args[1]):
            inner = _bound(atom.args[0], side, bounds)
            if inner is not atom.args[0]:
                result = result + (inner // atom.args[1] - atom) * c
    return result


def _is_positive(e: Expr) -> bool:
    return isinstance(e, Const) and int(e.value) > 0
