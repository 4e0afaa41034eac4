"""Code size of statements, and budgets for the code that passes may add.

Versions of loops, their edges and unrolled copies multiply: a schedule of a few lines may request more code than LLVM
can compile in minutes. The code that a pass adds is therefore taken from a budget. When the budget is used up, a
transformation is not applied, which only costs run time.
"""

from __future__ import annotations

from collections.abc import Callable

from ..expr.nodes import Const
from ..expr.visit import walk
from ..ir import visit as ir
from ..ir.nodes import For, Stmt
from ..schedule.limits import MOST_LANES
from ..target.kinds import Kind


def size(s: Stmt, unrolled: bool = True, widest: int = MOST_LANES) -> int:
    """The number of expressions in a statement; if `unrolled`, it is multiplied by the trip counts of unrolled loops.
    Vectors of more lanes than `widest` count as several expressions."""
    inside = 1 + sum(-(-e.lanes // widest) for e in walk(*ir.expressions(s)))
    inside += sum(size(c, unrolled, widest) for c in ir.children(s))
    return inside * copies(s) if unrolled else inside


def copies(s: Stmt) -> int:
    """The number of copies that an unrolled loop becomes."""
    return int(s.extent.value) if isinstance(s, For) and s.kind is Kind.UNROLL and isinstance(s.extent, Const) else 1


class Room:
    """The budget left, for a part and for the whole. If the size `larger()` exceeds `most`, this size is the budget."""

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
