"""Congruence classes of integer expressions.

A class (m, r) contains the numbers r + k*m for integers k: all integers if m is 1, only r if m is 0. The class of an
expression follows from those of its operands, so `min(64*strip, h//32*32 - 64) + 1` is odd, whatever h is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import gcd

from .nodes import Const, Expr, Op, Var
from .types import INDEX
from .visit import each_once, names, once_per_node

Class = tuple[int, int]
ANY: Class = (1, 0)


def known_remainder(e: Expr, divisor: int, known: Mapping[str, Class]) -> int | None:
    """The value of e % divisor, or None if it is not known. `known` has the classes of variables."""
    modulus, r = congruence(e, known)
    return r % divisor if modulus % divisor == 0 else None


def congruence(e: Expr, known: Mapping[str, Class], memo: dict[int, Class] | None = None) -> Class:
    """The smallest known class of an index expression. `memo` has the classes of nodes by id, for calls with the same
    `known`; it must not outlive the expressions."""
    if known.keys().isdisjoint(names(e)):
        return _class_of_any(e)
    classes = {} if memo is None else memo
    return each_once(e, classes, lambda node: _node(node, known, lambda a: classes[id(a)]), _deciding)


def _deciding(e: Expr) -> tuple[Expr, ...]:
    """The operands that determine the class of an expression."""
    if not isinstance(e, Op) or e.dtype.kind != INDEX.kind:
        return ()
    if e.op in ("floordiv", "mod"):
        return e.args[:1] if _is_positive(e.args[1]) else ()
    return e.args[e.op == "select" :] if e.op in _COMBINED else ()


def _node(e: Expr, known: Mapping[str, Class], of: Callable[[Expr], Class]) -> Class:
    if isinstance(e, Const):
        return (0, int(e.value))
    if isinstance(e, Var):
        return known.get(e.name, ANY)
    if not isinstance(e, Op) or e.dtype.kind != INDEX.kind:
        return ANY  # data wraps
    return _operation(e, of)


@once_per_node("_class", _deciding)
def _class_of_any(e: Expr) -> Class:
    """The class of an expression for any values of its variables."""
    return _node(e, {}, _class_of_any)


def _is_positive(e: Expr) -> bool:
    return isinstance(e, Const) and int(e.value) > 0


def _operation(e: Op, of: Callable[[Expr], Class]) -> Class:
    operands = _deciding(e)
    if not operands:
        return ANY
    if isinstance(e.args[1], Const) and e.op in ("floordiv", "mod"):
        return _division(e.op, of(operands[0]), int(e.args[1].value))
    return reduce(_COMBINED[e.op], map(of, operands))


def _class(modulus: int, r: int) -> Class:
    return (modulus, r % modulus if modulus else r)


def _sum(a: Class, b: Class) -> Class:
    return _class(gcd(a[0], b[0]), a[1] + b[1])


def _difference(a: Class, b: Class) -> Class:
    return _class(gcd(a[0], b[0]), a[1] - b[1])


def _product(a: Class, b: Class) -> Class:
    return _class(gcd(a[0] * b[0], a[0] * b[1], a[1] * b[0]), a[1] * b[1])


def either(a: Class, b: Class) -> Class:
    """The smallest class that contains two others."""
    return _class(gcd(a[0], b[0], a[1] - b[1]), a[1])


_COMBINED: dict[str, Callable[[Class, Class], Class]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "min": either,
    "max": either,
    "select": either,
}


def _division(name: str, a: Class, d: int) -> Class:
    modulus, r = a
    if name == "mod":
        return (0, r % d) if modulus % d == 0 else _class(gcd(modulus, d), r)
    return _class(modulus // d, r // d) if modulus % d == 0 else ANY
