"""Which minima and maxima are of the same two values.

Sorting networks compute both the minimum and the maximum of two values that are dead afterwards. Written one after the
other, the two results take the registers of the two values; written at their first uses, which may be far apart, they
would extend the live ranges of the values.
"""

from __future__ import annotations

from ..dataclass import cached_property
from ..expr.nodes import Op
from ..expr.visit import Key, key
from ..ir.nodes import Stmt
from .strided_loads import certain

_OTHER = {"min": "max", "max": "min"}
_Pair = tuple[str, Key, Key]


class Exchanges:
    """The minima and maxima of vectors that a statement computes unconditionally."""

    def __init__(self, s: Stmt) -> None:
        self._stmt = s

    def other(self, e: Op) -> Op | None:
        """The maximum of the operands of a minimum, if it is computed too; or the other way round."""
        if e.op not in _OTHER or e.lanes == 1:
            return None
        first, second = map(key, e.args)
        return self._known.get((_OTHER[e.op], first, second))

    @cached_property
    def _known(self) -> dict[_Pair, Op]:
        """The pairs, collected on first use."""
        pairs: dict[_Pair, Op] = {}
        for e in certain(self._stmt, Op):
            if e.op in _OTHER and e.lanes > 1:
                first, second = map(key, e.args)
                pairs.setdefault((e.op, first, second), e)
        return pairs
