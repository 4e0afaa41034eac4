"""Indices as compiled code sees them. In code, coordinates are symbolic, and of some expressions, only the range is
known: `x % 4` is any of 0 .. 3 whatever x is, and a shift of a byte by a param is any byte.

A stored stage is computed at all of these indices, even in a call so small that it needs only some of them:

    out[x] = f[x % 4]        for two columns, f is needed at 0 .. 1, but computed at 0 .. 3
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..dataclass import dataclass
from ..expr.nodes import Cast, Expr, Op, Var, coordinate
from ..expr.types import INDEX
from ..expr.visit import key, loaded, names, transform, walk
from ..graph.nodes import Definition, Graph, Stage
from .interval import Interval, Scalar, Scope, interval

_INEXACT = ("mod", "shl", "shr")  # index operations whose ranges may be wider in compiled code than in a call


@dataclass(frozen=True)
class StaticRanges:
    """A graph with variables in place of expressions of which compiled code knows only the range, and these ranges."""

    graph: Graph
    limits: Mapping[str, Interval]

    def scope(self, scalars: Scope) -> dict[str, Interval]:
        """The scope of a call: its scalars, and the ranges of the variables."""
        return {**scalars, **{name: _in_call(r, scalars) for name, r in self.limits.items()}}


def between_names(name: str) -> Interval:
    """The range of a coordinate in compiled code, with symbolic ends."""
    return Interval(coordinate(f"{name}.min"), coordinate(f"{name}.max"))


def in_code(graph: Graph) -> StaticRanges | None:
    """The graph as compiled code sees its indices; None if there is no difference to the check of a call."""
    if not any(_may_be_inexact(e) for s in graph.stages for d in s.definitions for e in walk(*_places(d))):
        return None
    limits: dict[bytes, tuple[str, Interval]] = {}
    stages = tuple(_RangeSubstitution(graph, s, limits).stage() for s in graph.stages)
    return StaticRanges(replace(graph, stages=stages), dict(limits.values())) if limits else None


class _RangeSubstitution:
    """Replaces the expressions of one stage of which compiled code knows only the range by variables."""

    def __init__(self, graph: Graph, stage: Stage, limits: dict[bytes, tuple[str, Interval]]) -> None:
        self._stage, self._limits = stage, limits
        self._scalars = {p.name for p in graph.params} | {i.extent(k) for i in graph.inputs for k in range(i.ndim)}
        coordinates = {*stage.dims, *(r.name for d in stage.definitions for r in d.domain)}
        self._scope = {name: between_names(name) for name in coordinates} | dict(limits.values())
        self._memo: dict[int, Expr] = {}

    def stage(self) -> Stage:
        return self._stage.changed(lambda d: d.changed(lambda e: transform(e, self._renamed, self._memo)))

    def _renamed(self, e: Expr) -> Expr | None:
        if not _may_be_inexact(e) or loaded(e) or names(e) <= self._scalars:
            return None
        r = interval(e, self._scope)
        if not r.bounded or not all(self._is_of_call(end) for end in (r.low, r.high)):
            return None
        name, _ = self._limits.setdefault(key(e), (f"%{len(self._limits)}", r))
        self._scope[name] = r
        return Var(e.dtype, e.lanes, name)

    def _is_of_call(self, end: Scalar) -> bool:
        """Whether an end does not depend on coordinates."""
        return not isinstance(end, Expr) or names(end) <= self._scalars


def _places(d: Definition) -> Iterable[Expr]:
    return (*d.indices, *(i for load in d.loads for i in load.indices))


def _may_be_inexact(e: Expr) -> bool:
    if not e.dtype.is_int:
        return False
    return isinstance(e, (Cast, Op)) if e.dtype is not INDEX else isinstance(e, Op) and e.op in _INEXACT


def _in_call(r: Interval, scalars: Scope) -> Interval:
    low, high = (interval(end, scalars) if isinstance(end, Expr) else Interval.point(end) for end in (r.low, r.high))
    return Interval(low.low, high.high)
