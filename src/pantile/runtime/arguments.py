"""The arguments of a call: arrays and numbers, given by name. Each is checked before anything is written.

`Array` and `Number` describe what an argument must satisfy; `outputs` checks the relations between arrays.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np

from ..dataclass import dataclass
from ..errors import Location, UserError, UserTypeError, shown
from ..expr.types import DType
from ..target.gpu import LONGEST_ACCESS

NDArray = np.ndarray[Any, np.dtype[Any]]
LARGEST_COUNT = (1 << 31) - 1  # of elements, in 32 bits
LARGEST_EXTENT = (1 << 31) - 1  # coordinates are int32
LARGEST_STRIDE = 4  # the largest stride that code is specialized on, for interleaved channels
KIND_FLAGS = 0x100 | 0x400  # the NumPy flags that distinguish kinds of calls: aligned, writeable
_VECTOR = 8  # elements; code is not specialized on the strides of shorter axes
_LARGEST_REACH = 1 << 62  # of addresses, which are computed in int64


class AnyArray(Protocol):
    """An array on any device, with the attributes of NumPy's arrays."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def flags(self) -> Any: ...


@dataclass(frozen=True)
class Array:
    """An array that a pipeline reads or writes, or a constant table."""

    name: str
    dtype: DType
    ndim: int
    where: Location
    kind: str = "Input"
    table: AnyArray | None = None  # the elements of a constant table
    shape: tuple[int | None, ...] = ()  # the required extents, None for any; () if none is known

    @property
    def label(self) -> str:
        return f"{self.kind} {self.name!r} (from {self.where})"


@dataclass(frozen=True)
class Number:
    """A number that a pipeline takes."""

    name: str
    dtype: DType
    default: bool | int | float | None
    where: Location

    @property
    def label(self) -> str:
        return f"Param {self.name!r} (from {self.where})"


class Arguments:
    """The arguments of a pipeline by name. `as_array` converts the value for an array."""

    def __init__(
        self, arrays: Sequence[Array], numbers: Sequence[Number], as_array: Callable[[Array, Any], AnyArray]
    ) -> None:
        self.arrays = tuple(arrays)
        self.numbers = tuple(numbers)
        self._as_array = as_array
        self._names = [*(a.name for a in self.arrays if a.table is None), *(n.name for n in self.numbers)]
        self._known = frozenset(self._names)
        self._each = [(a, a.name, a.table) for a in self.arrays]
        # Classes with reliable attributes.
        self._arrays = frozenset({np.ndarray, *(type(a.table) for a in self.arrays if a.table is not None)})

    def match(self, given: Mapping[str, Any]) -> tuple[list[AnyArray], list[bool | int | float]]:
        """The arrays and numbers of a call, in order. Numbers are checked; `check_array` checks arrays."""
        return self.arrays_of(given), self.numbers_of(given)

    def arrays_of(self, given: Mapping[str, Any]) -> list[AnyArray]:
        if not self._known.issuperset(given):
            raise self._unknown(next(name for name in given if name not in self._known))
        get, plain, as_array = given.get, self._arrays, self._as_array
        return [v if type(v := get(name, table)) in plain else as_array(a, v) for a, name, table in self._each]

    def numbers_of(self, given: Mapping[str, Any]) -> list[bool | int | float]:
        return [as_number(n, given.get(n.name, n.default)) for n in self.numbers]

    def _unknown(self, name: str) -> UserError:
        close = get_close_matches(name, self._names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(self._names) or 'no arguments'}"
        return UserTypeError(f"the pipeline has no argument {shown(name)}; {hint}")


# ---- arrays


def check_array(wanted: Array, a: AnyArray) -> None:
    """Raise an error if code compiled for `wanted` cannot read or write the array in place."""
    _check_dtype(wanted, a)
    if a.ndim != wanted.ndim:
        raise UserError(
            f"{wanted.label} has {wanted.ndim} axes, but is given an array of shape {a.shape}; index or reshape it"
        )
    if any(stated not in (None, n) for stated, n in zip(wanted.shape, a.shape, strict=False)):
        raise UserError(
            f"{wanted.label} has shape={wanted.shape}, but is given an array of shape {a.shape}; pass one with these "
            "extents, or declare the Input with None for those that vary"
        )
    if max(a.shape, default=0) > LARGEST_EXTENT:
        raise UserError(f"{wanted.label} is given an array of shape {a.shape}; an axis may have up to {LARGEST_EXTENT}")
    _check_layout(wanted, a)


def _check_dtype(wanted: Array, a: AnyArray) -> None:
    needed = wanted.dtype.numpy
    if a.dtype == needed:
        return
    name = wanted.name
    if wanted.kind == "output":  # results would be written to a converted copy
        why, remedy = f"not {needed}", f"pass one of {needed} as out=, such as np.empty({a.shape}, {needed.name!r})"
    elif hasattr(a, "converted"):
        why = f"not {wanted.dtype}"
        remedy = f"pass {a.converted(name, wanted.dtype)}, or declare it with {str(a.dtype)!r}"
    elif a.dtype.newbyteorder("=") == needed:
        why, remedy = "in another byte order than this machine's", f"pass {name}.astype({needed.name!r})"
    elif wanted.dtype.kind == "bfloat":
        why, remedy = "bfloat16 is given as its bits in uint16", f"pass {name}.view('uint16')"
    else:
        why, remedy = f"not {needed}", f"pass {name}.astype({needed.name!r}), or declare it with {str(a.dtype)!r}"
    raise UserTypeError(f"{wanted.label} holds {wanted.dtype}, but is given an array of {a.dtype}, {why}; {remedy}")


def _check_layout(wanted: Array, a: AnyArray) -> None:
    contiguous = a.contiguous(wanted.name) if hasattr(a, "contiguous") else f"np.ascontiguousarray({wanted.name})"
    remedy = f"pass {contiguous}" if wanted.kind == "Input" else "pass a contiguous array"
    used = [(n, s) for n, s in zip(a.shape, a.strides, strict=True) if n > 1]
    if not a.flags.aligned or any(s % a.itemsize for _, s in used):
        raise UserError(
            f"{wanted.label} is given an array whose elements are not aligned to their {a.itemsize} bytes "
            f"(strides {a.strides}); {remedy}"
        )
    if sum((n - 1) * abs(s) for n, s in used) > _LARGEST_REACH:
        raise UserError(f"{wanted.label} is given an array that extends beyond the address space; {remedy}")


def alignment(a: AnyArray, address: int) -> int:
    """The alignment in bytes of an array's address and of its strides, except those that code is specialized on. It is
    capped at the longest access of a GPU, beyond which alignment makes no difference."""
    steps = [s for s, n, known in zip(a.strides, a.shape, known_strides(a), strict=True) if known is None and n > 1]
    return math.gcd(LONGEST_ACCESS, address, *steps)


def known_strides(a: AnyArray) -> tuple[int | None, ...]:
    """The strides that code is specialized on: 1 for the contiguous axis, and 2 to 4 for other axes. The contiguous
    axis is the last one with stride 1 and several elements, or else one with a single element. Other axes that are too
    short for vectors count as unknown."""
    axes = range(a.ndim - 1, -1, -1)
    dense = [k for k in axes if a.strides[k] == a.itemsize and a.shape[k] > 1] or [k for k in axes if a.shape[k] <= 1]
    near = {k: a.strides[k] // a.itemsize for k in axes if a.shape[k] >= _VECTOR}
    near = {k: n for k, n in near.items() if 2 <= n <= LARGEST_STRIDE}
    return tuple([1 if [k] == dense[:1] else near.get(k) for k in range(a.ndim)])


def is_far(a: AnyArray) -> bool:
    """Whether the distance of some element from the first one exceeds 32 bits."""
    return sum([(n - 1) * abs(s) for n, s in zip(a.shape, element_strides(a), strict=True) if n > 1]) > LARGEST_COUNT


def element_strides(a: AnyArray) -> list[int]:
    """Strides in elements; 0 for axes of at most one element."""
    return [s // a.itemsize if n > 1 else 0 for n, s in zip(a.shape, a.strides, strict=True)]


# ---- numbers


def as_number(wanted: Number, given: Any) -> bool | int | float:
    """Convert a number to its param's type: check its range and round it."""
    if given is None:
        raise UserTypeError(f"{wanted.label} is missing; pass {wanted.name}=<{wanted.dtype}>")
    value = _plain_number(given)
    if value is None:
        raise UserTypeError(f"{wanted.label} is given {shown(given)}, which is not a number of {wanted.dtype}")
    if wanted.dtype.is_float:
        return _as_float(wanted, value)
    return _as_bool(wanted, value) if wanted.dtype.is_bool else _as_int(wanted, value)


def _plain_number(given: Any) -> bool | int | float | None:
    """Convert a number to Python's own classes, because subclasses may behave arbitrarily; None for other values."""
    kind = type(given)
    if issubclass(kind, (np.generic, np.ndarray)) and given is not np.ma.masked:
        scalar = np.asarray(given)
        given = scalar.item() if not scalar.ndim and scalar.dtype.kind not in "mM" else None
        kind = type(given)
    if kind is float or kind is int or kind is bool:
        number: bool | int | float = given
        return number
    if issubclass(kind, int):
        return int.__int__(given)
    return float.__float__(given) if issubclass(kind, float) else None


def _as_bool(wanted: Number, value: bool | int | float) -> bool:
    if not isinstance(value, bool):
        raise UserTypeError(f"{wanted.label} is given {shown(value)}, but it is a bool; pass True or False")
    return value


def _as_int(wanted: Number, value: bool | int | float) -> int:
    if isinstance(value, float):
        raise UserTypeError(f"{wanted.label} is given {value!r}, but it is an {wanted.dtype}; pass an integer")
    if not wanted.dtype.min <= value <= wanted.dtype.max:
        raise UserError(
            f"{wanted.label} is given {shown(value)}, but {wanted.dtype} holds {wanted.dtype.min} .. {wanted.dtype.max}"
        )
    return int(value)


def _as_float(wanted: Number, value: bool | int | float) -> float:
    try:
        if wanted.dtype.kind == "bfloat":
            return from_bfloat_bits(to_bfloat_bits(float(value)))
        code = _FLOAT_CODES[wanted.dtype.bits]
        return float(struct.unpack(code, struct.pack(code, float(value)))[0])
    except OverflowError:
        raise UserError(f"{wanted.label} is given {shown(value)}, which is too large for {wanted.dtype}") from None


_FLOAT_CODES = {16: "=e", 32: "=f", 64: "=d"}  # with "=", a number that does not fit raises an OverflowError


def to_bfloat_bits(value: float) -> int:
    """The upper half of a float32, rounded to nearest even."""
    bits = int(struct.unpack("=I", struct.pack("=f", value))[0])
    if math.isnan(value):
        return bits >> 16 | 0x40
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if rounded & 0x7F80 == 0x7F80 and math.isfinite(value):
        raise OverflowError
    return rounded


def from_bfloat_bits(bits: int) -> float:
    return float(struct.unpack("=f", struct.pack("=I", bits << 16))[0])
