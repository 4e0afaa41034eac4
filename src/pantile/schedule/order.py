"""The order in which stages run."""

from __future__ import annotations

from collections.abc import Mapping

from ..graph.nodes import Graph, Stage
from .plan import Plan


def execution_order(graph: Graph, plan: Plan) -> list[Stage]:
    """Producers before consumers, where stages that share loops run at the same time."""
    host = {n: p.with_stage or n for n, p in plan.stages.items()}
    members: dict[str, list[Stage]] = {}
    for s in graph.stages:
        members.setdefault(host[s.name], []).append(s)
    needs = _groups_needed(graph, host)
    order: list[Stage] = []
    opened: set[str] = set()
    closed: set[str] = set()
    stack = [host[s.name] for s in reversed(graph.stages)]
    while stack:
        group = stack[-1]
        if group not in opened:
            opened.add(group)
            stack += [g for g in reversed(needs[group]) if g not in opened]
            continue
        stack.pop()
        if group not in closed:
            closed.add(group)
            order.extend(members[group])
    return order


def _groups_needed(graph: Graph, host: Mapping[str, str]) -> dict[str, list[str]]:
    """The groups that each group of stages sharing loops reads, in the order of the graph."""
    needs: dict[str, dict[str, None]] = {group: {} for group in host.values()}
    for s in graph.stages:
        for consumer in graph.consumers[s.name]:
            if host[consumer] != host[s.name]:
                needs[host[consumer]][host[s.name]] = None
    return {group: list(producers) for group, producers in needs.items()}
