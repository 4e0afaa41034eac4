"""Extents that are constant in all calls: graph + extents -> the graph with numbers in their place.

before:  input img: uint8[h, w, img.shape.2];  out[y, x, c] = ...;  output out: uint8[h, w, img.shape.2]
after:   input img: uint8[h, w, 3];            out[y, x, c] = ...;  output out: uint8[h, w, 3]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..expr.nodes import Expr, Var, const
from ..expr.types import INDEX
from ..expr.visit import transform
from .nodes import Definition, Graph, InputInfo, Output, ReductionDim, Stage
from .verify import verified


def with_extents(graph: Graph, known: Mapping[str, int]) -> Graph:
    """The graph for calls whose inputs have these extents, by name ("img.shape.2")."""
    return verified(_ExtentSubstitution(known).graph(graph), "known") if known else graph


class _ExtentSubstitution:
    def __init__(self, known: Mapping[str, int]) -> None:
        self.known = known
        self.memo: dict[int, Expr] = {}  # of expressions that the graph keeps alive

    def graph(self, graph: Graph) -> Graph:
        return replace(
            graph,
            inputs=tuple(map(self.input, graph.inputs)),
            stages=tuple(map(self.stage, graph.stages)),
            outputs=tuple(Output(o.stage, self.all_of(o.shape)) for o in graph.outputs),
        )

    def input(self, i: InputInfo) -> InputInfo:
        before = i.known or (None,) * i.ndim
        return replace(i, known=tuple(self.known.get(i.extent(k), n) for k, n in enumerate(before)))

    def stage(self, s: Stage) -> Stage:
        domain = None if s.domain is None else tuple((self.number(a), self.number(b)) for a, b in s.domain)
        return replace(s, pure=self.definition(s.pure), updates=tuple(map(self.definition, s.updates)), domain=domain)

    def definition(self, d: Definition) -> Definition:
        domain = tuple(ReductionDim(r.name, self.number(r.min), self.number(r.extent)) for r in d.domain)
        condition = None if d.condition is None else self.number(d.condition)
        return Definition(self.all_of(d.indices), self.all_of(d.values), domain, condition, d.where)

    def all_of(self, several: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(map(self.number, several))

    def number(self, e: Expr) -> Expr:
        return transform(e, self.extent, self.memo)

    def extent(self, e: Expr) -> Expr | None:
        return const(self.known[e.name], INDEX) if isinstance(e, Var) and e.name in self.known else None
