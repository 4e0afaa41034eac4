"""A grammar that also writes definitions, line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from pantile.expr.types import INT32, DType

from .conditions import condition
from .expressions import KINDS, KINDS_WITH_MATH, undone
from .grammar import SCALAR, Grammar, Scope, Source
from .indices import read
from .terms import Term

DIMS = {1: ("x",), 2: ("y", "x"), 3: ("y", "x", "c")}


@dataclass(frozen=True)
class RawInput:
    """An Input that is read without a boundary condition, only within its own extents."""

    name: str
    dtype: DType
    ndim: int
    size: float


@dataclass
class Writer(Grammar):
    """A grammar that also writes definitions."""

    lines: list[str] = field(default_factory=list)
    raw: list[RawInput] = field(default_factory=list)
    ranks: tuple[int, ...] = (2,)
    channels: list[str] = field(default_factory=list)  # extents of the last axes of pictures
    # Funcs that may be outputs, with the shape that they require; None if any shape will do.
    outputs: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    _count: int = 0

    def kinds(self) -> Sequence[Callable[[Grammar, Scope], Term]]:
        return KINDS_WITH_MATH if self.transcendental else KINDS

    def read(self, scope: Scope) -> Term:
        return read(self, scope)

    def undone(self, scope: Scope) -> Term:
        return undone(self, scope)

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def func(self, prefix: str = "f", options: str = "") -> str:
        name = self.fresh(prefix)
        self.lines.append(f"{name} = pt.Func({name!r}{options})")
        return name

    def dims(self) -> tuple[str, ...]:
        return DIMS[self.pick(self.ranks)]

    def add(self, name: str, *values: Term, ndim: int, table: bool = False, channels: int = 0) -> None:
        """Make a Func readable."""
        bare = tuple(replace(v, text="") for v in values)
        self.sources.append(Source(name, bare, ndim, self.taken_growth(), table, channels))

    def small_domain(self) -> tuple[str, tuple[str, ...], int]:
        """A small domain: its name, its coordinates, and its maximum number of points."""
        extents = [self.pick([1, 2, 3, 3, 4, 5]) for _ in range(self.pick([1, 1, 2]))]
        bounds = [f"({self.bound(-2, self.number(-2, 1))}, {self.bound(self.number(0, 1), n)})" for n in extents]
        name = self.fresh("r")
        names = ", names='a b'" if len(extents) == 2 and self.chance(30) else ""
        self.lines.append(f"{name} = pt.RDom({', '.join(bounds)}{names})")
        loops = (f"{name}.a", f"{name}.b") if names else tuple(f"{name}[{k}]" for k in range(len(extents)))
        return name, loops, prod(extents)

    def bound(self, least: int, most: int) -> str:
        """`most`, or a value from `least` to `most` that depends on Params."""
        if not self.params or least > most or self.chance(85):
            return str(most)
        return f"pt.cast('int32', pt.clamp({self.cast(self.exact_int(SCALAR), INT32, SCALAR).text}, {least}, {most}))"

    def image_domain(self) -> tuple[str, tuple[str, ...], RawInput]:
        """A domain over the extents of an input, or over a part of it that may be empty."""
        raw = self.pick(self.raw)
        name = self.fresh("r")
        forms = [*["(0, {n})"] * 7, "({n} // 2, {n} - {n} // 2)", "(0, {n} // 3)", "(1, {n} - 1)", "(1, {n} - 2)"]
        # The number of channels may be stated to be 1, and an extent of 1 - 2 would be rejected.
        kinds = [forms if k < 2 else forms[:-1] for k in range(raw.ndim)]
        bounds = ", ".join(self.pick(of).format(n=f"{raw.name}.shape[{k}]") for k, of in enumerate(kinds))
        self.lines.append(f"{name} = pt.RDom({bounds})")
        return name, tuple(f"{name}[{k}]" for k in range(raw.ndim)), raw

    def restricted(self, name: str, loops: tuple[str, ...], pure: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """The domain, sometimes restricted to some of its points by a condition."""
        if not self.chance(25):
            return name, loops
        where = condition(self, Scope(pure, loops, self.pick([0, 1, 1, 2])))
        other = self.fresh("r")
        self.lines.append(f"{other} = {name}.where({where.text})")
        return other, tuple(loop.replace(name, other, 1) for loop in loops)
