"""`RDom`: the points that a reduction, a scan or a scatter runs over, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from ..dataclass import dataclass
from ..errors import UserError, UserTypeError
from ..expr import nodes
from ..expr.build import expr
from ..expr.nodes import Expr, ExprLike
from ..expr.types import INT32
from ..graph.names import identifier
from .indexing import NotAValue
from .variables import known_at_call, words


@dataclass(frozen=True, eq=False)
class DomainLoops:
    """The loops of a domain, outermost first; domains that differ only in their conditions share them."""

    name: str
    names: tuple[str, ...]
    bounds: tuple[tuple[Expr, Expr], ...]  # min, extent


@nodes.node(init=False)
class RVar(nodes.Var):
    """The coordinate along one loop of a domain."""

    domain: RDom
    axis: int

    def __init__(self, domain: RDom, axis: int) -> None:
        loops = domain.loops
        nodes.Var.__init__(self, INT32, 1, f"{loops.name}.{loops.names[axis]}")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "axis", axis)


class RDom(NotAValue):
    """A reduction domain: one `(min, extent)` per loop, the first outermost.

    `r[0]`, `r[1]` are its coordinates; with `names="y x"` also `r.y`, `r.x`. `r.where(condition)` skips points.
    """

    def __init__(self, *bounds: tuple[ExprLike, ExprLike], name: str | None = None, names: Any = None) -> None:
        if not bounds:
            raise UserError("an RDom needs at least one loop: pt.RDom((min, extent), ...)")
        checked = tuple(_bound(b, k) for k, b in enumerate(bounds))
        base = "r" if name is None else identifier(name, "an RDom")
        self.loops = DomainLoops(base, _loop_names(names, len(bounds)), checked)
        self.predicates: tuple[Expr, ...] = ()

    def where(self, condition: ExprLike) -> RDom:
        """Restrict the domain to points where `condition` holds, in addition to earlier conditions."""
        condition = expr(condition)
        if not condition.dtype.is_bool:
            raise UserTypeError(
                f"{self}.where({condition}): the condition is {condition.dtype}; "
                f"write a comparison such as {condition} != 0"
            )
        return self.restricted((*self.predicates, condition))

    def restricted(self, predicates: tuple[Expr, ...]) -> RDom:
        """A domain with these loops and exactly these conditions."""
        other = RDom.__new__(RDom)
        other.loops, other.predicates = self.loops, predicates
        return other

    def as_expr(self) -> NoReturn:
        raise UserError(f"{self} is a whole domain; pick one of its coordinates, like {self}[0]")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        place = ", ".join(f"{self}[{k}]" for k in range(len(self)))
        raise UserTypeError(
            f"{self} is a whole domain, at which no NumPy array can be read; make it a table, and pick coordinates: "
            f"pt.table(array)[{place}]"
        )

    def __len__(self) -> int:
        return len(self.loops.names)

    def __getitem__(self, axis: int) -> RVar:
        if not isinstance(axis, int) or not -len(self) <= axis < len(self):
            raise UserError(f"{self} has {len(self)} loops, so {axis!r} is not one of 0 .. {len(self) - 1}")
        return RVar(self, axis % len(self))

    def __getattr__(self, name: str) -> RVar:
        if name.startswith("_") or name == "loops":  # not there yet while copying or unpickling
            raise AttributeError(name)
        if name not in self.loops.names:
            raise UserError(f"{self} has no loop named {name!r}; it has {', '.join(self.loops.names)} (see names=)")
        return RVar(self, self.loops.names.index(name))

    def __iter__(self) -> Iterator[RVar]:
        return (RVar(self, k) for k in range(len(self)))

    def __str__(self) -> str:
        return self.loops.name

    def __repr__(self) -> str:
        return f"RDom({', '.join(f'({low}, {extent})' for low, extent in self.loops.bounds)})"


def _bound(bound: Any, axis: int) -> tuple[Expr, Expr]:
    if not isinstance(bound, (tuple, list)) or len(bound) != 2:
        raise UserError(f"loop {axis} of an RDom is {bound!r}; write (min, extent), for example (-1, 3) for -1, 0, 1")
    what = f"of loop {axis} of an RDom"
    low, extent = known_at_call(bound[0], f"the min {what}"), known_at_call(bound[1], f"the extent {what}")
    if isinstance(extent, nodes.Const) and extent.value < 0:
        raise UserError(f"the extent {what} is {extent}; it must not be negative")
    return low, extent


def _loop_names(names: Any, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(k) for k in range(count))
    result = words(names, "a loop of an RDom")
    taken = [n for n in result if hasattr(RDom, n) or n in ("loops", "predicates")]
    if taken:
        raise UserError(f"{taken[0]!r} cannot name a loop of an RDom: it is an attribute of every RDom")
    if len(set(result)) != count:
        raise UserError(f"names={names!r} must give each of the RDom's {count} loops a name of its own")
    return result
