"""Typed construction of expressions. Python and NumPy numbers are weakly typed, operands are converted to a common type
by `promote`, and trivial arithmetic is folded."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UserError, UserTypeError, shown
from . import nodes
from .nodes import (
    BITWISE,
    COMPARISON,
    FLOATING,
    Bits,
    Broadcast,
    Cast,
    Const,
    Expr,
    ExprLike,
    Number,
    Op,
    Ramp,
    const,
    op,
)
from .types import BOOL, FLOAT32, INDEX, INT32, INT64, UINT64, DType, DTypeLike, dtype, promote

_SHIFTS = ("shl", "shr")
_LARGEST_FLOAT = sys.float_info.max
_LARGEST_PRODUCT = 16  # x ** n multiplies up to this exponent


def expr(value: ExprLike, like: DType | None = None) -> Expr:
    """Convert `value` to an expression. A number gets the type `like` if it fits, and otherwise its default type."""
    if isinstance(value, Expr):
        return value
    if type(value) is int:
        return _weak_int(value, like)
    if like is None and isinstance(value, np.generic) and value.dtype not in _UNSPECIFIC:
        return const(value.item(), dtype(value.dtype))
    value = plain_number(value)
    if isinstance(value, bool):
        return const(value, BOOL)
    if isinstance(value, int):
        return _weak_int(value, like)
    if isinstance(value, float):
        return const(value, like if like is not None and like.is_float else FLOAT32)
    as_expr: Callable[[], Expr] | None = getattr(value, "as_expr", None)
    if as_expr is not None:
        return as_expr()
    if isinstance(value, np.ndarray):
        raise UserError(
            f"a NumPy array of shape {value.shape} cannot be part of an expression; read it at a coordinate: either as "
            "pt.table(array)[...], or as a pt.Input that gets the array when you call the pipeline"
        )
    kind = type(value).__name__
    raise UserTypeError(f"{shown(value)} ({kind}) cannot be used in an expression; use numbers and expressions")


# NumPy's default types: a scalar of one of them is as weakly typed as a Python number.
_UNSPECIFIC = (np.dtype("float64"), np.dtype("int64"))


def plain_number(value: Any) -> Any:
    """Convert a NumPy scalar, or an array with a single number, to a Python number; return any other value as it is."""
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1 and value.dtype.kind in "biuf":
        return value.item()
    return value


def is_number(value: Any) -> bool:
    """Whether a value is a weakly typed number: a Python number, or a single NumPy number."""
    return isinstance(plain_number(value), (int, float))


def _weak_int(value: int, like: DType | None) -> Const:
    if like is None or like.is_bool:
        if not INT64.min <= value <= INT64.max:
            raise UserError(f"{shown(value)} does not fit int64; write it as a float, or as np.uint64(...)")
        return const(value, INT32 if INT32.min <= value <= INT32.max else INT64)
    if like.is_int and not like.min <= value <= like.max:
        raise UserError(
            f"{shown(value)} does not fit {like}, the type it is combined with; widen the other side first, "
            f"for example pt.cast('int32', ...)"
        )
    if like.is_float and abs(value) > _LARGEST_FLOAT:
        raise UserError(f"{shown(value)} does not fit {like}, the type it is combined with")
    return const(value, like)


def pair(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    """Convert both operands to their common type and number of lanes."""
    if isinstance(a, Expr) and isinstance(b, Expr):
        if a.dtype is not b.dtype and a.dtype != b.dtype:
            t = promote(a.dtype, b.dtype)
            a, b = cast(t, a), cast(t, b)
    elif isinstance(a, Expr) or not isinstance(b, Expr):
        a = expr(a)
        b = expr(b, a.dtype)
        return (a, b) if a.dtype == b.dtype and a.lanes == b.lanes else pair(a, b)
    else:
        a = expr(a, b.dtype)
        return (a, b) if a.dtype == b.dtype and a.lanes == b.lanes else pair(a, b)
    if a.lanes != b.lanes:
        a, b = broadcast(a, b.lanes), broadcast(b, a.lanes)
    return a, b


def broadcast(value: Expr, lanes: int) -> Expr:
    """Broadcast a scalar to `lanes` lanes; a vector stays as it is."""
    if value.lanes > 1 or lanes == 1:
        return value
    if isinstance(value, Const):
        return Const(value.dtype, lanes, value.value)
    return Broadcast(value.dtype, lanes, value)


def ramp(base: Expr, stride: Expr | int, lanes: int) -> Expr:
    """The vector base, base+stride, ..."""
    stride = expr(stride, base.dtype)
    return base if lanes == 1 else Ramp(base.dtype, lanes, base, stride)


def cast(to: DTypeLike, value: ExprLike) -> Expr:
    """Convert by value. Integers wrap; floats are truncated towards zero to integers and saturate (NaN becomes 0)."""
    to = dtype(to)
    e: Expr = value if isinstance(value, Expr) else expr(value)
    if e.dtype == to:
        return e
    if isinstance(e, Const):
        folded = cast_value(e.value, e.dtype, to)
        if folded is not None:
            return Const(to, e.lanes, folded)
    if isinstance(e, Broadcast):
        return Broadcast(to, e.lanes, cast(to, e.value))
    if isinstance(e, Cast) and e.dtype is INDEX and e.value.dtype.is_int and (to.is_int or e.value.dtype is not UINT64):
        return cast(to, e.value)  # an index holds all values of all types except uint64, of which it holds the bits
    if isinstance(e, Cast) and e.dtype is INT64 and to is INDEX and e.value.dtype.is_int:
        return cast(to, e.value)
    return Cast(to, e.lanes, e)


def cast_value(value: Number, source: DType, to: DType) -> Number | None:
    """The result of `cast` for a Python number (None if it can only be computed at run time)."""
    if source.is_float:
        rounded = round_to(float(value), source)
        if rounded is None:
            return None
        value = rounded
    if to.is_bool:
        return value != 0
    if to.is_float:
        return round_to(value if source.is_float else source.numpy.type(value), to)
    if source.is_float:
        if math.isnan(value):
            return 0
        return int(min(max(value, to.min), to.max)) if math.isinf(value) else min(max(int(value), to.min), to.max)
    return const(int(value), to).value


def round_to(value: float | np.generic, to: DType) -> float | None:
    """Round `value` once to the float type (None for bfloat16, to which values can only be rounded at run time)."""
    if to.kind == "bfloat":
        return None
    with np.errstate(all="ignore"):
        return float(to.numpy.type(value))


def bits(to: DTypeLike, value: Expr) -> Expr:
    """Reinterpret the bits of `value`."""
    to = dtype(to)
    if to.bits != value.dtype.bits:
        raise UserError(f"cannot reinterpret {value.dtype} as {to}: their sizes differ")
    return value if to == value.dtype else Bits(to, value.lanes, value)


def unary(name: str, value: ExprLike) -> Expr:
    """A unary operation: neg, not, abs or a math function of one argument."""
    a: Expr = expr(value)
    if name in FLOATING and not a.dtype.is_float:
        if name in ("floor", "ceil", "round", "trunc"):
            return a
        a = cast(FLOAT32, a)
    if name == "not" and a.dtype.is_float:
        raise UserTypeError(f"~ needs an integer or a condition, not {a.dtype}")
    if name == "popcount" and not a.dtype.is_int:
        raise UserTypeError(f"pt.popcount counts the bits of an integer, not of {a.dtype}; see pt.bits and pt.cast")
    if name == "neg" and a.dtype.is_bool:
        raise UserTypeError("a condition cannot be negated with -; use ~")
    if name == "abs" and not (a.dtype.is_signed or a.dtype.is_float):
        return a
    if isinstance(a, Const):
        if name == "neg":
            return const(-a.value, a.dtype, a.lanes)
        if name == "not":
            return const(not a.value if a.dtype.is_bool else ~int(a.value), a.dtype, a.lanes)
        if name == "abs":
            return const(abs(a.value), a.dtype, a.lanes)
        if name == "popcount":
            return const((int(a.value) % (1 << a.dtype.bits)).bit_count(), a.dtype, a.lanes)
    return op(name, a)


def binary(name: str, a: ExprLike, b: ExprLike) -> Expr:
    """A binary operation, typed and lightly folded."""
    if name in COMPARISON:
        return _compare(name, a, b)
    if name == "pow":
        b = plain_number(b)
        if type(b) is int and 1 <= b <= _LARGEST_PRODUCT:
            return _power(expr(a), b)
    a, b = pair(a, b)
    t = a.dtype
    if name in FLOATING and not t.is_float:
        t = FLOAT32
        a, b = cast(t, a), cast(t, b)
    elif t.is_bool and name not in BITWISE and name not in ("min", "max"):
        raise UserTypeError(f"{name} of two conditions; cast them to a number first, or combine them with & | ^")
    elif t.is_float and name in BITWISE:
        raise UserTypeError(f"{a} and {b}: & | ^ << >> need integers or conditions, not {t}")
    elif t.is_bool and name in _SHIFTS:
        raise UserTypeError("a condition cannot be shifted; cast it to an integer first")
    if isinstance(a, Const) and isinstance(b, Const):
        folded = fold(name, a.value, b.value, t)
        if folded is not None:
            return Const(t, a.lanes, folded)
    simpler = _identity(name, a, b)
    return op(name, a, b) if simpler is None else simpler


def _power(base: Expr, exponent: int) -> Expr:
    """base ** exponent by repeated squaring, in the base's own type."""
    if exponent == 1:
        return base
    half = _power(base, exponent // 2)
    square = binary("mul", half, half)
    return square if exponent % 2 == 0 else binary("mul", square, base)


def _compare(name: str, a: ExprLike, b: ExprLike) -> Expr:
    a, b = plain_number(a), plain_number(b)
    for value, other in ((a, b), (b, a)):
        if _is_outside(value, other):  # above or below all possible values of the other side
            a, b = (const(0 if x is other else (1 if value > 0 else -1), INT32, other.lanes) for x in (a, b))
            break
    a, b = pair(a, b)
    if isinstance(a, Const) and isinstance(b, Const):
        values = (cast_value(a.value, a.dtype, a.dtype), cast_value(b.value, b.dtype, b.dtype))
        if None not in values:
            return const(_COMPARE[name](*values), BOOL, a.lanes)
    return op(name, a, b)


def _is_outside(value: ExprLike, other: ExprLike) -> bool:
    """Whether `value` is a Python integer that the integer type of `other` cannot hold."""
    if isinstance(value, bool) or not isinstance(value, int) or not isinstance(other, Expr):
        return False
    return other.dtype.is_int and not other.dtype.min <= value <= other.dtype.max


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y if y else 0,
    "mod": lambda x, y: x % y if y else 0,
    "min": min,
    "max": max,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}


def fold(name: str, x: Number, y: Number, t: DType) -> Number | None:
    """The value of a binary operation on constants of type `t`, or None if it is left to run time."""
    if t.is_float:
        if name not in ("add", "sub", "mul", "div") or t.kind == "bfloat":
            return None
        scalar = t.numpy.type
        with np.errstate(all="ignore"):
            result = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](
                scalar(x), scalar(y)
            )
        return float(result)
    if name in _FOLD:
        return const(_FOLD[name](x, y), t).value
    if name in _SHIFTS and 0 <= y < t.bits:
        return const(int(x) << int(y) if name == "shl" else int(x) >> int(y), t).value
    return None


def _identity(name: str, a: Expr, b: Expr) -> Expr | None:
    """Simplify x+0, x*1, x*0, x//1, min(x, x) and the like; for floats, only if that is exact."""
    if name in ("min", "max") and a is b:
        return a
    if isinstance(a, Const) and not isinstance(b, Const):
        if name in nodes.COMMUTATIVE and not a.dtype.is_float:
            return _identity(name, b, a)
        if name == "mul" and a.value == 1:
            return b
    if not isinstance(b, Const):
        if name == "sub" and a is b and a.dtype.is_int:
            return const(0, a.dtype, a.lanes)
        return None
    value = b.value
    if value == 1 and (name in ("mul", "div") or (name == "floordiv" and a.dtype.is_int)):
        return a
    if a.dtype.is_float:
        return a if name == "sub" and value == 0 and math.copysign(1, value) > 0 else None
    if a.dtype.is_bool:
        if name == "and":
            return a if value else b
        if name == "or":
            return b if value else a
        return None
    if value == 0:
        if name in ("add", "sub", "or", "xor", "shl", "shr"):
            return a
        if name in ("mul", "and"):
            return b
    if name == "mod" and value == 1:
        return const(0, a.dtype, a.lanes)
    return _offset(name, a, int(value)) if name in ("add", "sub") else None


def _offset(name: str, a: Expr, value: int) -> Expr | None:
    """Simplify (x + c1) + c2 to x + c, and x - c to x + (-c), which keeps index arithmetic short and uniform. Signed
    constants whose sum would wrap are left alone, since an index is wider than the type of its constants."""
    t, by = a.dtype, value if name == "add" else -value
    if isinstance(a, Op) and a.op == "add" and isinstance(a.args[1], Const):
        joined = int(a.args[1].value) + by
        if not t.is_signed or t.min <= joined <= t.max:
            return binary("add", a.args[0], const(joined, t, a.lanes))
    if name == "sub" and t.is_signed and by <= t.max:
        return op("add", a, const(by, t, a.lanes))
    return None


def select(condition: ExprLike, then: ExprLike, otherwise: ExprLike) -> Expr:
    """`then` if `condition` holds, and otherwise `otherwise`; both may be computed."""
    condition = expr(condition)
    if not condition.dtype.is_bool:
        raise UserTypeError(
            f"the condition of a select is {condition.dtype}; write a comparison such as {condition} != 0"
        )
    a, b = pair(then, otherwise)
    if isinstance(condition, Const):
        return a if condition.value else b
    if a is b:
        return a
    lanes = max(condition.lanes, a.lanes)
    return op("select", broadcast(condition, lanes), broadcast(a, lanes), broadcast(b, lanes))


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two values; NaN if either is NaN."""
    return binary("min", a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two values; NaN if either is NaN."""
    return binary("max", a, b)


def logical_and(*conditions: Expr) -> Expr:
    """The conjunction of conditions; true if there are none."""
    result: Expr = const(True, BOOL)
    for c in conditions:
        result = c if isinstance(result, Const) and result.value else binary("and", result, c)
    return result
