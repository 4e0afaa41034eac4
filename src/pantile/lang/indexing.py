"""The common base of Funcs and Inputs: they are read by index, `f[y, x]`, and are not values themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np

from ..errors import Location, UserError, UserTypeError, shown
from ..expr.build import expr
from ..expr.nodes import Expr

_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_OTHERS = ("neg", "invert", "abs", "lt", "le", "gt", "ge", "round", "int", "float", "index")
_NUMPY = ("array_ufunc", "array_function")
_LONG = 80  # the most characters of indices that a message repeats


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
