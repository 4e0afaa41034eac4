"""Quotients of floats whose divisor may be 0 at one place of a loop, unnoticed by the check of a call.

    x / (k >> y)    for all rows, k >> y is any number of its type; for one row, it is one number, which may be 0

The check evaluates all places at once. Where the ends of a divisor are computed in the same way for one place and for
all of them, it refuses calls in which one of these ends is NaN.
"""

from __future__ import annotations

from ..expr.nodes import Cast, Const, Expr, Op
from ..expr.types import INDEX
from ..expr.visit import walk

_KEEPING_ENDS = {"add", "sub", "neg", "mul", "min", "max"}


def may_divide_by_zero(e: Expr) -> bool:
    """Whether an expression is a quotient whose divisor may be 0 in a call that is not refused."""
    if not isinstance(e, Op) or not e.dtype.is_float or e.op not in ("div", "floordiv"):
        return False
    return not all(map(_keeps_ends, walk(e.args[1])))


def _keeps_ends(e: Expr) -> bool:
    """Whether a node's ends are computed in the same way for one place and for all places of a loop."""
    if isinstance(e, Op) and e.dtype is INDEX:
        return e.op in _KEEPING_ENDS or e.op == "floordiv" and isinstance(e.args[1], Const)
    return not isinstance(e, (Op, Cast)) or e.dtype is INDEX or e.dtype.is_float
