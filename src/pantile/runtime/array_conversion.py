"""Conversion of arguments to arrays of NumPy's own class; other types are viewed through their protocols."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UserError, UserTypeError
from .arguments import Array, NDArray
from .tensors import is_tensor, memory_of


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
    """The error for a value that cannot be an array, because of what its conversion raised."""
    return UserTypeError(f"{wanted.label} is given {type(given).__name__}, which is not an array: {error}")


def check_unmasked(wanted: Array, given: Any) -> None:
    """Raise an error for a masked array."""
    if any(isinstance(a, np.ma.MaskedArray) for a in (given, *(given if isinstance(given, (list, tuple)) else ()))):
        instead = f"{wanted.name}.filled(...)" if wanted.kind == "Input" else "the .data of it"
        raise UserError(f"{wanted.label} is given a masked array, whose mask would be ignored; pass {instead}")
