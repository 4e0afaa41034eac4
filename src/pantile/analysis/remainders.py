"""Remainders as code sees them: coordinates are names there, so that `x % 4` is any of 0 .. 3 wherever x is.

A stage that is stored is computed at all of these, even in a call so small that it needs fewer of them:

    out[x] = f[x % 4]        of two columns, f is needed at 0 .. 1, and computed at 0 .. 3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..dataclass import dataclass
from ..expr.nodes import Expr, Op, Var
from ..expr.visit import key, loaded, names, transform, walk
from ..graph.nodes import Definition, Graph
from .interval import Interval, Scope, interval


@dataclass(frozen=True)
class AnyRemainders:
    """A graph that has names in the place of remainders of coordinates, and the divisors by these names."""

    graph: Graph
    divisors: Mapping[str, Expr]

    def scope(self, scalars: Scope) -> dict[str, Interval]:
        """The scalars of a call, and the ranges of all remainders."""
        return {**scalars, **{name: _range(interval(by, scalars)) for name, by in self.divisors.items()}}


def any_remainders(graph: Graph) -> AnyRemainders | None:
    """The graph with names for the remainders of coordinates in its places; None if it has none."""
    if not any(_is_remainder(e) for s in graph.stages for d in s.definitions for e in _in_places(d)):
        return None
    scalars = {p.name for p in graph.params} | {i.extent(k) for i in graph.inputs for k in range(i.ndim)}
    divisors: dict[bytes, tuple[str, Expr]] = {}

    def renamed(e: Expr) -> Expr | None:
        if not isinstance(e, Op) or not _is_remainder(e) or not names(e.args[1]) <= scalars or loaded(e.args[1]):
            return None
        if names(e.args[0]) <= scalars:
            return None
        name, _ = divisors.setdefault(key(e), (f"%{len(divisors)}", e.args[1]))
        return Var(e.dtype, e.lanes, name)

    memo: dict[int, Expr] = {}

    def of(d: Definition) -> Definition:
        indices, values = (tuple(transform(e, renamed, memo) for e in part) for part in (d.indices, d.values))
        condition = None if d.condition is None else transform(d.condition, renamed, memo)
        return replace(d, indices=indices, values=values, condition=condition)

    stages = tuple(replace(s, pure=of(s.pure), updates=tuple(map(of, s.updates))) for s in graph.stages)
    return AnyRemainders(replace(graph, stages=stages), dict(divisors.values())) if divisors else None


def _in_places(d: Definition) -> Iterator[Expr]:
    return walk(*d.indices, *(i for load in d.loads for i in load.indices))


def _is_remainder(e: Expr) -> bool:
    return isinstance(e, Op) and e.op == "mod" and e.dtype.is_int


def _range(by: Interval) -> Interval:
    """All remainders of a divisor that is a number in a call."""
    return Interval(min(by.low + 1, 0), max(by.high - 1, 0))
