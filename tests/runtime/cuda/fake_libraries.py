"""Stand-ins for libraries with arrays on a GPU, whose memory is that of the fake driver."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from pantile.runtime.cuda.exchange import DLManagedTensor, in_c_order
from pantile.runtime.cuda.results import _Destructor, _new_capsule

from .fake_driver import FakeDriver


def memory_of(driver: FakeDriver, a: np.ndarray) -> tuple[Any, int]:
    """A copy of an array in the device's memory, seen by NumPy, with the array's own strides; its address."""
    low, high = np.lib.array_utils.byte_bounds(a) if hasattr(np.lib, "array_utils") else np.byte_bounds(a)
    size = max(1, high - low)
    begin = driver.memory.take(size)
    held = (ctypes.c_char * size).from_address(begin)
    seen = np.ndarray(a.shape, a.dtype, held, a.ctypes.data - low if a.size else 0, a.strides)
    seen[...] = a
    return seen, begin + (a.ctypes.data - low if a.size else 0)


# ---- PyTorch


class dtype:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class OutOfMemoryError(RuntimeError):
    pass


class Tensor:
    """What Pantile asks of a tensor."""

    requires_grad = False
    is_cuda = True

    def __init__(self, torch: FakeTorch, seen: Any, address: int, kind: dtype, ordinal: int = 0) -> None:
        self.seen, self._address, self.dtype, self._ordinal, self.shape = seen, address, kind, ordinal, seen.shape
        self._torch = torch

    def as_subclass(self, kind: type) -> Any:
        return kind(self._torch, self.seen, self._address, self.dtype, self._ordinal)

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.seen.itemsize for s in self.seen.strides)

    def data_ptr(self) -> int:
        return self._address

    def get_device(self) -> int:
        return self._ordinal

    def is_neg(self) -> bool:
        return False


class FakeTorch:
    """A module."""

    Tensor = Tensor
    dtype = dtype

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver
        for name in ("bool", "uint8", "int16", "int32", "int64", "uint16", "float16", "bfloat16", "float32", "float64"):
            setattr(self, name, dtype(name))
        self.stream = 0
        self.full = 0  # how often it has no room
        self.emptied = 0
        self.cuda = SimpleNamespace(
            current_stream=lambda ordinal: SimpleNamespace(cuda_stream=self.stream),
            is_initialized=lambda: True,
            empty_cache=self._empty_cache,
        )

    def _empty_cache(self) -> None:
        self.emptied += 1

    def tensor(self, a: np.ndarray, kind: str | None = None, ordinal: int = 0) -> Tensor:
        seen, address = memory_of(self._driver, a)
        return Tensor(self, seen, address, getattr(self, kind or a.dtype.name), ordinal)

    def empty_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], *, dtype: dtype, device: int) -> Tensor:
        assert strides == in_c_order(shape, 1)
        if self.full:
            self.full -= 1
            raise OutOfMemoryError("CUDA out of memory")
        held = np.zeros(shape, "uint16" if dtype.name == "bfloat16" else dtype.name)
        seen, address = memory_of(self._driver, held)
        return Tensor(self, seen, address, dtype, device)


# ---- CuPy


class CupyArray:
    def __init__(self, seen: Any, address: int) -> None:
        self.seen, self.shape, self.strides, self.dtype = seen, seen.shape, seen.strides, seen.dtype
        self.data, self.device = SimpleNamespace(ptr=address), SimpleNamespace(id=0)


class FakeCupy:
    """A module."""

    ndarray = CupyArray

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver
        self.stream = 0
        self.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=self.stream), Device=_Nothing)

    def array(self, a: np.ndarray) -> CupyArray:
        return CupyArray(*memory_of(self._driver, a))

    def empty(self, shape: tuple[int, ...], kind: Any) -> CupyArray:
        return CupyArray(*memory_of(self._driver, np.zeros(shape, kind)))


class _Nothing:
    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


# ---- protocols


class Interfaced:
    """Speaks the CUDA array interface alone, as Numba does."""

    def __init__(self, driver: FakeDriver, a: np.ndarray, stream: int | None = None, **changed: Any) -> None:
        self.seen, address = memory_of(driver, a)
        contiguous = a.strides == in_c_order(a.shape, a.itemsize)
        self.__cuda_array_interface__ = {
            "shape": a.shape,
            "typestr": a.dtype.str,
            "data": (address, False),
            "strides": None if contiguous else a.strides,
            "version": 3,
            "stream": stream,
            **changed,
        }


class Packed:
    """Speaks DLPack, as JAX does."""

    def __init__(self, driver: FakeDriver, a: np.ndarray, code: int, device: tuple[int, int] = (2, 0)) -> None:
        self.seen, address = memory_of(driver, a)
        self._device, self.asked = device, []
        n = max(1, a.ndim)
        self._shape = (ctypes.c_int64 * n)(*a.shape)
        self._strides = (ctypes.c_int64 * n)(*(s // a.itemsize for s in a.strides))
        self._held = DLManagedTensor()
        t = self._held.tensor
        t.data, t.device_type, t.device_id, t.ndim, t.lanes, t.byte_offset = address - 8, *device, a.ndim, 1, 8
        t.code, t.bits = code, 8 * a.itemsize
        t.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        t.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        self.asked.append(stream)
        return _new_capsule(ctypes.addressof(self._held), b"dltensor", _Destructor())
