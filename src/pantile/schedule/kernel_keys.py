"""Keys that determine the kernels of each stage at root, so that schedules can be compared kernel by kernel.

    out: block yo, xo; blur_x at xo of out; edge inlined       out -> the directives of out, blur_x and edge,
                                                                      and how the memory of what they read is laid out

If two schedules of a pipeline have equal keys for a stage, they have the same kernels for it, as long as other stages
require the same region of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from ..graph.nodes import Graph
from .plan import Plan


def kernel_keys(graph: Graph, plan: Plan) -> dict[str, Hashable]:
    """The key of the kernels of each stage at root, by the stage's name."""
    members: dict[str, list[str]] = defaultdict(list)
    roots = {name: _root(plan, name) for name in plan.stages}
    for name, root in roots.items():
        members[root].append(name)
    return {root: _Key(graph, plan, roots, root).of(names) for root, names in members.items()}


def _root(plan: Plan, name: str) -> str:
    """The stage at root in whose loops a stage is computed."""
    while True:
        p = plan.stages[name]
        if p.with_stage is not None:
            name = p.with_stage
        elif p.compute is not None:
            name = p.compute.stage
        else:
            return name


class _Key:
    def __init__(self, graph: Graph, plan: Plan, roots: dict[str, str], root: str) -> None:
        self.graph, self.plan, self.roots, self.root = graph, plan, roots, root

    def of(self, members: list[str]) -> Hashable:
        """The directives of stages and of the stages inlined into them, and the memory layout of the other stages that
        they read."""
        parts, pending, seen = set[Hashable](), list(members), set(members)
        while pending:
            name = pending.pop()
            parts.add(self.plan.schedule[name])
            for source in self._sources(name):
                if source in seen:
                    continue
                seen.add(source)
                if source not in self.plan.stages:
                    pending.append(source)
                elif self.roots[source] != self.root:
                    parts.add(self._layout(source))
        return frozenset(parts)

    def _sources(self, name: str) -> Iterator[str]:
        """The stages that a stage reads."""
        for definition in self.graph.stage[name].definitions:
            for load in definition.loads:
                if load.buffer in self.graph.producer:
                    yield self.graph.producer[load.buffer].name

    def _layout(self, name: str) -> Hashable:
        p = self.plan.stages[name]
        return name, p.storage, p.memory, tuple(p.folds.items()), tuple(p.pads.items()), p.storage_splits
