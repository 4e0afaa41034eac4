"""Inline: graph + plan -> graph without the stages that have no loops of their own (see `analysis.inlining`)."""

from __future__ import annotations

from ..analysis.inlining import substituted
from ..graph.nodes import Graph
from ..schedule.plan import Plan


def inline(graph: Graph, plan: Plan) -> Graph:
    """The graph with only the planned stages, the others substituted into their consumers."""
    return substituted(graph, [s.name for s in graph.stages if s.name not in plan.stages])
