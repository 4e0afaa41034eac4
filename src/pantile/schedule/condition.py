"""Conditions of `specialize`: Python text over params and input shapes, so that schedules print and save as text."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from ..errors import UserError, here, shown
from ..expr import build
from ..expr.nodes import Const, Expr, const, var
from ..expr.types import INT32
from ..graph.nodes import Graph
from ..graph.widen import IndexWidener
from .limits import DEEPEST_CONDITION, LONGEST_CONDITION

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.Not: lambda x: build.unary("not", x),
    ast.And: operator.and_, ast.Or: operator.or_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def canonical(condition: str) -> str:
    """The condition in a canonical spelling, so that equal conditions make equal schedules."""
    if not isinstance(condition, str):
        raise UserError(
            "a condition to specialize on is written as text over params and input shapes, "
            'such as "img.shape[1] >= 64 and gain == 1.0"',
            here(),
        )
    if len(condition) > LONGEST_CONDITION:
        raise UserError(
            f"the condition {shown(condition)} has {len(condition)} characters; use at most {LONGEST_CONDITION}", here()
        )
    try:
        tree = ast.parse(condition.strip(), mode="eval")
        if _depth(tree) <= DEEPEST_CONDITION:
            return ast.unparse(tree)
    except (SyntaxError, ValueError, MemoryError) as error:
        raise UserError(f"the condition {shown(condition)} is not a Python expression: {error}", here()) from error
    except RecursionError:
        pass
    raise UserError(
        f"the condition {shown(condition)} has operations more than {DEEPEST_CONDITION} deep inside each other; "
        "write it with fewer, or join parts by and",
        here(),
    )


def _depth(tree: ast.AST) -> int:
    """The depth of a tree, computed without recursion, which a deep tree would exhaust."""
    deepest, nodes = 0, [tree]
    while nodes:
        deepest += 1
        nodes = [c for n in nodes for c in ast.iter_child_nodes(n)]
    return deepest


def parse(condition: str, graph: Graph) -> Expr:
    """The condition as an expression over the graph's scalars."""
    try:
        value = build.expr(_ConditionParser(graph).read(ast.parse(condition, mode="eval").body))
    except UserError:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UserError(f"{condition} has no value: {error}") from error
    if not value.dtype.is_bool:
        raise UserError(f"{condition} is {value.dtype}, not a condition; compare it with something")
    return IndexWidener(frozenset(p.name for p in graph.params)).value(value)


class _ConditionParser:
    """Evaluates a Python expression tree to an Expr (or a number, which stays weak)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.params = {p.name: p for p in graph.params}

    def read(self, node: ast.expr) -> Any:
        rule = _RULES.get(type(node))
        if rule is None:
            raise UserError(f"{ast.unparse(node)} cannot stand in a condition; use params, input shapes and numbers")
        return rule(self, node)

    def number(self, node: ast.Constant) -> bool | int | float:
        if not isinstance(node.value, (bool, int, float)):
            raise UserError(f"{node.value!r} cannot stand in a condition; use params, input shapes and numbers")
        return node.value

    def param(self, node: ast.Name) -> Expr:
        param = self.params.get(node.id)
        if param is None:
            known = ", ".join(self.params) or "none"
            raise UserError(f"{node.id} is not a param of this pipeline (it has: {known})")
        return var(param.name, param.dtype)

    def extent(self, node: ast.Subscript) -> Expr:
        array, axis = node.value, node.slice
        if isinstance(array, ast.Attribute) and array.attr == "shape" and isinstance(array.value, ast.Name):
            source = self.graph.input.get(array.value.id)
            number = axis.value if isinstance(axis, ast.Constant) and type(axis.value) is int else -1
            if source is not None and 0 <= number < source.ndim:
                size = source.size(number)
                return const(int(size.value), INT32) if isinstance(size, Const) else var(source.extent(number), INT32)
        known = ", ".join(f"{i.name}.shape[0..{i.ndim - 1}]" for i in self.graph.inputs) or "none"
        raise UserError(f"{ast.unparse(node)} is not the extent of an input (there are: {known})")

    def unary(self, node: ast.UnaryOp) -> Any:
        return _OPERATORS[type(node.op)](self.read(node.operand))

    def binary(self, node: ast.BinOp) -> Any:
        if type(node.op) not in _OPERATORS:
            raise UserError(f"{ast.unparse(node)} cannot stand in a condition; use + - * / // % and comparisons")
        return _OPERATORS[type(node.op)](self.read(node.left), self.read(node.right))

    def logic(self, node: ast.BoolOp) -> Any:
        result, *others = map(self.read, node.values)
        for other in others:
            result = _OPERATORS[type(node.op)](result, other)
        return result

    def comparison(self, node: ast.Compare) -> Any:
        values = [self.read(node.left), *map(self.read, node.comparators)]
        if any(type(o) not in _OPERATORS for o in node.ops):
            raise UserError(f"{ast.unparse(node)} cannot stand in a condition; use == != < <= > >=")
        links = [_OPERATORS[type(o)](a, b) for o, a, b in zip(node.ops, values, values[1:], strict=False)]
        result, *others = links
        for other in others:
            result = result & other
        return result


_RULES: dict[type[ast.expr], Callable[[_ConditionParser, Any], Any]] = {
    ast.Constant: _ConditionParser.number,
    ast.Name: _ConditionParser.param,
    ast.Subscript: _ConditionParser.extent,
    ast.UnaryOp: _ConditionParser.unary,
    ast.BinOp: _ConditionParser.binary,
    ast.BoolOp: _ConditionParser.logic,
    ast.Compare: _ConditionParser.comparison,
}
