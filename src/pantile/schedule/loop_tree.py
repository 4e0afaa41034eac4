"""The loops of a plan as a tree: the loops around every stage and definition, and the stages at every loop.

    out: strip > y > x;  blur_x at y of out, stored at strip

        around("blur_x")        strip, y: the loops around the site at which it is computed
        chain(("blur_x", 0))    strip, y, and the loops of blur_x: all loops around its innermost statement
        at(y of out)            blur_x

The tree has no extents. Lowering gives its loops symbolic bounds, and the cost model gives them the extents of a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..dataclass import cached_property, memoized
from ..errors import InternalError
from ..graph.nodes import Graph, Stage
from ..target.kinds import Kind
from .nest import LoopDraft
from .plan import Loop, Plan, Site

Chain = tuple[Site, ...]  # loops, outermost first
Leaf = tuple[str, int]  # a stage and the index of one of its definitions


class LoopChains:
    """The loops around stages and definitions, of a plan or of the drafts of one. Every answer is memoized."""

    def __init__(self) -> None:
        self._to: dict[Site, Chain] = {}

    def compute(self, name: str) -> Site | None:
        """Where a stage is computed: the first site if there are several, None for root."""
        raise InternalError("abstract")

    def loops(self, leaf: Leaf) -> Sequence[Loop | LoopDraft]:
        """The loops of a definition by name and kind, outermost first, including those that it shares."""
        raise InternalError("abstract")

    def host(self, leaf: Leaf) -> tuple[str, str] | None:
        """The stage in whose loops a definition runs and the last of these loops (compute_with), or None if it has its
        own loops. An update may run in the loops of its own pure definition."""
        raise InternalError("abstract")

    def around(self, name: str) -> Chain:
        """The loops around the site at which a stage is computed."""
        return self.to(self.compute(name))

    def to(self, site: Site | None) -> Chain:
        """The loops around a site, with its own loop last."""
        if site is None:
            return ()
        if site not in self._to:
            own = self.own_down_to((site.stage, site.definition), site.loop)
            self._to[site] = (*self.around(site.stage), *own)
        return self._to[site]

    @memoized
    def own(self, leaf: Leaf) -> Chain:
        """The loops of a definition. Shared loops belong to another stage or to the pure definition."""
        names, host = [loop.name for loop in self.loops(leaf)], self.host(leaf)
        shared = () if host is None else self.own_down_to((host[0], 0), host[1])
        return (*shared, *[Site(*leaf, n) for n in names[len(shared) :]])

    def own_down_to(self, leaf: Leaf, loop: str) -> Chain:
        """The loops of a definition down to one of them."""
        own = self.own(leaf)
        names = [s.loop for s in own]
        return own[: names.index(loop) + 1] if loop in names else ()

    @memoized
    def chain(self, leaf: Leaf) -> Chain:
        """All loops around the innermost statement of a definition."""
        return (*self.around(leaf[0]), *self.own(leaf))

    @memoized
    def kind(self, site: Site) -> Kind:
        """How the loop of a site runs."""
        loops = self.loops((site.stage, site.definition))
        return next(loop.kind for loop in loops if loop.name == site.loop)


class LoopTree(LoopChains):
    """The sites of a plan. None is the site outside of all loops."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        super().__init__()
        self.graph, self.plan = graph, plan

    def compute(self, name: str) -> Site | None:
        return self.plan.stages[name].compute

    def loops(self, leaf: Leaf) -> Sequence[Loop]:
        return self.plan.stages[leaf[0]].nests[leaf[1]].loops

    def host(self, leaf: Leaf) -> tuple[str, str] | None:
        name, k = leaf
        p = self.plan.stages[name]
        if k in p.within:
            return name, p.within[k]
        return None if p.with_stage is None or p.with_loop is None else (p.with_stage, p.with_loop)

    # ---- the stages at a site

    @cached_property
    def order(self) -> list[Stage]:
        """The stages in the order in which they run."""
        return execution_order(self.graph, self.plan)

    def at(self, site: Site | None) -> list[Stage]:
        """The stages with their own loops that are computed or stored at a site; the one that runs last comes first."""
        return self._stages_at.get(site, [])

    @cached_property
    def _stages_at(self) -> dict[Site | None, list[Stage]]:
        stages: dict[Site | None, list[Stage]] = {}
        for stage in reversed(self.order):
            p = self.plan.stages[stage.name]
            if p.with_stage is None:
                stores = [self.plan.stages[m.name].store for m in self.members(stage)]
                for site in dict.fromkeys([p.compute, *p.also, *stores]):
                    stages.setdefault(site, []).append(stage)
        return stages

    def companions(self, name: str) -> list[str]:
        """The stages that run in the loops of a stage (compute_with)."""
        return self._companions.get(name, [])

    @cached_property
    def _companions(self) -> dict[str, list[str]]:
        companions: dict[str, list[str]] = {}
        for p in self.plan.stages.values():
            if p.with_stage is not None:
                companions.setdefault(p.with_stage, []).append(p.name)
        return companions

    def members(self, stage: Stage) -> list[Stage]:
        """The stage and its companions."""
        return [stage, *(self.graph.stage[name] for name in self.companions(stage.name))]

    def stored_at(self, site: Site | None, stage: Stage) -> Iterator[Stage]:
        """The stage and its companions whose storage begins at a site. Outputs have storage already."""
        for m in self.members(stage):
            if self.plan.stages[m.name].is_stored_at(site) and m.name not in self.graph.output:
                yield m

    @cached_property
    def stored_outside(self) -> list[tuple[Site, Site | None]]:
        """The compute site and the store site of each stage that is computed inside of the loop at which it is
        stored."""
        stages = self.plan.stages.values()
        return [(p.compute, p.store) for p in stages if p.compute is not None and p.compute != p.store]


def execution_order(graph: Graph, plan: Plan) -> list[Stage]:
    """The stages, producers before consumers, with stages that share loops adjacent."""
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
    """For each group of stages that share loops, the groups that it reads, in the order of the graph."""
    needs: dict[str, dict[str, None]] = {group: {} for group in host.values()}
    for s in graph.stages:
        for consumer in graph.consumers[s.name]:
            if host[consumer] != host[s.name]:
                needs[host[consumer]][host[s.name]] = None
    return {group: list(producers) for group, producers in needs.items()}
