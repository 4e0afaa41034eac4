"""NumPy functions on expressions: `np.sqrt(e)` is `pt.sqrt(e)` if the two have the same meaning.

NumPy dispatches to its arguments (`__array_ufunc__`, `__array_function__`), and expressions look the function up in the
two tables below. Arrays are not accepted as arguments, as everywhere in expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..errors import UserError, shown
from .build import binary, cast, expr, plain_number, select, unary
from .nodes import Expr, ExprLike

Function = Callable[..., Expr]

_UNARY = {
    np.negative: "neg", np.absolute: "abs", np.invert: "not", np.sqrt: "sqrt", np.exp: "exp", np.log: "log",
    np.sin: "sin", np.cos: "cos", np.tan: "tan", np.tanh: "tanh", np.arcsin: "asin", np.arccos: "acos",
    np.floor: "floor", np.ceil: "ceil", np.rint: "round", np.trunc: "trunc", np.cbrt: "cbrt",
}  # fmt: skip
_BINARY = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div", np.floor_divide: "floordiv",
    np.remainder: "mod", np.power: "pow", np.minimum: "min", np.maximum: "max", np.arctan2: "atan2",
    np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor", np.left_shift: "shl", np.right_shift: "shr",
    np.equal: "eq", np.not_equal: "ne", np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge",
}  # fmt: skip


def _truth(value: ExprLike) -> Expr:
    e = expr(value)
    return e if e.dtype.is_bool else binary("ne", e, 0)


def _logical(name: str, a: ExprLike, b: ExprLike) -> Expr:
    return binary(name, _truth(a), _truth(b))


def _sign(e: Expr) -> Expr:
    """The sign of `e`: -1, 0 or 1 in its type; NaN stays NaN."""
    number = partial(expr, like=e.dtype)
    below = number(-1) if e.dtype.is_signed or e.dtype.is_float else number(0)
    return select(e > 0, number(1), select(e < 0, below, e))


def _bit_count(value: ExprLike) -> Expr:
    """The number of one bits of the absolute value as uint8, as NumPy defines it."""
    return cast("uint8", unary("popcount", unary("abs", value)))


UFUNCS: dict[np.ufunc, Function] = {
    **{ufunc: partial(unary, name) for ufunc, name in _UNARY.items()},
    **{ufunc: partial(binary, name) for ufunc, name in _BINARY.items()},
    np.positive: lambda e: e,
    np.square: lambda e: binary("mul", e, e),
    np.reciprocal: lambda e: binary("div", 1, e),
    np.arctan: lambda e: binary("atan2", e, 1.0),
    np.deg2rad: lambda e: binary("mul", e, math.pi / 180),
    np.radians: lambda e: binary("mul", e, math.pi / 180),
    np.rad2deg: lambda e: binary("mul", e, 180 / math.pi),
    np.degrees: lambda e: binary("mul", e, 180 / math.pi),
    np.sign: _sign,
    np.isnan: lambda e: binary("ne", e, e),
    np.isfinite: lambda e: binary("lt", unary("abs", e), math.inf),
    np.isinf: lambda e: binary("eq", unary("abs", e), math.inf),
    np.logical_and: partial(_logical, "and"),
    np.logical_or: partial(_logical, "or"),
    np.logical_xor: partial(_logical, "xor"),
    np.logical_not: lambda e: unary("not", _truth(e)),
}
if hasattr(np, "bitwise_count"):  # since NumPy 2
    UFUNCS[np.bitwise_count] = _bit_count


def _where(condition: ExprLike, *values: ExprLike) -> Expr:
    if len(values) != 2:
        raise UserError("np.where of an expression needs both values: np.where(condition, a, b)")
    return select(_truth(condition), *values)


def _clip(
    a: ExprLike, a_min: ExprLike = None, a_max: ExprLike = None, *, min: ExprLike = None, max: ExprLike = None
) -> Expr:
    low, high = (b if a is None else a for a, b in ((a_min, min), (a_max, max)))
    e = expr(a) if high is None else binary("min", a, high)
    return e if low is None else binary("max", e, low)


def rounded(a: ExprLike, decimals: object = None) -> Expr:
    """The nearest whole number, half to even."""
    if plain_number(decimals) not in (None, 0):
        raise UserError(
            f"an expression is rounded to whole numbers, not to {shown(decimals)} decimals; "
            "scale it: pt.round(100 * e) / 100"
        )
    return unary("round", a)


def _select(condlist: Any, choicelist: Any, default: ExprLike = 0) -> Expr:
    result = default
    for condition, value in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = select(_truth(condition), value, result)
    return expr(result)


FUNCTIONS: dict[Any, Function] = {
    np.where: _where,
    np.clip: _clip,
    np.round: rounded,
    np.around: rounded,
    np.fix: partial(unary, "trunc"),
    np.select: _select,
}

_REDUCTIONS = ("sum", "mean", "prod", "min", "max", "amin", "amax", "any", "all", "argmin", "argmax")
_INSTEAD = {
    "hypot": "write pt.sqrt(a*a + b*b)",
    "log2": "write pt.log(e) / math.log(2)",
    "log10": "write pt.log(e) / math.log(10)",
    "exp2": "write pt.pow(2.0, e)",
    "matmul": "write pt.sum(a[y, r[0]] * b[r[0], x], over=r)",
    **{
        name: f"write pt.{name.removeprefix('a') if name[1:] in ('min', 'max') else name}(e, over=r)"
        for name in _REDUCTIONS
    },
}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Expr:
    """Apply `ufunc` to expressions."""
    if method != "__call__":
        raise UserError(f"np.{ufunc.__name__}.{method} is for arrays; to reduce an expression write pt.sum(e, over=r)")
    return _apply(UFUNCS.get(ufunc), ufunc.__name__, inputs, options)


def apply_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Expr:
    """Apply one of NumPy's other functions to expressions."""
    known = FUNCTIONS.get(function)
    takes = ("a_min", "a_max", "min", "max") if known is _clip else ("decimals", "default")
    named = {name: value for name, value in options.items() if name in takes}
    rest = {name: value for name, value in options.items() if name not in takes}
    return _apply(known and partial(known, **named), function.__name__, args, rest)


def _apply(known: Function | None, name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Expr:
    if known is None:
        have = sorted({f.__name__ for f in (*UFUNCS, *FUNCTIONS)})
        instead = _INSTEAD.get(name, f"of NumPy's functions there are {', '.join(have)}")
        raise UserError(f"np.{name} does not work on expressions; {instead}")
    if options:
        raise UserError(f"np.{name} takes no {next(iter(options))}= where an expression is among its arguments")
    return known(*args)
