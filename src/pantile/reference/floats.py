"""Roundings that NumPy does not offer: bfloat16, float to integer with saturation, multiply-add rounded once.

A bfloat16 value is held in a float32 array whose low 16 bits are zero.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..expr.types import DType
from .boxes import Array


def held(t: DType) -> np.dtype[Any]:
    """The NumPy type in which values of `t` are computed."""
    return np.dtype("float32") if t.kind == "bfloat" else t.numpy


def rounded(values: Array, t: DType) -> Array:
    """Floats of any width rounded once, to nearest even, to the float type `t`."""
    if t.kind != "bfloat":
        return values.astype(t.numpy)
    if values.dtype == np.float64:
        values = _odd_float32(values)
    return from_bfloat_bits(to_bfloat_bits(values.astype(np.float32)))


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
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(values.shape)
    nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet_nan = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.asarray(np.where(np.isnan(values), quiet_nan, nearest).astype(np.uint16))


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
