"""The sites at which the plan computes and stores stages, and the order of the stages at each site."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph.nodes import Graph, Stage
from ...schedule.plan import Plan, Site
from ..names import loop_name
from .order import execution_order


class Sites:
    """The sites of a plan; None is the one outside of all loops."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._graph, self._plan = graph, plan
        self._companions: dict[str, list[str]] = {}
        for p in plan.stages.values():
            if p.with_stage is not None:
                self._companions.setdefault(p.with_stage, []).append(p.name)
        self.order = execution_order(graph, plan)
        self._at = self._stages_at()
        # The variables of both loops of stages that are stored outside of the loop they are computed in.
        self.stored_outside = [
            (self.variable(p.compute), None if p.store is None else self.variable(p.store))
            for p in plan.stages.values()
            if p.compute is not None and p.compute != p.store
        ]

    def _stages_at(self) -> dict[Site | None, list[Stage]]:
        stages: dict[Site | None, list[Stage]] = {}
        for stage in reversed(self.order):
            p = self._plan.stages[stage.name]
            if p.with_stage is None:
                stores = [self._plan.stages[m.name].store for m in self.members(stage)]
                for site in dict.fromkeys([p.compute, *p.also, *stores]):
                    stages.setdefault(site, []).append(stage)
        return stages

    def at(self, site: Site | None) -> list[Stage]:
        """The stages with loops of their own that are computed or stored at a site, the last one to run first."""
        return self._at.get(site, [])

    def companions(self, name: str) -> list[str]:
        """The stages that run in the stage's loops (compute_with)."""
        return self._companions.get(name, [])

    def members(self, stage: Stage) -> list[Stage]:
        """The stage and its companions."""
        return [stage, *(self._graph.stage[name] for name in self.companions(stage.name))]

    def stored_at(self, site: Site | None, stage: Stage) -> Iterator[Stage]:
        """The stage and companions whose storage begins at a site; outputs have theirs already."""
        for m in self.members(stage):
            if self._plan.stages[m.name].is_stored_at(site) and m.name not in self._graph.output:
                yield m

    def variable(self, site: Site) -> str:
        """The loop variable of a site."""
        return loop_name(self._graph.stage[site.stage], site.definition, site.loop)
