"""Code size of statements, and budgets for the code that passes may add.

Versions of loops, their edges and unrolled copies multiply with each other: a schedule of a few lines may ask for more
code than LLVM compiles in minutes. What a pass adds is therefore taken from a budget; without any left, a
transformation is not done, which costs run time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from ..expr.nodes import Const
from ..expr.visit import walk
from ..ir import visit as ir
from ..ir.nodes import For, Stmt
from ..target.kinds import Kind


def size(s: Stmt, unrolled: bool = True) -> int:
    """The number of expressions in a statement, times the trip counts of unrolled loops if these count."""
    inside = 1 + sum(1 for _ in walk(*ir.expressions(s))) + sum(size(c, unrolled) for c in ir.children(s))
    return inside * copies(s) if unrolled else inside


def copies(s: Stmt) -> int:
    """The number of copies that an unrolled loop becomes."""
    return int(s.extent.value) if isinstance(s, For) and s.kind is Kind.UNROLL and isinstance(s.extent, Const) else 1


class Room:
    """The budget left, for a part and for the whole; if the size `larger()` exceeds `most`, that is the budget."""

    def __init__(self, most: int, whole: Room | None = None, larger: Callable[[], int] | None = None) -> None:
        self.most = self.left = most
        self.whole = whole
        self.larger = larger

    def take(self, amount: int) -> bool:
        """Take from the budget if enough is left, and return whether it was."""
        if not self.has(amount):
            return False
        self._use(amount)
        return True

    def has(self, amount: int) -> bool:
        if amount > self.left and self.larger is not None:
            self.left += max(0, self.larger() - self.most)
            self.larger = None
        return amount <= self.left and (self.whole is None or self.whole.has(amount))

    def _use(self, amount: int) -> None:
        self.left -= amount
        if self.whole is not None:
            self.whole._use(amount)
