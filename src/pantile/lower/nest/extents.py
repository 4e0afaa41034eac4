"""Extents that are never negative, though constant bounds do not show it: of blocks that end with their loop, and of
what slides. Others follow from them: what a stencil reads of such a block is no less.

    known:      min(8*k + 7, n - 1) - 8*k + 1 >= 0           the rows of a block, the last one being shorter
    follows:    min(8*k + 7, n - 1)//2 - 4*k + 2 >= 0        the rows that it reads of a stage half as high
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...dataclass import dataclass
from ...expr.linear import Facts, linear, simplify
from ...expr.nodes import Const, Expr, Op, const
from ...expr.types import INDEX
from ...expr.visit import Key


@dataclass(frozen=True)
class _TermBound:
    """A symbolic bound of a term that constants do not bound well, such as min(8*k + 7, n - 1)."""

    term: Key
    above: bool
    value: Expr


class Extents:
    """Extents known not to be negative, from which others follow."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.bounds: list[_TermBound] = []

    def learn(self, extent: Expr) -> None:
        """Note that an extent is not negative."""
        for k, (term, times) in linear(extent).terms.items():
            if isinstance(term, Op) and times in (1, -1):
                other = term - extent if times == 1 else term + extent
                self.bounds.append(_TermBound(k, times == -1, simplify(other, self.facts)))

    @contextmanager
    def of_a_version(self) -> Iterator[None]:
        """Forget at the end what is learned about code for a special case."""
        count = len(self.bounds)
        yield
        del self.bounds[count:]

    def follows(self, extent: Expr) -> bool:
        """Whether an extent is not negative because one of the noted ones is not."""
        zero = const(0, INDEX)
        for bound in self.bounds:
            least = _bounded(extent, False, bound)
            if least is not extent and self.facts.ge(simplify(least, self.facts), zero):
                return True
        return False


def _bounded(e: Expr, above: bool, bound: _TermBound) -> Expr:
    """A bound of `e`: `e` itself, unless the bounded term occurs in it or in a quotient."""
    result = e
    for k, (term, times) in linear(e).terms.items():
        side = above == (times > 0)
        if k == bound.term and side == bound.above:
            result = result + (bound.value - term) * times
        elif isinstance(term, Op) and term.op == "floordiv" and isinstance(d := term.args[1], Const) and d.value > 0:
            inner = _bounded(term.args[0], side, bound)
            if inner is not term.args[0]:
                result = result + (inner // term.args[1] - term) * times
    return result
