"""Named scalars: coordinates (`Var`), and scalars whose value is known at the call (`Param`, input extents)."""

from __future__ import annotations

from ..errors import Location, UserError, UserTypeError, here, shown
from ..expr import nodes
from ..expr.build import expr
from ..expr.nodes import Expr, ExprLike, Number, Read, Reduce
from ..expr.types import INT32, DType, DTypeLike, dtype, promote
from ..expr.visit import walk
from ..graph.names import identifier
from ..parameters import plain
from . import names


@nodes.node(init=False)
class Var(nodes.Var):
    """A pixel coordinate. Two Vars of the same name are the same coordinate."""

    def __init__(self, name: str) -> None:
        nodes.Var.__init__(self, INT32, 1, identifier(name, "a coordinate"))


def vars(spelled: str) -> tuple[Var, ...]:
    """Several coordinates at once: `y, x = pt.vars("y x")`."""
    return tuple(Var(n) for n in names.words(spelled, "a coordinate"))


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
        nodes.Var.__init__(self, kind, 1, names.argument(name, "a Param"))
        object.__setattr__(self, "default", None if default is None else _default(name, default, kind))
        object.__setattr__(self, "where", here())
        object.__setattr__(self, "order", next(names.declaration_order))


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
