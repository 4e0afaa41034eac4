"""The order in which stages run."""

from __future__ import annotations

from ..graph.nodes import Graph, Stage
from ..schedule.plan import Plan


def execution_order(graph: Graph, plan: Plan) -> list[Stage]:
    """Producers before consumers, where stages that share loops run at the same time."""
    host = {n: p.with_stage or n for n, p in plan.stages.items()}
    order: list[Stage] = []
    done: set[str] = set()

    def visit(group: str) -> None:
        if group not in done:
            done.add(group)
            members = [s for s in graph.stages if host[s.name] == group]
            for s in graph.stages:
                if host[s.name] != group and any(m.name in graph.consumers[s.name] for m in members):
                    visit(host[s.name])
            order.extend(members)

    for s in graph.stages:
        visit(host[s.name])
    return order
