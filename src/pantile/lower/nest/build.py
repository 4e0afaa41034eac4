"""Build the loop nest: stages where the plan computes and stores them, from consumers to producers.

The memory of a stage holds its computed region and is allocated at the site that the plan gives:

before:  produce f over f.y.min..f.y.max; ...     after:  realize f: [f.y.min..f.y.max + 1] in memory of the plan's kind
                                                              produce f ...; ...

The kind of memory is that of the plan, including AUTO, which `flatten` resolves. `fold_storage` makes sliding dims
circular.

A stage may have versions of its loops under conditions, in which the compared scalars become constants:

before:  produce f: for f.x in 0..w: ...         after:  if w == 64: produce f: for f.x in 0..64: ...
                                                         else: produce f: for f.x in 0..w: ...
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import proxy

from ... import progress
from ...analysis.interval import Interval
from ...analysis.regions import Box
from ...dataclass import dataclass
from ...expr.build import logical_and
from ...expr.linear import Facts, simplify
from ...expr.nodes import Expr, const
from ...expr.types import INDEX
from ...expr.visit import substitute
from ...graph.nodes import Graph, Stage
from ...ir import visit as ir
from ...ir.nodes import Block, If, Let, Produce, Realize, Stmt
from ...schedule.loop_tree import LoopTree
from ...schedule.plan import Plan, Site, StagePlan
from ..conditions import assume, is_impossible
from ..contents import Contents
from ..coverage import Coverage
from ..names import region_names, site_variable
from .context import BuildContext
from .early import start_stages
from .loop_builder import LoopBuilder
from .regions import Region, Regions
from .required import Required
from .slide import LiveRows, SlideRequest, Sliding, slide


@dataclass(frozen=True)
class LoopNest:
    """The loop nest, the circular extents of folded dims, and the loops whose iterations depend on earlier ones."""

    body: Stmt
    folds: dict[str, dict[int, int]]
    ordered: set[str]


def build_nest(graph: Graph, checked: Graph, plan: Plan, facts: Facts, small: bool = False) -> LoopNest:
    """Build all loops, for small arrays if `small`. `checked` is the graph before stages were inlined."""
    builder = _StageBuilder(graph, plan, BuildContext(facts, Required(graph, checked, facts)), small)
    body = builder.stages_at(None, Block(()))
    return LoopNest(body, builder.rows.folds(), builder.loops.ordered)


class _StageBuilder:
    """Places stages around their consumers, each with its required region, its loops and its storage."""

    def __init__(self, graph: Graph, plan: Plan, context: BuildContext, small: bool) -> None:
        coverage = Coverage()
        self.graph, self.plan, self.context = graph, plan, context
        self.tree = LoopTree(graph, plan)
        self.regions = Regions(graph, context, coverage, Contents())
        self.rows = LiveRows(context.facts)
        self.computed: dict[str, Region] = {}  # stage -> region where it was computed last
        me = proxy(self)  # a cycle of builders would live until the garbage collector runs
        self.loops = LoopBuilder(
            self.tree,
            context,
            self.regions,
            coverage,
            self.rows,
            small,
            lambda site, body: me.stages_at(site, body),
        )
        self.built_stages: set[str] = set()  # stages whose loops have been built or are being built

    def stages_at(self, site: Site | None, body: Stmt) -> Stmt:
        """Return `body` together with the stages that are computed and stored at `site`."""
        for stage in self.tree.at(site):
            p = self.plan.stages[stage.name]
            if p.is_computed_at(site):
                body = self.compute(stage, p, body)
            for m in self.tree.stored_at(site, stage):
                box = self.regions.computed_box(m, body)
                if box is not None:
                    body = realize(
                        m, self.plan.stages[m.name], box, self.computed.get(m.name), self.context.facts, body
                    )
        return body

    def compute(self, stage: Stage, p: StagePlan, rest: Stmt) -> Stmt:
        """Compute the stage (and those fused into its loops) over the region that `rest` requires, then run `rest`."""
        self.built_stages.add(stage.name)
        progress.step(f"nest, stage {len(self.built_stages)} of {len(self.tree.order)}")
        members = self.tree.members(stage)
        box = self.regions.required_box(members, rest)
        if box is None:
            return rest
        sliding = self.sliding(members, p, box, rest)
        if sliding is not None:
            box = sliding.box
        conditions = self.regions.conditions(members, rest) if p.compute == p.store else []
        conditions += [c for m in members for c in self.regions.pixel_conditions(m)]
        if sliding is not None and sliding.never_negative:
            self.context.extents.learn(box[sliding.dim].high - box[sliding.dim].low + 1)
        regions = self.regions.clipped(members, box, rest, conditions)
        self.computed |= regions
        lets = [
            (*region_names(m, dim), side)
            for m in members
            for dim, side in zip(m.dims, regions[m.name].box, strict=True)
        ]
        for low, high, side in lets:
            self.context.computes(low, high, side)
        result = self.in_order(members, p.specializations, sliding, conditions, rest)
        for low, high, side in reversed(lets):
            result = Let(low.name, side.low, Let(high.name, side.high, result))
        return result

    def sliding(self, members: list[Stage], p: StagePlan, box: Box, rest: Stmt) -> Sliding | None:
        """Decide how the stages slide if they are stored outside of the loop that computes them."""
        if p.compute == p.store:
            return None
        sliding = None
        if not any(m.name in self.graph.output for m in members):
            between = self.context.loops_inside(None if p.store is None else site_variable(self.graph, p.store))
            request = SlideRequest(
                members,
                box,
                rest,
                self.context.values,
                self.regions.loop_ranges(),
                self.context.facts,
                lambda k: self.regions.is_computable(members, k),
            )
            sliding = slide(request, between)
        self.rows.computed(members, box, sliding)
        return sliding

    def in_order(
        self,
        members: list[Stage],
        versions: tuple[Expr, ...],
        sliding: Sliding | None,
        conditions: list[Expr],
        rest: Stmt,
    ) -> Stmt:
        """Return the stages' loops, predicated by the conditions, followed by `rest`."""
        stage = members[0]
        own_start = None if sliding is None else (sliding.loop, sliding.start)

        def loops() -> Stmt:
            return Produce(stage.name, self.loops.definitions(stage))

        produce, rest = start_stages(
            self.context.open, members, own_start, rest, lambda: specialized(versions, self.context, loops)
        )
        return Block((If(logical_and(*conditions), produce) if conditions else produce, rest))


def realize(stage: Stage, p: StagePlan, box: Box, region: Region | None, facts: Facts, body: Stmt) -> Stmt:
    """Allocate a box of the stage during `body`. `region` is the part that is computed at a time."""
    clipped = region.clipped if region is not None and p.compute == p.store else {}
    sides = tuple((side.low, _extent(side, clipped.get(k), facts)) for k, side in enumerate(box))
    for buffer, dtype in reversed(list(zip(stage.buffers, stage.dtypes, strict=True))):
        body = Realize(buffer, dtype, sides, p.memory, body)
    return body


def _extent(side: Interval, before: int | None, facts: Facts) -> Expr:
    """The extent of the memory along one dim. The extent before clipping is used if it is constant, since it is
    simpler."""
    return simplify(side.high - side.low + 1, facts) if before is None else const(before, INDEX)


def specialized(conditions: tuple[Expr, ...], context: BuildContext, build: Callable[[], Stmt]) -> Stmt:
    """Return one version of what `build` makes for each condition, tested in order, and the general one."""
    if not conditions:
        return build()
    condition, *others = conditions
    known, bounds = assume(condition, context.facts.bounds)
    if is_impossible(bounds):  # a version that never runs requires nothing of other stages
        return specialized(tuple(others), context, build)
    with context.no_sliding_outside():
        with context.version(bounds):
            version = build()
        version = ir.map_exprs(version, lambda e: substitute(e, known))
        return If(condition, version, specialized(tuple(others), context, build))
