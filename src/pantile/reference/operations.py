"""The operations of `expr.nodes.OPS` on arrays whose elements have one common type.

NumPy does not offer some roundings: bfloat16, float to integer with saturation, multiply-add rounded once. A bfloat16
value is held in a float32 array whose low 16 bits are zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ..expr.nodes import COMPARISON
from ..expr.types import DType
from .boxes import Array

# Given the type of the arguments (of the last one: a select's condition aside), then the arguments.
Operation = Callable[..., Any]


def operation(name: str, t: DType) -> Callable[..., Array]:
    """Operation `name` on arguments of type `t`."""
    of_type = TABLE[name]
    if t.kind == "bfloat" and name not in COMPARISON:
        return lambda *args: rounded(np.asarray(of_type(t, *args)), t)
    plain = PLAIN.get(name)
    return (lambda *args: np.asarray(of_type(t, *args))) if plain is None else lambda *args: np.asarray(plain(*args))


def apply(name: str, t: DType, *args: Array) -> Array:
    """Apply operation `name` to arguments of type `t`."""
    return operation(name, t)(*args)


def convert(values: Array, source: DType, to: DType) -> Array:
    """Convert by value: integers wrap, floats truncate and saturate into integers, anything but zero is true."""
    if to.is_bool:
        return np.asarray(values != 0)
    if to.kind == "bfloat":
        return rounded(values.astype(np.float64), to)
    if to.is_int and source.is_float:
        return saturated(values, to)
    return values.astype(to.numpy)


def reinterpret(values: Array, source: DType, to: DType) -> Array:
    """Reinterpret the bits of values as another type of the same size."""
    stored = to_bfloat_bits(values) if source.kind == "bfloat" else values
    seen = np.ascontiguousarray(stored).view(to.numpy).reshape(values.shape)
    return from_bfloat_bits(seen) if to.kind == "bfloat" else seen


def _accurate(function: Callable[..., Any]) -> Operation:
    """An operation without an exact result, computed in float64 and rounded once."""
    return lambda t, *args: function(*(a.astype(np.float64) for a in args)).astype(held(t))


def _floordiv(t: DType, a: Array, b: Array) -> Any:
    if t.is_float:
        return np.floor(rounded(np.asarray(a / b), t))
    if b.size == 1 and b.item() > 0:
        return a // b
    quotient = a // np.where(b == 0, held(t).type(1), b)
    if t.is_signed:
        quotient = np.where(b == -1, -a, quotient)  # the smallest integer wraps
    return np.where(b == 0, held(t).type(0), quotient)


def _mod(t: DType, a: Array, b: Array) -> Any:
    if t.is_float:
        product = rounded(np.asarray(b * _floordiv(t, a, b)), t)
        return a - product
    if b.size == 1 and b.item() > 0:
        return a % b
    return np.where(b == 0, held(t).type(0), a % np.where(b == 0, held(t).type(1), b))


def _min(t: DType, a: Array, b: Array) -> Any:
    smaller = np.minimum(a, b)
    if not t.is_float or smaller.all():
        return smaller
    same = a == b  # zeros may be, whose signs differ
    return np.where(same & np.signbit(a), a, np.where(same, b, smaller))


def _max(t: DType, a: Array, b: Array) -> Any:
    larger = np.maximum(a, b)
    if not t.is_float or larger.all():
        return larger
    same = a == b  # zeros may be, whose signs differ
    return np.where(same & np.signbit(a), b, np.where(same, a, larger))


def _shl(t: DType, a: Array, b: Array) -> Any:
    valid = (b >= 0) & (b < t.bits)
    return np.where(valid, a << np.where(valid, b, held(t).type(0)), held(t).type(0))


def _shr(t: DType, a: Array, b: Array) -> Any:
    valid = (b >= 0) & (b < t.bits)
    shifted = a >> np.where(valid, b, held(t).type(t.bits - 1))
    return shifted if t.is_signed else np.where(valid, shifted, held(t).type(0))


def _rsqrt(t: DType, a: Array) -> Any:
    return held(t).type(1) / rounded(np.asarray(np.sqrt(a)), t)


_BITS = np.array([n.bit_count() for n in range(256)], np.uint8)  # set in each byte


def _popcount(t: DType, a: Array) -> Any:
    each = np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, a.itemsize)
    return _BITS[each].sum(axis=-1).astype(held(t))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _wide(a: Array) -> Array:
    """Convert to integers in which sums and products of two values cannot overflow."""
    return a.astype(np.int64 if a.dtype.itemsize <= 2 else object)


def _narrow(t: DType, wide: Any) -> Array:
    """Saturate to the range of `t`. (NumPy turns 0-d arrays of objects into plain numbers; they must stay objects.)"""
    kind = np.int64 if isinstance(wide, (np.ndarray, np.generic)) and wide.dtype == np.int64 else object
    raised = np.asarray(np.maximum(np.asarray(wide, kind), t.min), kind)
    return np.asarray(np.minimum(raised, t.max), kind).astype(t.numpy)


def _absd(t: DType, a: Array, b: Array) -> Any:
    if t.is_float:
        return np.abs(rounded(np.asarray(a - b), t))
    return np.where(a > b, a - b, b - a).view(f"uint{t.bits}")


def _mul_shift(t: DType, a: Array, b: Array, shift: Array) -> Any:
    return _narrow(t, (_wide(a) * _wide(b)) >> _wide(shift))


def _rounding_mul_shift(t: DType, a: Array, b: Array, shift: Array) -> Any:
    half = (_wide(shift * 0 + 1) << _wide(shift)) >> 1
    return _narrow(t, (_wide(a) * _wide(b) + half) >> _wide(shift))


PLAIN: dict[str, Callable[..., Any]] = {  # the type of whose arguments does not matter
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "div": np.divide,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
TABLE: dict[str, Operation] = {
    **{name: lambda t, *args, of=function: of(*args) for name, function in PLAIN.items()},
    "floordiv": _floordiv,
    "mod": _mod,
    "min": _min,
    "max": _max,
    "rsqrt": _rsqrt,
    "exp": _accurate(np.exp),
    "log": _accurate(np.log),
    "sin": _accurate(np.sin),
    "cos": _accurate(np.cos),
    "tan": _accurate(np.tan),
    "tanh": _accurate(np.tanh),
    "asin": _accurate(np.arcsin),
    "acos": _accurate(np.arccos),
    "erf": _accurate(_erf),
    "cbrt": _accurate(np.cbrt),
    "atan2": _accurate(np.arctan2),
    "pow": _accurate(np.power),
    "fma": lambda t, a, b, c: fused_multiply_add(a, b, c, t),
    "shl": _shl,
    "shr": _shr,
    "popcount": _popcount,
    "halving_add": lambda t, a, b: (a & b) + ((a ^ b) >> held(t).type(1)),
    "rounding_halving_add": lambda t, a, b: (a | b) - ((a ^ b) >> held(t).type(1)),
    "saturating_add": lambda t, a, b: _narrow(t, _wide(a) + _wide(b)),
    "saturating_sub": lambda t, a, b: _narrow(t, _wide(a) - _wide(b)),
    "absd": _absd,
    "mul_shift": _mul_shift,
    "rounding_mul_shift": _rounding_mul_shift,
    "select": lambda t, condition, then, otherwise: np.where(condition, then, otherwise),
    "within": lambda t, value, low, high: value,
}


def held(t: DType) -> np.dtype[Any]:
    """The NumPy type in which values of `t` are computed."""
    return np.dtype("float32") if t.kind == "bfloat" else t.numpy


def rounded(values: Array, t: DType) -> Array:
    """Floats of any width rounded once, to nearest even, to the float type `t`."""
    if t.kind != "bfloat":
        return values.astype(t.numpy)
    if values.dtype == np.float64:
        values = _odd_float32(values)
    return np.asarray(_nearest_bfloat(values) & _UPPER).view(np.float32)


def _odd_float32(values: Array) -> Array:
    """Float64 rounded to the neighbouring float32 with an odd last bit where inexact, so that a second rounding to
    fewer bits gives what one rounding would have given."""
    near = values.astype(np.float32)
    exact = near.astype(np.float64)
    truncated = np.where(np.abs(exact) > np.abs(values), np.nextafter(near, np.float32(0)), near)
    inexact = np.isfinite(values) & (exact != values)
    return np.where(inexact, (truncated.view(np.uint32) | inexact).view(np.float32), near)


def to_bfloat_bits(values: Array) -> Array:
    """Float32 to the bits of the nearest bfloat16, ties to even."""
    return np.asarray(_nearest_bfloat(values) >> _HALF).astype(np.uint16)


_HALF, _LAST, _BELOW_HALF, _QUIET, _UPPER = map(np.uint32, (16, 1, 0x7FFF, 0x400000, 0xFFFF0000))


def _nearest_bfloat(values: Array) -> Array:
    """Float32 to numbers of 32 bits whose upper halves are the bits of the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(values.shape)
    nearest = np.asarray(bits + (((bits >> _HALF) & _LAST) + _BELOW_HALF))
    nan = np.isnan(values)
    return np.where(nan, bits | _QUIET, nearest) if nan.any() else nearest


def from_bfloat_bits(bits: Array) -> Array:
    """The bits of bfloat16 values to float32."""
    return np.asarray((np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32))


def saturated(values: Array, t: DType) -> Array:
    """Convert floats to the integer type `t`: truncated towards zero, clamped to its range, NaN to 0."""
    wide = values.astype(np.float64)
    above, below = wide >= float(t.max), wide <= float(t.min)
    inside = ~(above | below | np.isnan(wide))
    whole = np.where(inside, wide, 0).astype(t.numpy)
    return np.where(above, t.numpy.type(t.max), np.where(below, t.numpy.type(t.min), whole))


def fused_multiply_add(a: Array, b: Array, c: Array, t: DType) -> Array:
    """a*b + c rounded once, by exact rational arithmetic."""
    once = _nearest_float if t.bits == 64 else _odd_float
    exact = np.frompyfunc(lambda x, y, z: once(_exact(x, y, z)), 3, 1)
    naive = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    usual = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    known = [np.where(usual, v, 0).astype(np.float64) for v in (a, b, c)]
    fused = np.asarray(exact(*known)).astype(np.float64)
    # An exact zero takes its sign, and a result that is not finite its value, from the plain formula.
    return rounded(np.where(usual & (fused != 0), fused, naive), t)


def _exact(a: float, b: float, c: float) -> Fraction:
    return Fraction(a) * Fraction(b) + Fraction(c)


def _nearest_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _odd_float(exact: Fraction) -> float:
    """The nearest float if it is exact, else the neighbour with an odd last bit."""
    near = float(exact)
    if Fraction(near) == exact:
        return near
    other = math.nextafter(near, math.inf if exact > near else -math.inf)
    return near if np.float64(near).view(np.int64) & 1 else other
