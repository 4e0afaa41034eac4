"""Finds whether an expression is monotonic in a variable, from its structure."""

from __future__ import annotations

from ..expr.nodes import Cast, Const, Expr, Load, Op, Var
from ..expr.types import INDEX, DType
from ..expr.visit import each_once, names

Directions = frozenset[int]  # 1: it may grow as the variable grows; -1: it may shrink
_STAYS: Directions = frozenset()
_EITHER: Directions = frozenset({1, -1})
_SUMS = {"add", "sub", "neg"}
_FOLLOWING = {"min", "max", "within", "floor", "ceil", "round", "trunc"}
_SCALING = {"mul", "div", "floordiv", "shr"}


def directions(e: Expr, name: str) -> Directions:
    """The directions in which the interval of an expression may move as a variable grows: none if it is constant, one
    if it is monotonic in the variable. Data is ignored, since its interval is always that of its type.
    """
    memo: dict[int, Directions] = {}

    def visit(node: Expr) -> Directions:
        if isinstance(node, Var):
            return frozenset({1}) if node.name == name else _STAYS
        below = [memo[id(c)] for c in _operands(node)]
        if not any(below):
            return _STAYS
        if isinstance(node, Cast):
            return below[0] if _keeps_order(node.value.dtype, node.dtype) else _EITHER
        return _of_operation(node, below) if isinstance(node, Op) else _EITHER

    return each_once(e, memo, visit, _operands) if name in names(e) else _STAYS


def _operands(e: Expr) -> tuple[Expr, ...]:
    return () if isinstance(e, Load) else e.operands


def _of_operation(e: Op, below: list[Directions]) -> Directions:
    may_wrap = e.dtype.is_int and e.dtype is not INDEX
    if e.op in _FOLLOWING:
        return frozenset().union(*below)
    if e.op in _SUMS and not may_wrap:
        return below[0] | _opposite(below[1]) if e.op == "sub" else _sum(e.op, below)
    if e.op in _SCALING and not (may_wrap and e.op == "mul"):
        return _scaled(e, below)
    return _EITHER


def _sum(op: str, below: list[Directions]) -> Directions:
    return _opposite(below[0]) if op == "neg" else below[0] | below[1]


def _scaled(e: Op, below: list[Directions]) -> Directions:
    """The directions of a product with a number, or of a quotient by one."""
    a, b = e.args
    if isinstance(b, Const):
        return below[0] if b.value >= 0 else _opposite(below[0])
    if isinstance(a, Const) and e.op == "mul":
        return below[1] if a.value >= 0 else _opposite(below[1])
    return _EITHER


def _opposite(d: Directions) -> Directions:
    return frozenset(-sign for sign in d)


def _keeps_order(source: DType, to: DType) -> bool:
    """Whether a conversion is monotonic: it rounds or saturates, or the target type holds all values."""
    if to.is_bool or source.is_bool:
        return False
    return to.is_float or source.is_float or to.min <= source.min and source.max <= to.max
