"""Substitute coordinates: a definition's expressions with its coordinates replaced by index expressions of loops.

An index that is data plus a constant adds the constant as an index, where the sum certainly stays within its type: in
64 bits, neighbours are seen to be neighbours.

before:  lut[index(b[x] + 1)]          after:  lut[index(b[out.x]) + 1]

Data that is compared as an index, since the coordinate of an inlined stage was, is compared as data.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from ...analysis.interval import interval
from ...expr.build import binary, cast
from ...expr.nodes import COMPARISON, Cast, Const, Expr, Op, Var
from ...expr.types import INDEX, promote
from ...expr.visit import loaded, transform


class LoweredExpressions:
    """Expressions of one definition with its coordinates replaced (`at` maps dim names to index expressions)."""

    def __init__(self, at: Mapping[str, Expr]) -> None:
        self.at = at
        self.memo: dict[int, Expr] = {}
        self.keep: list[Expr] = []

    def expression(self, e: Expr) -> Expr:
        self.keep.append(e)  # alive while its id is a key
        return transform(e, self.change, self.memo)

    def change(self, e: Expr) -> Expr | None:
        if isinstance(e, Var):
            return self.at.get(e.name)
        if isinstance(e, Cast) and e.dtype is INDEX and isinstance(e.value, Op) and _never_wraps(e.value):
            data, by = e.value.args
            return binary(e.value.op, cast(INDEX, data), cast(INDEX, by))
        if isinstance(e, Op) and e.op in COMPARISON and e.args[0].dtype is INDEX and loaded(e):
            return _compared_as_data(e)
        return None


def _compared_as_data(e: Op) -> Expr | None:
    """The comparison in the common type of both sides, if that is a small one."""
    types = [a.value.dtype for a in e.args if isinstance(a, Cast)]
    if not types or any(t.bits == 64 for t in types):
        return None
    t = reduce(promote, types)
    constants = [a for a in e.args if not isinstance(a, Cast)]
    if t.bits == 64 or not all(isinstance(a, Const) and t.min <= a.value <= t.max for a in constants):
        return None
    return binary(e.op, *(cast(t, a.value if isinstance(a, Cast) else a) for a in e.args))


def _never_wraps(e: Op) -> bool:
    """Whether this is data plus a constant that stays within its type."""
    if e.op not in ("add", "sub") or not isinstance(e.args[1], Const):
        return False
    data, shift = interval(e.args[0], {}), int(e.args[1].value) * (1 if e.op == "add" else -1)
    if not (isinstance(data.low, int) and isinstance(data.high, int)):
        return False
    return e.dtype.min <= data.low + shift and data.high + shift <= e.dtype.max
