"""How much code statements come to, and how much more passes may make of it.

Versions of loops, their edges and unrolled copies multiply with each other: a schedule of a few lines may ask for more
code than LLVM compiles in minutes. What a pass adds is therefore taken from a room of stated size; what finds none
left is not done, which costs some time when the code runs, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from ..expr.nodes import Const
from ..expr.visit import walk
from ..ir import visit as ir
from ..ir.nodes import For, Stmt
from ..target.kinds import Kind


def size(s: Stmt, unrolled: bool = True) -> int:
    """Expressions of a statement and of all inside it, as often as unrolled loops will repeat them if these count."""
    inside = 1 + sum(1 for _ in walk(*ir.expressions(s))) + sum(size(c, unrolled) for c in ir.children(s))
    return inside * copies(s) if unrolled else inside


def copies(s: Stmt) -> int:
    """What an unrolled loop becomes."""
    return int(s.extent.value) if isinstance(s, For) and s.kind is Kind.UNROLL and isinstance(s.extent, Const) else 1


class Room:
    """What may still be added: to a part of a program, and to all of it. `larger`: how much it is if that is more than
    `most`, which is worked out if need be."""

    def __init__(self, most: int, whole: Room | None = None, larger: Callable[[], int] | None = None) -> None:
        self.most = self.left = most
        self.whole = whole
        self.larger = larger

    def take(self, amount: int) -> bool:
        """Whether so much could be added, which then it is."""
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
