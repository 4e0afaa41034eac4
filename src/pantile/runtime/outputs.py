"""The arrays for results: new ones, or those of `out=`, which must not overlap any other array of the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from operator import is_
from typing import Any

import numpy as np

from ..errors import UserError, UserTypeError, shown
from ..parameters import plain
from ..target import host
from .arguments import LARGEST_EXTENT, AnyArray, Array, NDArray, check_array
from .array_conversion import as_array, as_tensor, check_unmasked, is_tensor

LARGEST_BYTES = 1 << 47  # the size of the address space
_OVERLAP_WORK = 1000  # steps that NumPy may spend on deciding whether two interleaved views share an element
Shape = tuple[int, ...]
_may_share = np.may_share_memory
_LARGE = 1 << 14  # bytes from which on aligning an array pays


def given_outputs(wanted: Sequence[Array], out: Any) -> list[Any]:
    """Split `out=` into one NumPy array per output; None stands for a new array."""
    if type(out) is np.ndarray and len(wanted) == 1:
        return [out]
    return [as_output(a, o, "a NumPy array") for a, o in zip(wanted, one_each(wanted, out), strict=True)]


def one_each(wanted: Sequence[Array], out: Any) -> list[Any]:
    """Split `out=` into one entry per output, of any type."""
    given = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(given) != len(wanted):
        names = ", ".join(a.name for a in wanted)
        raise UserError(f"out= holds {len(given)} arrays, but the pipeline fills {len(wanted)}: {names}")
    return given


def as_output(wanted: Array, given: Any, instead: str) -> NDArray | None:
    """The memory of an `out=` value as an array of NumPy's own class; None for None. `instead` is for messages."""
    if given is None or type(given) is np.ndarray:
        return given
    if is_tensor(given):
        return as_array(wanted, given)
    check_unmasked(wanted, given)
    if not issubclass(type(given), np.ndarray):
        raise UserTypeError(f"{wanted.label} cannot be written into {type(given).__name__}; pass {instead} as out=")
    return np.asarray(given)


def returned(wanted: Sequence[Array], filled: Sequence[Any], out: Any, given: Mapping[str, Any]) -> list[Any]:
    """The return value of a call: the arrays of `out=`, and new arrays otherwise, as tensors if tensors were given."""
    outputs = [None] * len(filled) if out is None else one_each(wanted, out)
    if all(map(is_, filled, outputs)):
        return outputs
    tensors = any(map(is_tensor, (*given.values(), *outputs)))
    return [
        o if o is not None else as_tensor(a, w.dtype) if tensors and type(a) is np.ndarray else a
        for w, a, o in zip(wanted, filled, outputs, strict=True)
    ]


def stated_shape(wanted: Array, shape: tuple[Any, ...]) -> Shape:
    """Check a shape that stands for an array. Raise an error if no such array can exist."""
    extents = [n for n in map(plain, shape) if type(n) is int and 0 <= n <= LARGEST_EXTENT]
    if len(extents) < len(shape) or len(shape) != wanted.ndim:
        raise UserError(
            f"{wanted.label} has {wanted.ndim} axes, but is given the shape {shown(shape)}; pass as many extents, each "
            f"an integer of 0 to {LARGEST_EXTENT}"
        )
    if prod(extents) * wanted.dtype.bytes > LARGEST_BYTES:
        raise UserError(f"{wanted.label} is given the shape {shape}, more than memory can hold")
    return tuple(extents)


def check_shape(wanted: Array, shape: Shape, written: str) -> None:
    """Check an output shape; `written` is the shape as the user wrote it."""
    if min(shape, default=0) < 0:
        raise UserError(f"{wanted.label} would have the shape {shape}, from shape={written}; pass larger inputs")
    if max(shape, default=0) > LARGEST_EXTENT or prod(shape) * wanted.dtype.bytes > LARGEST_BYTES:
        raise UserError(f"{wanted.label} would have the shape {shape}, from shape={written}, more than memory can hold")


def check_output(wanted: Array, shape: Shape, a: AnyArray) -> None:
    """Raise an error if the results do not fit the array."""
    check_array(wanted, a)
    if a.shape != shape:
        raise UserError(
            f"{wanted.label} has the shape {shape}, but out= is an array of shape {a.shape}; pass one of that shape, "
            f"such as np.empty({shape}, {wanted.dtype.numpy.name!r})"
        )
    if not a.flags.writeable:
        raise UserError(f"{wanted.label} cannot be written into a read-only array; pass a copy of it as out=")
    if _overlaps_itself(a):
        raise UserError(
            f"{wanted.label} cannot be written into an array whose elements overlap (strides {a.strides}); "
            "pass np.empty_like(...) of it as out="
        )


def maker(shape: Shape, dtype: np.dtype[Any]) -> Callable[[], NDArray]:
    """A function that makes uninitialized arrays. Large ones are aligned to a cache line, so that stores of whole lines
    are possible."""
    size = prod(shape) * dtype.itemsize
    return partial(np.empty, shape, dtype) if size < _LARGE else partial(_on_a_line, shape, dtype, size)


def _on_a_line(shape: Shape, dtype: np.dtype[Any], size: int) -> NDArray:
    line = host().line
    memory = np.empty(size + line, np.uint8)
    array: NDArray = np.ndarray(shape, dtype, memory, -memory.ctypes.data % line)
    return array


def _overlaps_itself(a: AnyArray) -> bool:
    """Whether elements of an array may share memory, because the stride of an axis is less than the span of the axes
    inside of it."""
    if a.size == 0:
        return False
    span = a.itemsize
    for step, n in sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
        if step < span:
            return True
        span += step * (n - 1)
    return False


def check_apart(outputs: Sequence[Array], given: Sequence[Any], inputs: Sequence[Array], read: Sequence[Any]) -> None:
    """Raise an error if an `out=` array shares memory with an input or another output."""
    for k, a in enumerate(given):
        for n, b in enumerate((*read, *given[:k]) if a is not None else ()):
            if b is not None and _may_share(a, b) and _share_memory(a, b):
                wanted, other = outputs[k], (*inputs, *outputs)[n]
                raise UserError(
                    f"{wanted.label} would be written into memory of {other.label}; pass another array as out=, "
                    f"such as np.empty_like(...), or pass a copy of {other.name}"
                )


def _share_memory(a: NDArray, b: NDArray) -> bool:
    """Whether two arrays share memory. The answer is exact if that is quick, as for interleaved channels, and otherwise
    True."""
    try:
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]  # any number is allowed
    except np.exceptions.TooHardError:
        return True
