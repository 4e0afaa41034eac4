"""The same pipeline with some stages substituted into their consumers: graph + names -> graph without them.

before:  gray[y, x] = img[y, x, 0] + img[y, x, 1];  out[y, x] = gray[y, x - 1] + gray[y, x + 1]
after:   out[y, x] = (img[y, x - 1, 0] + img[y, x - 1, 1]) + (img[y, x + 1, 0] + img[y, x + 1, 1])

A stage whose only update accumulates over a small constant domain is expanded point by point.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import replace

from ..errors import InternalError
from ..expr.build import select
from ..expr.nodes import Const, Expr, Load, const
from ..expr.types import INDEX
from ..expr.visit import key, loaded, substitute, transform
from ..graph.nodes import Definition, Graph, Stage
from .regions import expressions


def substituted(graph: Graph, names: Collection[str]) -> Graph:
    """The graph without the named stages, which can all be inlined."""
    values = _Inlined(graph)
    kept = []
    for stage in graph.stages:
        stage = values.rewrite(stage)
        if stage.name in names:
            values.add(stage)
        else:
            kept.append(stage)
    return replace(graph, stages=tuple(kept))


class _Inlined:
    """The values of inlined stages, and their uses, shared between equal reads."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.stages: dict[str, tuple[Stage, tuple[Expr, ...]]] = {}
        self.uses: dict[tuple[object, ...], Expr] = {}

    def add(self, stage: Stage) -> None:
        values = _closed_form(stage)
        for which, buffer in enumerate(stage.buffers):
            self.stages[buffer] = (stage, (values[which],))

    def rewrite(self, stage: Stage) -> Stage:
        if not any(b in self.stages for d in stage.definitions for e in expressions(d) for b in loaded(e)):
            return stage
        memo: dict[int, Expr] = {}

        def visit(e: Expr) -> Expr:
            return transform(e, self.use, memo)

        def definition(d: Definition) -> Definition:
            condition = None if d.condition is None else visit(d.condition)
            return replace(d, indices=tuple(map(visit, d.indices)), values=tuple(map(visit, d.values)),
                           condition=condition)  # fmt: skip

        return replace(stage, pure=definition(stage.pure), updates=tuple(map(definition, stage.updates)))

    def use(self, e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer not in self.stages:
            return None
        stage, (value,) = self.stages[e.buffer]
        wanted = (e.buffer, *(key(i) for i in e.indices))
        if wanted not in self.uses:
            self.uses[wanted] = substitute(value, _at(stage, e.indices))
        return self.uses[wanted]


def _at(stage: Stage, indices: tuple[Expr, ...]) -> Mapping[str, Expr]:
    return dict(zip(stage.dims, indices, strict=True))


def _closed_form(stage: Stage) -> tuple[Expr, ...]:
    """The values of the stage as expressions of its dims, its reductions written out."""
    values = stage.pure.values
    for d in stage.updates:
        for point in _points(stage, d):
            values = _apply(stage, d, point, values)
    return values


def _points(stage: Stage, d: Definition) -> list[tuple[int, ...]]:
    ranges = []
    for r in d.domain:
        if not (isinstance(r.min, Const) and isinstance(r.extent, Const)):
            raise InternalError(f"{stage.name} cannot be inlined: {r.name} has no constant extent")
        ranges.append(range(int(r.min.value), int(r.min.value) + int(r.extent.value)))
    return list(itertools.product(*ranges))


def _apply(stage: Stage, d: Definition, point: tuple[int, ...], before: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The values after one step of the update."""
    at = {r.name: const(v, INDEX) for r, v in zip(d.domain, point, strict=True)}
    own = dict(zip(stage.buffers, before, strict=True))

    def step(e: Expr) -> Expr:
        return transform(substitute(e, at), lambda n: own.get(n.buffer) if isinstance(n, Load) else None)

    after = tuple(step(v) for v in d.values)
    if d.condition is None:
        return after
    holds = step(d.condition)
    return tuple(select(holds, a, b) for a, b in zip(after, before, strict=True))


