"""A stand-in for PyTorch on the host: what Pantile asks of it, around NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

_INTEGERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
_FLOATS = ("float16", "float32", "float64")


class dtype:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class Tensor:
    is_cuda = False

    def __init__(self, memory: Any, kind: dtype, requires_grad: bool = False) -> None:
        self._memory, self._kind, self.requires_grad = memory, kind, requires_grad

    @property
    def dtype(self) -> dtype:
        return self._kind

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._memory.shape)

    @property
    def T(self) -> Tensor:
        return Tensor(self._memory.T, self._kind)

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self._memory[key], self._kind)

    def as_subclass(self, kind: type) -> Any:
        return kind(self._memory, self._kind, self.requires_grad)

    def is_neg(self) -> bool:
        return False

    def detach(self) -> Tensor:
        return Tensor(self._memory, self._kind)

    def requires_grad_(self) -> Tensor:
        return Tensor(self._memory, self._kind, True)

    def data_ptr(self) -> int:
        return int(self._memory.ctypes.data)

    def view(self, kind: dtype) -> Tensor:
        held = "uint16" if kind.name == "bfloat16" else kind.name
        return Tensor(self._memory.view(held), kind)

    def numpy(self) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self._kind.name == "bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._memory


class FakeTorch:
    """A module."""

    Tensor, dtype, bfloat16 = Tensor, dtype, dtype("bfloat16")

    def __init__(self) -> None:
        for name in (*_INTEGERS, *_FLOATS):
            setattr(self, name, dtype(name))

    def from_numpy(self, a: Any) -> Tensor:
        return Tensor(np.asarray(a), getattr(self, a.dtype.name))
