"""Arithmetic cost of expressions: one for most operations, more for those that take many instructions.

"We assign unit cost to most arithmetic operations and higher costs to more complex operations such as division and
transcendentals" (halide-autoscheduler §4.1).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..expr.nodes import Cast, Const, Expr, Op
from .work import evaluated

_DIVISION = 6.0
_TRANSCENDENTAL = 20.0
_WEIGHTS = {
    **dict.fromkeys(("div", "sqrt", "rsqrt"), _DIVISION),
    **dict.fromkeys(("exp", "log", "pow", "cbrt", "tanh", "erf"), _TRANSCENDENTAL),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan2"), _TRANSCENDENTAL),
    "within": 0.0,
}


def arithmetic(roots: Iterable[Expr]) -> float:
    """The cost of evaluating all roots once; shared nodes count once, and arithmetic on coordinates does not count."""
    return sum(weight(e) for e in evaluated(roots))


def weight(e: Expr) -> float:
    """The cost of one node."""
    if isinstance(e, Cast):
        return 1.0
    if not isinstance(e, Op):
        return 0.0
    if e.op in ("floordiv", "mod", "div") and isinstance(e.args[1], Const):
        return 2.0 if e.op != "div" else 1.0  # by multiplication and shift, or with the reciprocal
    if e.op in ("floordiv", "mod"):
        return _DIVISION
    return _WEIGHTS.get(e.op, 1.0)
