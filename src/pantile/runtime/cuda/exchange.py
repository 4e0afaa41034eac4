"""DLPack and the CUDA array interface: arrays of any library that supports one of them.

A DLPack capsule is read and kept alive, but never consumed: its producer frees the array when the capsule is deleted.
"""

from __future__ import annotations

import ctypes
import operator
from typing import Any, NamedTuple

import numpy as np

from ...expr.types import DType
from .driver import checked, driver

CUDA, CUDA_MANAGED = 2, 13  # DLPack's numbers of device types
LEGACY_STREAM = 1  # what both protocols call the default stream
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}  # DLPack's type codes
CODES = {kind: code for code, kind in _KINDS.items()}


class ArrayDescription(NamedTuple):
    """The description of an array that a protocol exports. Strides are in bytes."""

    ordinal: int
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type_name: str  # the NumPy type, or bfloat16
    writeable: bool
    stream: int  # in which the array is ready
    keeps: Any  # keeps the array alive


# ---- DLPack


class DLTensor(ctypes.Structure):
    """DLPack's struct DLTensor: the address of an array, its device, shape and strides."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class DLManagedTensor(ctypes.Structure):
    """A tensor, and its deleter."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


CAPSULE = b"dltensor"
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def is_on_gpu(given: Any) -> bool:
    """Whether DLPack reports the array on a GPU."""
    return int(given.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED)


def by_dlpack(given: Any) -> ArrayDescription:
    """Describe an array on a GPU by DLPack. The default stream waits for the array."""
    capsule = given.__dlpack__(stream=LEGACY_STREAM)
    t = DLManagedTensor.from_address(_pointer_of(capsule, CAPSULE)).tensor
    if t.lanes != 1 or t.bits % 8 or t.code not in _KINDS:
        raise TypeError(f"it holds {t.lanes} x {t.bits} bits of DLPack's type {t.code}")
    kind, shape = _KINDS[t.code], tuple(t.shape[: t.ndim])
    size = t.bits // 8
    strides = tuple(s * size for s in t.strides[: t.ndim]) if t.strides else in_c_order(shape, size)
    _check_extents(shape, strides)
    name = kind if kind == "bool" else f"{kind}{t.bits}"
    return ArrayDescription(t.device_id, (t.data or 0) + t.byte_offset, shape, strides, name, True, 0, capsule)


def in_c_order(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of a contiguous array, in bytes."""
    strides = [itemsize]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * max(1, n))
    return tuple(reversed(strides[: len(shape)]))


def _check_extents(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    if len(strides) != len(shape) or min(shape, default=0) < 0:
        raise TypeError(f"it says that it has the shape {shape} and the strides {strides}")


# ---- the CUDA array interface


def by_interface(given: Any) -> ArrayDescription:
    """Describe an array by the CUDA array interface."""
    interface = given.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise TypeError("it has a mask, which would be ignored")
    dtype, shape = np.dtype(interface["typestr"]), tuple(map(operator.index, interface["shape"]))
    address, read_only = interface["data"]
    strides = interface.get("strides")
    strides = in_c_order(shape, dtype.itemsize) if strides is None else tuple(map(operator.index, strides))
    _check_extents(shape, strides)
    stream = interface.get("stream")
    # Numba and others export bfloat16 without a NumPy type.
    name = "bfloat16" if dtype.kind == "V" and dtype.itemsize == 2 else dtype.str
    running = 0 if stream in (None, LEGACY_STREAM) else int(stream)
    place = operator.index(address or 0)
    return ArrayDescription(_device_of(place), place, shape, strides, name, not read_only, running, given)


def _device_of(address: int) -> int:
    """The device of an address; arrays without elements may have none."""
    if not address:
        return 0
    cu = driver()
    wanted = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(checked(cu.cuPointerGetAttribute(wanted, address)))


def type_code(t: DType) -> tuple[int, int]:
    """The code and the number of bits of a type in DLPack."""
    return CODES[t.kind], 8 * t.bytes
