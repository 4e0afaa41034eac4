"""The result of a rewrite, and the context that it runs in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..expr.nodes import Expr
from ..graph.names import derived, first_free
from ..graph.nodes import Graph, Stage
from .overcompute import reaches_beyond


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
