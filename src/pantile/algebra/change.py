"""The result of a rewrite, and the context that it runs in.

The context knows whether an expression may be computed outside of its required region, however far along a dim:

    pt.edge(img)[y - 3, x]    along y: yes, what is read of img is clamped
    img[y - 3, x]             no

The stages that it reads are computed farther, too; reads of an input, or of a stage with a stated domain, must not
depend on how far.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..analysis.interval import EVERYTHING, interval
from ..dataclass import dataclass
from ..errors import InternalError
from ..expr.nodes import Cast, Const, Expr, Load, Op
from ..expr.visit import names, walk_loads, walk_values
from ..graph.names import derived, first_free
from ..graph.nodes import Definition, Graph, ReductionDim, Stage
from ..schedule.updates import keeps_to

Moving = frozenset[str]  # unbounded dims
# The cost of storing a vector and loading it again when it may have left the cache.
STORED = 24


@dataclass(frozen=True, eq=False)
class Change:
    """The stages that replace one stage, which is the last of them, and the operations per value before and after."""

    stages: tuple[Stage, ...]
    what: str  # "a sum of 17 x 17 terms as rows and columns"
    before: int
    after: int

    def __str__(self) -> str:
        *made, stage = self.stages
        new = ", ".join(f"{s.name}[{', '.join(s.dims)}]" for s in made)
        return f"  {stage.name}: {self.what}: {self.before} -> {self.after} operations per value; new: {new}"


def only_update(stage: Stage) -> Definition | None:
    """The only update of a stage of one value, if it runs everywhere over loops with constant bounds."""
    if len(stage.updates) != 1 or len(stage.dtypes) != 1:
        return None
    (update,) = stage.updates
    is_constant = all(isinstance(e, Const) for r in update.domain for e in (r.min, r.extent))
    is_everywhere = update.condition is None and keeps_to(stage, update, stage.dims)
    return update if is_constant and is_everywhere else None


def extent(r: ReductionDim) -> int:
    """The extent of a loop of such an update."""
    if not isinstance(r.extent, Const):
        raise InternalError(f"loop {r.name} of a rewritten window has no constant extent")
    return int(r.extent.value)


def low(r: ReductionDim) -> int:
    """The first iteration of a loop with constant bounds."""
    if not isinstance(r.min, Const):
        raise InternalError(f"loop {r.name} of a rewritten window has no constant minimum")
    return int(r.min.value)


class RewriteContext:
    """The pipeline around a stage."""

    def __init__(self, graph: Graph, strict: bool) -> None:
        self.strict = strict
        self._tables = {i.name: i.table for i in graph.inputs if i.table is not None}
        self.scalars = frozenset(p.name for p in graph.params)
        self._graph = graph
        self._taken = {*graph.input, *graph.stage, *self.scalars}

    def fresh(self, stage: str, kind: str) -> str:
        """A new name for a stage that is made for another."""
        name = first_free(derived(stage, kind), self._taken)
        self._taken.add(name)
        return name

    def reaches_beyond(self, value: Expr, dim: str) -> bool:
        """Whether a value is computable anywhere along a dim."""
        return reaches_beyond(self._graph, value, dim)

    def table(self, name: str) -> np.ndarray[Any, np.dtype[Any]] | None:
        """The elements of an input that is a constant table, or None."""
        return self._tables.get(name)


def reaches_beyond(graph: Graph, value: Expr, dim: str) -> bool:
    """Whether a value is computable anywhere along a dim."""
    pending: list[tuple[Iterable[Expr], Moving]] = [([value], frozenset({dim}))]
    seen: set[tuple[str, Moving]] = set()
    while pending:
        roots, moving = pending.pop()
        for load in walk_loads(*roots):
            far = [k for k, i in enumerate(load.indices) if _is_far(i, moving)]
            producer = graph.producer.get(load.buffer)
            if not far:
                continue
            if producer is None or producer.domain is not None:
                return False
            query = producer.name, frozenset(producer.dims[k] for k in far)
            if query not in seen:
                seen.add(query)
                pending += [(d.expressions, query[1]) for d in producer.definitions]
    return True


def _is_far(index: Expr, moving: Moving) -> bool:
    return not names(index).isdisjoint(moving) and not interval(index, dict.fromkeys(moving, EVERYTHING)).bounded


def operations(value: Expr) -> int:
    """The number of arithmetic operations, conversions and loads of an expression, without index arithmetic."""
    return sum(isinstance(e, (Cast, Op, Load)) for e in walk_values(value))
