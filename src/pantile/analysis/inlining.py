"""Inlining: substitutes stages into their consumers (graph + names -> graph without these stages).

before:  gray[y, x] = img[y, x, 0] + img[y, x, 1];  out[y, x] = gray[y, x - 1] + gray[y, x + 1]
after:   out[y, x] = (img[y, x - 1, 0] + img[y, x - 1, 1]) + (img[y, x + 1, 0] + img[y, x + 1, 1])

A stage whose only update accumulates over a small constant domain is expanded point by point.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..errors import InternalError
from ..expr.build import select
from ..expr.nodes import Const, Expr, Load, const
from ..expr.types import INDEX
from ..expr.visit import key, loaded, substitute, transform, walk_loads
from ..graph.nodes import Definition, Graph, Stage
from .regions import expressions


def substituted(graph: Graph, names: Collection[str]) -> Graph:
    """The graph with the named stages inlined. All of them must have a closed form."""
    others = [s.name for s in graph.stages if s.name not in names]
    return replace(graph, stages=tuple(rewritten(graph, names, others).values()))


def rewritten(graph: Graph, names: Collection[str], wanted: Collection[str]) -> dict[str, Stage]:
    """The wanted stages, with the named ones inlined."""
    inlined = _InlinedStages()
    stages: dict[str, Stage] = {}
    for stage in graph.stages:
        if stage.name in names:
            inlined.add(stage)
        elif stage.name in wanted:
            stages[stage.name] = inlined.rewrite(stage)
    return stages


def without_unread(graph: Graph) -> Graph:
    """The graph without dead stages, such as one that only an unused value of an inlined stage reads."""
    needed: set[str] = set(graph.output)
    for stage in reversed(graph.stages):
        if stage.name in needed:
            loads = frozenset().union(*(loaded(e) for d in stage.definitions for e in expressions(d)))
            needed |= {graph.producer[b].name for b in loads if b in graph.producer}
    return replace(graph, stages=tuple(s for s in graph.stages if s.name in needed))


Use = tuple[object, ...]  # a buffer, and the keys of the indices at which it is read


class _InlinedStages:
    """The values of inlined stages, and their uses, shared between equal reads.

    A use is expanded from the stage's original definition and the uses that it needs in turn, so that there is one
    expression per distinct read. (If values were expanded beforehand, they would be copied into each use. The copies
    would share nothing, and their number in a recurrence such as t[k] = 2*x*t[k - 1] - t[k - 2] would be a Fibonacci
    number.)
    """

    def __init__(self) -> None:
        self.stages: dict[str, tuple[Stage, Expr]] = {}
        self.uses: dict[Use, Expr] = {}

    def add(self, stage: Stage) -> None:
        for buffer, value in zip(stage.buffers, closed_form(stage), strict=True):
            self.stages[buffer] = (stage, value)

    def rewrite(self, stage: Stage) -> Stage:
        roots = [e for d in stage.definitions for e in expressions(d)]
        if not any(map(self._reads, roots)):
            return stage
        new = {id(old): e for old, e in zip(roots, self._expand(roots), strict=True)}
        return stage.changed(lambda d: d.changed(lambda e: new[id(e)]))

    def _expand(self, roots: Sequence[Expr]) -> list[Expr]:
        """Expand all reads of inlined stages in expressions. Pending uses are on an explicit stack, not Python's, since
        thousands of stages may be inlined."""
        stack: list[tuple[Use | None, Sequence[Expr]]] = [(None, roots)]
        while True:
            use, wanted = stack[-1]
            if use in self.uses:
                stack.pop()
                continue
            expanded, missing = self._attempt(wanted)
            if missing:
                stack += [(u, (value,)) for u, value in missing.items()]
            elif use is None:
                return expanded
            else:
                (self.uses[use],) = expanded
                stack.pop()

    def _attempt(self, wanted: Sequence[Expr]) -> tuple[list[Expr], dict[Use, Expr]]:
        """Expand expressions by the known uses. If some uses are missing, return the values to expand for them
        instead."""
        missing: dict[Use, Expr] = {}

        def change(e: Expr) -> Expr | None:
            if not isinstance(e, Load) or e.buffer not in self.stages or any(map(self._reads, e.indices)):
                return None
            use = (e.buffer, *map(key, e.indices))
            if use not in self.uses and use not in missing:
                stage, value = self.stages[e.buffer]
                missing[use] = substitute(value, point_of(stage, e.indices))
            return self.uses.get(use)

        for e in walk_loads(*wanted):  # collect what is missing before anything is rewritten
            change(e)
        if missing:
            return [], missing
        memo: dict[int, Expr] = {}
        return [transform(e, change, memo, self._reads) for e in wanted], missing

    def _reads(self, e: Expr) -> bool:
        return not self.stages.keys().isdisjoint(loaded(e))


def point_of(stage: Stage, indices: tuple[Expr, ...]) -> Mapping[str, Expr]:
    """The values of a stage's dims for a read at these indices."""
    return dict(zip(stage.dims, indices, strict=True))


def as_expression(stage: Stage) -> Stage:
    """The stage with its reductions unrolled into its pure definition."""
    return replace(stage, pure=replace(stage.pure, values=closed_form(stage)), updates=())


def closed_form(stage: Stage) -> tuple[Expr, ...]:
    """The values of the stage as expressions of its dims, with its reductions unrolled."""
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
    """The values after one iteration of the update."""
    iteration = {r.name: const(v, INDEX) for r, v in zip(d.domain, point, strict=True)}
    own = dict(zip(stage.buffers, before, strict=True))

    def step(e: Expr) -> Expr:
        return transform(substitute(e, iteration), lambda n: own.get(n.buffer) if isinstance(n, Load) else None)

    after = tuple(step(v) for v in d.values)
    if d.condition is None:
        return after
    holds = step(d.condition)
    return tuple(select(holds, a, b) for a, b in zip(after, before, strict=True))
