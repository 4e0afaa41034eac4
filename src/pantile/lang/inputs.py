"""`Input`: an array that the caller passes, and its extents as expressions; and `table`, a constant array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import UserError, UserTypeError, here, shown
from ..expr import nodes
from ..expr.nodes import Const, Expr, Read, const
from ..expr.types import INT32, DTypeLike, dtype
from ..expr.types import dtype as as_dtype
from ..parameters import plain
from .indexing import Source, check_rank, indices_of
from .variables import Scalar, argument, declaration_order

MOST_AXES = 32  # the most axes that all versions of NumPy support


@nodes.node(init=False)
class Extent(Scalar):
    """The extent of an Input along one axis."""

    source: Input
    axis: int

    def __init__(self, source: Input, axis: int) -> None:
        nodes.Var.__init__(self, INT32, 1, f"{source.name}.shape.{axis}")
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "axis", axis)


class Shape(tuple[Extent | int, ...]):
    """The extents of an Input, numbers where they are known: a tuple whose errors name the valid indices."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Shape(super().__getitem__(index))
        axis, axes = plain(index), len(self)
        if type(axis) is not int or not -axes <= axis < axes:
            raise UserError(
                f"shape[{shown(index)}] is not the extent of an axis; the axes are numbered from 0 to {axes - 1}"
            )
        return super().__getitem__(axis)


class Input(Source):
    """An array of pixels, passed by name at the call and read as `img[y, x]`, in NumPy's order of axes.

    `shape=(None, None, 3)` says what is known of its extents, `ndim=3` that nothing is. `img.shape` is a tuple of
    expressions, and of numbers where they are known: shapes and reduction domains may depend on it.
    """

    kind = "Input"

    def __init__(
        self, name: str, dtype: DTypeLike, ndim: int | None = None, *, shape: Sequence[int | None] | None = None
    ) -> None:
        self.name = argument(name, "an Input")
        self.dtype = as_dtype(dtype)
        self.known = (None,) * _axes(name, ndim) if shape is None else _known(name, ndim, shape)
        self.ndim = len(self.known)
        self.where = here()
        self.order = next(declaration_order)
        self.shape = Shape(Extent(self, k) if n is None else n for k, n in enumerate(self.known))

    @property
    def dims(self) -> tuple[str, ...]:
        """Names for the axes, which an Input does not name itself."""
        return tuple(f"d{k}" for k in range(self.ndim))

    def __getitem__(self, key: Any) -> Expr:
        indices = indices_of(self, key)
        check_rank(self, indices, self.dims)
        return Read(self.dtype, 1, self, indices, 0)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UserError(f"{self} is given by the caller and cannot be assigned to; define a pt.Func instead")

    def __repr__(self) -> str:
        said = f"ndim={self.ndim}" if self.known == (None,) * self.ndim else f"shape={self.known}"
        return f"Input({self.name!r}, {self.dtype.name!r}, {said})"


def _axes(name: str, ndim: Any) -> int:
    if type(ndim) is not int or not 1 <= ndim <= MOST_AXES:
        raise UserError(
            f"Input {name!r} has ndim={shown(ndim)}; write how many axes it has, at most {MOST_AXES} "
            "(for none, use pt.Param)"
        )
    return ndim


def _known(name: str, ndim: Any, shape: Any) -> tuple[int | None, ...]:
    """The extents that are stated, None for the others."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence) or not 1 <= len(shape) <= MOST_AXES:
        raise UserError(
            f"Input {name!r} has shape={shown(shape)}; write a tuple with one extent per axis, None where it is not "
            f"known, such as (None, None, 3), of at most {MOST_AXES}"
        )
    extents = tuple(map(plain, shape))
    for n in extents:
        if n is not None and (type(n) is not int or not 1 <= n <= INT32.max):
            raise UserError(
                f"Input {name!r} has an extent {shown(n)} in its shape; write an integer of at least 1, or None where "
                "it is known at the call only"
            )
    if ndim is not None and ndim != len(extents):
        raise UserError(f"Input {name!r} has ndim={shown(ndim)}, but a shape of {len(extents)} extents; leave ndim out")
    return extents


class Table(Input):
    """An array that is a constant of the pipeline: an Input that is not passed. Its `shape` is plain integers."""

    kind = "Table"

    def __init__(self, array: Any, name: str | None = None) -> None:
        self.named = name is not None  # otherwise the pipeline may add a number to make the name unique
        self.name = "table" if name is None else argument(name, "a table")
        self.array = _copy(array)
        self.dtype = dtype(self.array.dtype)
        self.ndim = self.array.ndim
        self.where = here()
        self.order = next(declaration_order)
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
