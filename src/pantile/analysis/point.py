"""Evaluates an expression exactly at one point, in Python numbers: data wraps, floats are rounded to their type.

value_at(2*x + 1, {"x": 3})  ->  7
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

import numpy as np

from ..expr.nodes import Cast, Const, Expr, Load, Number, Op, Var, const
from ..expr.types import DType
from ..expr.visit import children, operands_first

# Variables by name, and loads by the id of their node.
Point = Mapping[str | int, Number]


def value_at(e: Expr, point: Point) -> Number | None:
    """The value of `e`, or None if it depends on a variable or load that the point does not have."""
    return OrderedExpression(e).value(point)


class OrderedExpression:
    """An expression to evaluate at several points. Its nodes are put in evaluation order once."""

    def __init__(self, e: Expr) -> None:
        nodes = operands_first(e, _operands)
        place = {id(node): k for k, node in enumerate(nodes)}
        self._steps = [(node, [place[id(c)] for c in _operands(node)]) for node in nodes]

    def value(self, point: Point) -> Number | None:
        """The value at a point, or None if it depends on a variable or load that the point does not have."""
        values: list[Number | None] = []
        with np.errstate(all="ignore"):
            for node, operands in self._steps:
                values.append(_value(node, point, [values[k] for k in operands]))
        return values[-1]


def _operands(e: Expr) -> tuple[Expr, ...]:
    return children(e) if isinstance(e, (Cast, Op)) else ()


def _value(e: Expr, point: Point, args: list[Number | None]) -> Number | None:
    if isinstance(e, Const):
        return _converted(e.value, e.dtype)
    if isinstance(e, (Var, Load)):
        return point.get(e.name if isinstance(e, Var) else id(e))
    if isinstance(e, Cast):
        return _converted(args[0], e.dtype)
    return _operation(e, args) if isinstance(e, Op) else None


def _operation(e: Op, args: list[Number | None]) -> Number | None:
    if e.op == "select":
        return None if args[0] is None else args[1 if args[0] else 2]
    if e.op == "within":
        return args[0]
    rule = _RULES.get(e.op)
    if rule is None or None in args:
        return None
    try:
        return _converted(rule(*args), e.dtype)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _converted(value: Number | None, to: DType) -> Number | None:
    """Convert a value to a type, with rounding, truncation or wrapping."""
    if value is None:
        return None
    if to.is_bool:
        return bool(value)
    if to.is_float:
        return float(value if to.kind == "bfloat" else to.numpy.type(value))
    if isinstance(value, float):
        return 0 if math.isnan(value) else int(min(max(value, to.min), to.max))
    return const(int(value), to).value


def _floordiv(a: Number, b: Number) -> Number:
    return a // b if b else 0


def _mod(a: Number, b: Number) -> Number:
    return a % b if b else 0


def _shl(a: Number, b: Number) -> Number:
    return int(a) << int(b) if 0 <= b < 64 else 0


def _shr(a: Number, b: Number) -> Number:
    return int(a) >> (int(b) if 0 <= b < 64 else 64)


def _not(a: Number) -> Number:
    return not a if isinstance(a, bool) else ~int(a)


def _div(a: Number, b: Number) -> Number:
    return float(np.divide(float(a), float(b)))


def _min(a: Number, b: Number) -> Number:
    return float("nan") if a != a or b != b else min(a, b)


def _max(a: Number, b: Number) -> Number:
    return float("nan") if a != a or b != b else max(a, b)


_RULES: dict[str, Callable[..., Number]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": _floordiv, "mod": _mod, "min": _min,
    "max": _max, "neg": operator.neg, "abs": abs, "div": _div, "floor": np.floor, "ceil": np.ceil,
    "round": np.rint, "trunc": np.trunc, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "shl": _shl, "shr": _shr, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "not": _not,
}  # fmt: skip
