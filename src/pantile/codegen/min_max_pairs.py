"""Finds minima and maxima of the same two values.

Sorting networks compute both the minimum and the maximum of two values that are dead afterwards. If the two are written
one after the other, the results take the registers of the values. If each were written at its first use, which may be
far apart, the live ranges of the values would be longer.
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
        """The maximum of the operands of a minimum, or the other way round; None if it is not computed."""
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
