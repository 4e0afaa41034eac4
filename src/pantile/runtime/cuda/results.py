"""Our own arrays on a device, for results of calls whose arrays belong to no known library. They support DLPack and the
CUDA array interface, so that libraries with either protocol can use them without copies."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from ...expr.types import DType
from ..outputs import Shape
from .device import Device
from .driver import checked
from .exchange import CAPSULE, CUDA, LEGACY_STREAM, DLManagedTensor, in_c_order, type_code
from .memory import pool

_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# We declare our own prototypes, because other packages may set the types of the shared ones in ctypes.pythonapi.
_api = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(
    ("PyCapsule_New", _api)
)
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


class DeviceArray:
    """A C-ordered array on a GPU. `numpy()` copies it to the host."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: DType
    device: int
    stream: int
    nbytes: int
    address: int
    _device: Device

    def __init__(self, device: Device, shape: Shape, dtype: DType, stream: int) -> None:
        shape, nbytes = tuple(shape), prod(shape) * dtype.bytes
        self.__dict__.update(
            shape=shape,
            strides=in_c_order(shape, dtype.bytes),
            dtype=dtype,
            device=device.ordinal,
            stream=stream,
            nbytes=nbytes,
            _device=device,
        )
        entered = device.enter()
        try:
            self.__dict__["address"] = pool(device).take(nbytes, stream) if nbytes else 0
        finally:
            device.leave(entered)

    def __setattr__(self, name: str, value: object) -> None:
        """Attributes are frozen, because calls rely on them as the description of the array's memory."""
        raise AttributeError(f"the {name} of an array on a GPU cannot be changed")

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            entered = self._device.enter()
            pool(self._device).give(self.address, self.stream)
            self._device.leave(entered)

    def __repr__(self) -> str:
        return f"<array of {self.dtype}, shape {self.shape}, on {self._device}>"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Wait until the array is computed, and copy it to the host."""
        array = np.empty(self.shape, self.dtype.numpy)
        if self.nbytes:
            entered = self._device.enter()
            try:
                cu = self._device.cu
                checked(cu.cuMemcpyDtoHAsync(array.ctypes.data, self.address, self.nbytes, self.stream))
                checked(cu.cuStreamSynchronize(self.stream))
            finally:
                self._device.leave(entered)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        if copy is False:
            raise ValueError("an array on a GPU cannot be read by NumPy without a copy")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    # ---- the CUDA array interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = self.dtype.numpy.str
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
            "stream": self.stream or LEGACY_STREAM,
        }

    # ---- DLPack

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """Export the array as a capsule. `stream` is the consumer's stream, which waits for this array; -1 if the
        consumer synchronizes itself."""
        if stream != -1:
            running = 0 if stream in (None, LEGACY_STREAM) else int(stream)
            if running != self.stream:
                entered = self._device.enter()
                try:
                    self._device.wait_for([self.stream], running)
                finally:
                    self._device.leave(entered)
        return _capsule(self)


class _ExportedTensor:
    """The struct that a capsule points at, and the array that it keeps alive."""

    def __init__(self, array: DeviceArray) -> None:
        n = array.ndim
        self.array = array
        self.shape = (ctypes.c_int64 * max(1, n))(*array.shape)
        self.strides = (ctypes.c_int64 * max(1, n))(*(s // array.dtype.bytes for s in array.strides))
        self.managed = DLManagedTensor()
        t = self.managed.tensor
        t.data, t.device_type, t.device_id, t.ndim, t.lanes, t.byte_offset = array.address, CUDA, array.device, n, 1, 0
        t.code, t.bits = type_code(array.dtype)
        t.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        t.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        self.managed.deleter = ctypes.cast(_deleter, ctypes.c_void_p)


_exported: dict[int, _ExportedTensor] = {}  # by address, kept alive until their deleters are called


def _capsule(array: DeviceArray) -> Any:
    exported = _ExportedTensor(array)
    address = ctypes.addressof(exported.managed)
    _exported[address] = exported
    return _new_capsule(address, CAPSULE, _destructor)


def _delete(managed: int) -> None:
    _exported.pop(managed, None)


def _destroy(capsule: int) -> None:
    """Free the content of a capsule that was not consumed."""
    if _is_capsule(capsule, CAPSULE):
        _exported.pop(_pointer_of(capsule, CAPSULE), None)


_deleter, _destructor = _Deleter(_delete), _Destructor(_destroy)
