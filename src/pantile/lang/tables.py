"""`table`: a NumPy array as a constant of the pipeline, read at computed places."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UserError, UserTypeError, here, shown
from ..expr.nodes import Const, Expr, const
from ..expr.types import dtype
from . import names
from .indexing import check_rank, indices_of
from .inputs import MOST_AXES, Input


class Table(Input):
    """An array that is a constant of the pipeline: an Input that is not passed. Its `shape` is plain integers."""

    kind = "Table"

    def __init__(self, array: Any, name: str | None = None) -> None:
        self.named = name is not None  # otherwise the pipeline may add a number to make the name unique
        self.name = "table" if name is None else names.argument(name, "a table")
        self.array = _copy(array)
        self.dtype = dtype(self.array.dtype)
        self.ndim = self.array.ndim
        self.where = here()
        self.order = next(names.declaration_order)
        self.known = self.array.shape
        self.shape: Any = self.array.shape

    def __getitem__(self, key: Any) -> Expr:
        indices = indices_of(self, key)
        check_rank(self, indices, self.dims)
        constants = [int(i.value) for i in indices if isinstance(i, Const)]
        for axis, (i, n) in enumerate(zip(indices, self.shape, strict=True)):
            if isinstance(i, Const) and not 0 <= i.value < n:
                raise UserError(f"{self} is read at {i} along axis {axis}, which has the indices 0 .. {n - 1}")
        if len(constants) == self.ndim:
            return const(self.array[tuple(constants)].item(), self.dtype)
        return super().__getitem__(indices)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UserError(f"{self} is a constant of the pipeline; change the array before it becomes a table")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.array.flags.writeable = False  # which NumPy does not keep

    def __repr__(self) -> str:
        return f"<Table {self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]>"


def table(array: Any, name: str | None = None) -> Table:
    """An array as a constant of the pipeline: `lut = pt.table(np.arange(256) ** 2)`, then `lut[img[y, x]]`.

    It is copied, and keeps its type. Reads at constant places are constants; all others are checked at the call, as
    those of an Input are.
    """
    return Table(array, name)


def _copy(array: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """A read-only copy of an array in C order."""
    if isinstance(array, (Expr, Input, np.ma.MaskedArray)):
        raise UserTypeError(f"pt.table takes a NumPy array, not {shown(array)}")
    try:
        copy = np.array(array, order="C", subok=False)
    except Exception as error:  # whatever a foreign type does
        raise UserTypeError(f"pt.table takes a NumPy array, not {shown(array)}: {error}") from error
    if not 1 <= copy.ndim <= MOST_AXES or not copy.size:
        raise UserError(
            f"pt.table is given an array of shape {copy.shape}; it needs at least one axis and one element "
            "(a single number is used as it is)"
        )
    copy = copy.astype(dtype(copy.dtype).numpy, copy=False)  # in this machine's byte order
    copy.flags.writeable = False
    return copy
