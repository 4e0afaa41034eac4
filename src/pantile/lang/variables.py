"""Named scalars: coordinates (`Var`), and scalars whose value is known at the call (`Param`, input extents).

Names are those that users give; inside `iterate` they have suffixes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import Location, UserError, UserTypeError, here, shown
from ..expr import nodes
from ..expr.build import expr
from ..expr.nodes import Expr, ExprLike, Number, Read, Reduce
from ..expr.types import INT32, DType, DTypeLike, dtype, promote
from ..expr.visit import walk
from ..graph.names import CALL_OPTIONS, identifier
from ..parameters import plain

# Inputs and params are listed in the order in which they were declared.
declaration_order = itertools.count()

_suffix: ContextVar[str] = ContextVar("_suffix", default="")


def argument(name: object, what: str) -> str:
    """A name that can be a keyword of a pipeline's call."""
    if identifier(name, what) in CALL_OPTIONS:
        raise UserError(f"{name!r} cannot be the name of {what}: it is an option of every call; choose another name")
    return str(name)


def words(names: object, what: str) -> tuple[str, ...]:
    """ "y x" or "y, x" or ("y", "x") as checked names."""
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    if not isinstance(names, (tuple, list)):
        raise UserError(
            f"{shown(names)} cannot be the name of {what}; write names with spaces between them, like 'y x'"
        )
    return tuple(identifier(n, what) for n in names)


@contextmanager
def suffixed(suffix: str) -> Iterator[None]:
    """Have the names of Funcs made inside end in `suffix`, so that a step can be repeated without name clashes."""
    token = _suffix.set(_suffix.get() + suffix)
    try:
        yield
    finally:
        _suffix.reset(token)


def current_suffix() -> str:
    """The suffix that `suffixed` has set."""
    return _suffix.get()


@nodes.node(init=False)
class Var(nodes.Var):
    """A pixel coordinate. Two Vars of the same name are the same coordinate."""

    def __init__(self, name: str) -> None:
        nodes.Var.__init__(self, INT32, 1, identifier(name, "a coordinate"))


def vars(spelled: str) -> tuple[Var, ...]:
    """Several coordinates at once: `y, x = pt.vars("y x")`."""
    return tuple(Var(n) for n in words(spelled, "a coordinate"))


@nodes.node()
class Scalar(nodes.Var):
    """A scalar whose value is known when the pipeline is called."""


@nodes.node(init=False)
class Param(Scalar):
    """A number that the caller gives by name, or leaves at its default."""

    default: Number | None
    where: Location
    order: int

    def __init__(self, name: str, dtype: DTypeLike, default: Number | None = None) -> None:
        kind = _dtype(dtype)
        nodes.Var.__init__(self, kind, 1, argument(name, "a Param"))
        object.__setattr__(self, "default", None if default is None else _default(name, default, kind))
        object.__setattr__(self, "where", here())
        object.__setattr__(self, "order", next(declaration_order))


_dtype = dtype  # Param's own argument has this name


def _default(name: str, value: object, kind: DType) -> Number:
    number = plain(value)
    if not isinstance(number, (bool, int, float)):
        raise UserTypeError(f"the default of Param {name!r} is {shown(value)}, which is not a number")
    natural = expr(number, kind).dtype
    if natural != kind and promote(natural, kind) != kind:
        raise UserError(f"the default of Param {name!r} is {shown(number)}, which is not of its type {kind}")
    return number


def known_at_call(value: ExprLike, what: str) -> Expr:
    """`value` as an integer expression of only numbers, Params and shapes of Inputs; raise an error for others."""
    e = expr(value)
    if not e.dtype.is_int:
        hint = "divide with // or write pt.cast('int32', ...)" if e.dtype.is_float else "write an integer"
        raise UserError(f"{what} is {e}, of type {e.dtype}; it must be an integer: {hint}")
    for node in walk(e):
        if isinstance(node, (Read, Reduce)) or (isinstance(node, nodes.Var) and not isinstance(node, Scalar)):
            raise UserError(
                f"{what} is {e}, but {node} is not known when the pipeline is called; "
                "use only numbers, Params and shapes of Inputs"
            )
    return e
