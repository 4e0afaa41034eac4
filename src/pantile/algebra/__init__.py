"""Algebra before the search: graph -> a graph that computes the same with fewer operations.

It runs only if no schedule is written by hand, because such a schedule names the stages of the formulas. Each rewrite
is a file with one exported function from a stage to the stages that replace it; it reports what it changed and what
that saves, and keeps the formula if nothing is saved. Integers stay the same; floats are summed in another order, which
`strict` forbids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..dataclass import dataclass
from ..graph.nodes import Graph, Stage
from ..graph.verify import verified
from .change import Change, RewriteContext
from .halve_rows import halve_rows
from .separate_taps import separate_taps
from .separate_weights import separate_weights
from .separate_windows import separate_windows

__all__ = ["RewrittenGraph", "rewritten"]

_REWRITES: tuple[Callable[[Stage, RewriteContext], Change | None], ...] = (
    separate_windows,
    separate_weights,
    separate_taps,
    halve_rows,
)


@dataclass(frozen=True, eq=False)
class RewrittenGraph:
    """The graph to compute, and the changes by which it was derived from the user's."""

    graph: Graph
    changes: tuple[Change, ...] = ()

    @property
    def made(self) -> frozenset[str]:
        """The stages that rewrites have added."""
        return frozenset(s.name for c in self.changes for s in c.stages[:-1])

    def __str__(self) -> str:
        return "\n".join(["algebra (algebra=False computes the formulas as written):", *map(str, self.changes)])


def rewritten(graph: Graph, strict: bool) -> RewrittenGraph:
    """Rewrite a pipeline to use fewer operations. With `strict`, floats are computed as written."""
    context = RewriteContext(graph, strict)
    changes: list[Change] = []
    stages: list[Stage] = []
    pending = list(reversed(graph.stages))
    while pending:
        stage = pending.pop()
        change = next((c for rewrite in _REWRITES if (c := rewrite(stage, context)) is not None), None)
        if change is None:
            stages.append(stage)
        else:
            changes.append(change)
            pending += reversed(change.stages)
    if not changes:
        return RewrittenGraph(graph)
    return RewrittenGraph(verified(replace(graph, stages=tuple(stages)), "algebra"), tuple(changes))
