"""Expand: a reduction whose loops are all unrolled inside those of the pure definition becomes part of that definition.

before:  for x: f[x] = 0; unrolled for r in 0..3: f[x] += img[x + r]
after:   for x: f[x] = 0 + img[x] + img[x + 1] + img[x + 2]

(graph + plan -> graph + plan, in which the stage has no update)
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.inlining import as_expression
from ..graph.nodes import Graph
from ..schedule.plan import Plan


def expand(graph: Graph, plan: Plan) -> tuple[Graph, Plan]:
    """Write out reductions whose loops are all unrolled, as part of the pure definition."""
    unrolled = [s.name for s in graph.stages if plan.stages[s.name].is_written_out]
    stages = tuple(as_expression(s) if s.name in unrolled else s for s in graph.stages)
    pure = {name: replace(plan.stages[name], nests=plan.stages[name].nests[:1], within={}) for name in unrolled}
    return replace(graph, stages=stages), replace(plan, stages={**plan.stages, **pure})
