"""Scalar types and literals in LLVM text.

In registers, a bfloat16 is a float32 whose low bits are zero, and a condition is an i1. In memory, they are i16 and i8.
"""

from __future__ import annotations

import struct
from functools import cache

import numpy as np

from ..expr.nodes import Number
from ..expr.types import DType

_FLOATS = {16: "half", 32: "float", 64: "double"}


def scalar_type(t: DType) -> str:
    """The LLVM type of a value of type `t`."""
    if t.kind == "bfloat":
        return "float"
    return _FLOATS[t.bits] if t.is_float else f"i{t.bits}"


def vector_type(element: str, lanes: int) -> str:
    """The LLVM type of a vector with this number of elements; a single element is a scalar."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def value_type(t: DType, lanes: int = 1) -> str:
    """The LLVM type of `lanes` values in registers."""
    return vector_type(scalar_type(t), lanes)


@cache
def memory_type(t: DType, lanes: int = 1) -> str:
    """The LLVM type of `lanes` elements in memory."""
    if t.is_bool or t.kind == "bfloat":
        return vector_type(f"i{t.bytes * 8}", lanes)
    return value_type(t, lanes)


@cache
def integer_type(bits: int, lanes: int = 1) -> str:
    return vector_type(f"i{bits}", lanes)


@cache
def mangled(text: str) -> str:
    """The type as part of an intrinsic's name: <8 x float> is v8f32."""
    if text.startswith("<"):
        lanes, element = text[1:-1].split(" x ")
        return f"v{lanes}{mangled(element)}"
    return {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(text, text)


def splat(literal: str, element: str, lanes: int) -> str:
    """A literal in every lane, as an operand."""
    return literal if lanes == 1 else f"splat ({element} {literal})"


def constant(t: DType, lanes: int, value: Number) -> str:
    """A literal of type `t` as an operand."""
    return splat(_scalar(t, value), scalar_type(t), lanes)


def integer(value: int, bits: int, lanes: int = 1) -> str:
    """An integer literal as an operand."""
    return splat(str(value), f"i{bits}", lanes)


def _scalar(t: DType, value: Number) -> str:
    if t.is_bool:
        return "true" if value else "false"
    return _float(t, float(value)) if t.is_float else str(int(value))


def _float(t: DType, value: float) -> str:
    """A float literal, written as its bits. LLVM writes a float32 as the bits of the float64 with the same value."""
    if t.kind == "bfloat":
        value = float(np.uint32(bfloat_pattern(value) << 16).view(np.float32))
    elif t.bits < 64:
        with np.errstate(over="ignore"):
            value = float(t.numpy.type(value))
    if t.kind == "float" and t.bits == 16:
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    return "0x" + struct.pack(">d", value).hex().upper()


def bfloat_pattern(value: float) -> int:
    """The 16 bits of the nearest bfloat16."""
    with np.errstate(over="ignore"):
        bits = int(np.float32(value).view(np.uint32))
    if not np.isnan(value):
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits >> 16
