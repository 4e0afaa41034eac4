"""Conversion of arguments to arrays of NumPy's own class; other types are viewed through their protocols.

PyTorch tensors on the host are used in place like NumPy arrays, and results are returned as tensors. PyTorch is not
imported here: a caller that passes a tensor has imported it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import UserError, UserTypeError
from ..expr.types import BFLOAT16, DType
from .arguments import Array, NDArray


def as_array(wanted: Array, given: Any) -> NDArray:
    """The value as an array of NumPy's own class, whose attributes describe its memory; subclasses may override
    anything. Other array types are viewed through their protocols."""
    if type(given) is np.ndarray:
        return given
    if given is None:
        raise UserTypeError(f"{wanted.label} is missing; pass {wanted.name}=<array of {wanted.dtype.numpy}>")
    try:
        if is_tensor(given):
            return memory_of(wanted, given)
        check_unmasked(wanted, given)
        if hasattr(given, "__dlpack__") and not hasattr(given, "__array__"):
            return np.from_dlpack(given)
        return np.asarray(given)
    except UserError:
        raise
    except Exception as error:
        raise not_an_array(wanted, given, error) from error


def not_an_array(wanted: Array, given: Any, error: Exception) -> UserError:
    """The error for a value that cannot be an array; `error` is what its conversion raised."""
    return UserTypeError(f"{wanted.label} is given {type(given).__name__}, which is not an array: {error}")


def check_unmasked(wanted: Array, given: Any) -> None:
    """Raise an error for a masked array."""
    if any(isinstance(a, np.ma.MaskedArray) for a in (given, *(given if isinstance(given, (list, tuple)) else ()))):
        instead = f"{wanted.name}.filled(...)" if wanted.kind == "Input" else "the .data of it"
        raise UserError(f"{wanted.label} is given a masked array, whose mask would be ignored; pass {instead}")


def is_tensor(given: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(given), getattr(torch, "Tensor", ()))


def plain_tensor(given: Any) -> Any:
    """The tensor as PyTorch's own class, whose attributes describe its memory; a subclass may override anything."""
    own = sys.modules["torch"].Tensor
    return given if type(given) is own else own.as_subclass(given, own)


def check_tensor(wanted: Array, given: Any) -> None:
    """Raise an error for a tensor whose memory does not hold its values, or that autograd tracks."""
    if given.requires_grad:
        raise UserError(f"{wanted.label} is given a tensor that requires gradients; pass {wanted.name}.detach()")
    if given.is_neg():
        raise UserError(f"{wanted.label} is given a negated view; pass {wanted.name}.resolve_neg()")


def memory_of(wanted: Array, given: Any) -> NDArray:
    """A tensor as an array, bfloat16 as its bits; NumPy raises a TypeError or RuntimeError if it cannot view it."""
    tensor = plain_tensor(given)
    check_tensor(wanted, tensor)
    name = str(tensor.dtype).removeprefix("torch.")
    if name != wanted.dtype.name and wanted.kind == "Input":
        raise UserTypeError(
            f"{wanted.label} holds {wanted.dtype}, but is given a tensor of {name}; pass "
            f"{wanted.name}.to(torch.{wanted.dtype}), or declare it with {name!r}"
        )
    if name == BFLOAT16.name:
        tensor = tensor.view(sys.modules["torch"].int16)
    array: NDArray = tensor.numpy()
    return array.view(np.uint16) if name == BFLOAT16.name else array


def as_tensor(array: NDArray, t: DType) -> Any:
    """The array as a tensor with the same memory."""
    torch = sys.modules["torch"]
    if t is BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
