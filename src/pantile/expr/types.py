"""Scalar types: NumPy's dtypes plus bfloat16, and the promotion of two types to a common one.

An integer and a float are promoted to the float's type, two integers as in NumPy, and bool and another type to the
other type.

`INDEX` is the type of coordinates, extents and all index arithmetic. It has 64 bits and never overflows, so its
arithmetic may be rearranged. Users have no values of this type. Data wraps, even int64, and only a cast makes it an
index.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dataclass import cached_property, dataclass
from ..errors import InternalError, UserError, UserTypeError, shown

_made: dict[tuple[str, int], DType] = {}


@dataclass(frozen=True, eq=False)
class DType:
    """A scalar type. `kind` is one of bool, int, uint, float, bfloat, index. Equal types are one object."""

    kind: str
    bits: int
    if TYPE_CHECKING:  # set when a type is created, since properties would take three times as long and are used often
        name: str = field(init=False)
        is_float: bool = field(init=False)
        is_int: bool = field(init=False)  # signed or unsigned (not bool)
        is_signed: bool = field(init=False)
        is_bool: bool = field(init=False)
        bytes: int = field(init=False)  # in memory; a bool is a byte
        min: int = field(init=False)  # the smallest value of an integer (or bool) type
        max: int = field(init=False)  # the largest one

    def __new__(cls, kind: str, bits: int) -> DType:
        return _made.setdefault((kind, bits), super().__new__(cls))

    def __post_init__(self) -> None:
        is_signed = self.kind in ("int", "index")
        attributes = {
            "name": self.kind if self.kind in ("bool", "index") else f"{self.kind}{self.bits}",
            "is_float": self.kind in ("float", "bfloat"),
            "is_int": is_signed or self.kind == "uint",
            "is_signed": is_signed,
            "is_bool": self.kind == "bool",
            "bytes": max(1, self.bits // 8),
            "min": -(1 << (self.bits - 1)) if is_signed else 0,
            "max": (1 << (self.bits - is_signed)) - 1,
        }
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type[DType], tuple[str, int]]:
        return DType, (self.kind, self.bits)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtype({self.name})"

    @cached_property
    def epsilon(self) -> float:
        """The distance from 1 to the next larger number of a floating-point type."""
        return 2.0**-7 if self.kind == "bfloat" else float(np.finfo(self.numpy).eps)

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type with the same memory layout. NumPy has no bfloat16, so it is held as uint16 bits."""
        return np.dtype({"bfloat": "uint16", "index": "int64"}.get(self.kind, self.name))


BOOL = DType("bool", 1)
INT8, INT16, INT32, INT64 = (DType("int", b) for b in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (DType("uint", b) for b in (8, 16, 32, 64))
FLOAT16, FLOAT32, FLOAT64 = (DType("float", b) for b in (16, 32, 64))
BFLOAT16 = DType("bfloat", 16)
INDEX = DType("index", 64)

ALL = (BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
_BY_NAME = {t.name: t for t in ALL}

DTypeLike = DType | str | type | np.dtype[Any]


def dtype(like: DTypeLike) -> DType:
    """The type named by a string, a NumPy dtype or a NumPy scalar class."""
    if isinstance(like, DType):
        return like
    if isinstance(like, str) and like in _BY_NAME:
        return _BY_NAME[like]
    try:
        named = _BY_NAME.get(np.dtype(like).name)
    except (TypeError, ValueError):
        named = None
    if named is None:
        raise UserTypeError(f"{shown(like)} is not a pixel type; use one of {', '.join(_BY_NAME)}")
    return named


def promote(a: DType, b: DType) -> DType:
    """The common type of an operation on `a` and `b`."""
    if a == b:
        return a
    if INDEX in (a, b):
        raise InternalError(f"{a} and {b} meet without a cast; data becomes an index by a cast alone")
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        if {a.kind, b.kind} == {"bfloat", "float"} and a.bits == b.bits:
            return FLOAT32
        return a if a.bits > b.bits else b
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        raise UserError("int64 and uint64 have no common integer type; cast one of them with pt.cast")
    return DType("int", unsigned.bits * 2)
