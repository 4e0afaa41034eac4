"""The common base of Funcs and Inputs: they are read by index, `f[y, x]`, and are not values themselves.

`pixel` gives all channels of a point at once:

out[y, x] = pt.pixel(r, g, b)     is     out[y, x, c] = pt.case((c == 0, r), (c == 1, g), otherwise=b)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np

from ..errors import Location, UserError, UserTypeError, shown
from ..expr.build import expr
from ..expr.nodes import Const, Expr, ExprLike
from .math import case, unify
from .variables import Var

_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_OTHERS = ("neg", "invert", "abs", "lt", "le", "gt", "ge", "round", "int", "float", "index")
_NUMPY = ("array_ufunc", "array_function")
_LONG = 80  # the most characters of indices that a message repeats
_CHANNEL = "c"


class NotAValue(ABC):
    """Refuses arithmetic and says what to write instead (`as_expr` raises the error)."""

    @abstractmethod
    def as_expr(self) -> NoReturn:
        """Raise an error that says what to write instead."""


def _refuse(self: NotAValue, *_: object, **__: object) -> NoReturn:
    self.as_expr()


for _name in (*_OPERATORS, *("r" + o for o in _OPERATORS), *_OTHERS, *_NUMPY):
    setattr(NotAValue, f"__{_name}__", _refuse)


class Source(NotAValue):
    """A Func or an Input."""

    name: str
    where: Location
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    def as_expr(self) -> NoReturn:
        raise UserError(f"{self} is a function of coordinates, not a value; read it at a point, like {self.name}[y, x]")

    def __call__(self, *place: object, **_: object) -> NoReturn:
        at = ", ".join(str(e) if isinstance(e, Expr) else shown(e) for e in place)
        raise UserTypeError(f"{self} is read in brackets: write {self.name}[{at if 0 < len(at) < _LONG else 'y, x'}]")

    def __iter__(self) -> NoReturn:
        raise UserError(f"{self} cannot be iterated over or unpacked; read it at a point, like {self.name}[y, x]")


def indices_of(source: Source, key: Any) -> tuple[Expr, ...]:
    """The indices between the brackets of `source[key]`, checked to be integers."""
    return tuple(_index(source, k) for k in (key if isinstance(key, tuple) else (key,)))


def _index(source: Source, index: Any) -> Expr:
    if isinstance(index, slice) or index is None or index is Ellipsis or isinstance(index, (np.ndarray, list)):
        shown = ":" if isinstance(index, slice) else type(index).__name__
        raise UserError(
            f"{source} is indexed with {shown}; a definition describes one pixel at a time, "
            "so every index is one integer expression"
        )
    e = expr(index)
    if not e.dtype.is_int:
        raise UserTypeError(
            f"{source} is indexed with {e}, which is {e.dtype}; an index must be an integer: "
            f"divide with // or write pt.cast('int32', {e})"
        )
    return e


def check_rank(source: Source, indices: tuple[Expr, ...], dims: tuple[str, ...]) -> None:
    """Refuse another number of indices than dimensions."""
    if len(indices) != len(dims):
        raise UserError(
            f"{source} has {_count(len(dims), 'dimension')} (from {source.where}) but is given "
            f"{_count(len(indices), 'index', 'indices')}; write {source.name}[{', '.join(dims)}]"
        )


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


class Pixel(NotAValue, tuple[Expr, ...]):
    """The channels of a pixel, all of one type, by which a Func may be defined."""

    def as_expr(self) -> NoReturn:
        raise UserError(
            "pt.pixel(...) is all channels of a pixel, not a value; assign it, like out[y, x] = pt.pixel(...)"
        )

    def at(self, channel: Expr) -> Expr:
        """The value of one channel."""
        *before, last = self
        return case(*((channel == k, value) for k, value in enumerate(before)), otherwise=last)


def pixel(*channels: ExprLike) -> Pixel:
    """All channels of a pixel at once: `out[y, x] = pt.pixel(r, g, b)` defines a Func of three dims, y, x and c.

    The channels get one type, as the branches of `pt.select` do.
    """
    if not channels:
        raise UserError("pt.pixel is given no channels; write one expression for each, like pt.pixel(r, g, b)")
    if len(channels) == 1 and isinstance(channels[0], (tuple, list)):
        raise UserError("pt.pixel takes channels one by one; write pt.pixel(*channels)")
    return Pixel(unify(*channels))


def channel_coordinate(dims: tuple[str, ...]) -> Var:
    """The coordinate that numbers channels: c, or a longer name if that is taken."""
    name = _CHANNEL
    while name in dims:
        name += _CHANNEL
    return Var(name)


def check_channel(label: str, channels: int, index: Expr) -> None:
    """Refuse to read a channel that does not exist."""
    if isinstance(index, Const) and not 0 <= index.value < channels:
        raise UserError(f"{label} has channels 0 .. {channels - 1}, but channel {index.value} of it is read")
