"""Resolve directives into the plan that lowering reads: pipeline + schedule -> pipeline + Plan.

This module decides whether a schedule can be honoured, except where that depends on regions (`lower/refuse.py`). See
`nest` for loops, `placement` for compute and store sites, and `strips`, `clones`, `panels` and `rfactor`, which rewrite
the pipeline: strips cuts scans, clone_in, copy_in and copy_out add copies, panels splits dims, and rfactor adds stages
of partial results. The amount of code that a schedule may request is limited: the copies, lanes and versions of each
statement, counting all loops around it.
"""

from __future__ import annotations

import math

from ..dataclass import memoized
from ..errors import InternalError, UserError, shown
from ..expr.nodes import Const
from ..graph.nodes import Graph
from ..graph.verify import verified
from ..target.description import GENERIC, Target
from ..target.kinds import WRITTEN_OUT, CacheOperator, Kind, Memory
from .clones import clone_stages
from .compute_with import share_own_loops
from .default import complete
from .directives import Directive
from .draft import Drafts, StageDraft
from .grid import check_grid
from .limits import MOST_COPIES, MOST_LANES, MOST_VALUES, MOST_VERSIONS
from .nest import LoopDraft, NestDraft, unknown_extent
from .panels import make_panels
from .placement import Placement
from .plan import HybridTile, Plan, PrefetchPlan, Site, StagePlan, StorageSplit
from .refuse import did_you_mean
from .rfactor import factor_reductions
from .schedule import Schedule
from .strips import cut_scans


def resolve(
    graph: Graph, schedule: Schedule, *, strict: bool = False, target: Target = GENERIC, known: Drafts | None = None
) -> tuple[Graph, Plan]:
    """The plan of a schedule, completed with defaults. Raises a UserError if the schedule cannot be honoured.

    `known` holds the drafts of other schedules of the same pipeline.
    """
    graph, schedule = _verify_rewrite("strips", graph, cut_scans(graph, schedule, strict))
    graph, schedule = _verify_rewrite("clones", graph, clone_stages(graph, schedule))
    graph, schedule = _verify_rewrite("panels", graph, make_panels(graph, schedule))
    before: Graph | None = None
    while graph is not before:  # the defaults of stages of partial results may factor them again
        before, whole = graph, complete(graph, schedule, target, strict=strict)
        schedule = whole if whole is schedule else schedule.replace(*whole.values())
        # Defaults may also cut scans, into stages some of which are copies.
        graph, schedule = _verify_rewrite("strips", graph, cut_scans(graph, schedule, strict))
        graph, schedule = _verify_rewrite("clones", graph, clone_stages(graph, schedule))
        graph, schedule = _verify_rewrite("rfactor", graph, factor_reductions(graph, schedule, strict))
    _check_stage_names(graph, schedule)
    schedule = complete(graph, schedule, target, strict=strict)
    known = known if known is not None and known.graph is graph else Drafts(graph, strict, target)
    drafts = known.of(schedule)
    share_own_loops(drafts)
    placement = Placement(graph, drafts)
    placement.check()
    check_sizes(drafts, placement)
    if target.has_blocks:
        check_grid(drafts, placement)
    stages = {name: _finish(s, placement) for name, s in drafts.items() if not s.is_inline}
    return graph, Plan(stages, target, schedule)


def _verify_rewrite(rewrite: str, before: Graph, after: tuple[Graph, Schedule]) -> tuple[Graph, Schedule]:
    """Verify the graph that a rewrite of the pipeline has made, unless it is unchanged."""
    graph, schedule = after
    return graph if graph is before else verified(graph, rewrite), schedule


def _check_stage_names(graph: Graph, schedule: Schedule) -> None:
    for s in schedule.values():
        if s.name not in graph.stage:
            where = s.directives[0].where if s.directives else None
            if s.name in graph.input:
                raise UserError(
                    f"{s!r}: {s.name!r} is an input, which has no loops and no memory of its own; ask for a copy of it "
                    f"by {s.head}.copy_in(consumer, name, *dims), and the rest of that",
                    where,
                )
            raise UserError(f"{s!r}: the pipeline has no stage {s.name!r}; {did_you_mean(s.name, graph.stage)}", where)


def _finish(s: StageDraft, placement: Placement) -> StagePlan:
    together = (None, None) if s.together is None else tuple(map(str, s.together.args))
    return StagePlan(
        name=s.stage.name,
        compute=placement.compute(s.stage.name),
        store=placement.store(s.stage.name),
        nests=s.finished,
        storage=tuple(s.storage),
        memory=Memory.AUTO if s.memory is None else Memory(s.memory.args[0]),
        hybrid=None if s.hybrid is None else _hybrid_tile(s, s.hybrid),
        folds={dim: int(d.args[1]) for dim, d in s.folds.items()},
        pads={dim: int(d.args[1]) for dim, d in s.pads.items()},
        storage_splits=tuple(_storage_split(d) for d in s.storage_splits),
        nontemporal=s.nontemporal is not None,
        ahead=0 if s.ahead is None else int(s.ahead.args[0]),
        prefetches=tuple(PrefetchPlan(str(d.args[0]), str(d.args[1]), int(d.args[2])) for d in s.prefetches),
        cached={buffer: CacheOperator(d.args[1]) for buffer, d in s.cached.items()},
        specializations=tuple(s.conditions),
        also=placement.sites(s.stage.name)[1:],
        with_stage=together[0],
        with_loop=together[1],
        within={k: str(d.args[1]) for k, d in s.within.items()},
        is_written_out=s.is_written_out,
    )


def _hybrid_tile(s: StageDraft, d: Directive) -> HybridTile:
    dim, first, *lanes = d.args
    shared = [x.name for x in s.nests[0].loops if x.kind is Kind.LANE]
    return HybridTile(str(dim), int(first), dict(zip(shared, map(int, lanes), strict=True)), d)


def _storage_split(d: Directive) -> StorageSplit:
    dim, outer, inner, factor = d.args
    return StorageSplit(str(dim), str(outer), str(inner), int(factor))


def check_sizes(drafts: dict[str, StageDraft], placement: Placement) -> None:
    """Refuse schedules that would take the compiler minutes."""
    sizes = _Sizes(drafts, placement)
    for s in drafts.values():
        if not s.is_inline:
            sizes.check_versions(s)
            for nest in s.nests:
                sizes.check_nest(s, nest)
                sizes.check_inferred(s, nest)


class _Sizes:
    def __init__(self, drafts: dict[str, StageDraft], placement: Placement) -> None:
        self.drafts = drafts
        self.placement = placement

    def check_nest(self, s: StageDraft, nest: NestDraft) -> None:
        if not any(x.kind in WRITTEN_OUT for x in nest.loops):
            return  # loops around it are checked with their own stages
        around = [self._loop(site) for site in self.placement.chain((s.stage.name, nest.index))]
        copies = math.prod(x.extent or 1 for x in around if x.kind is Kind.UNROLL)
        lanes = math.prod(x.extent or 1 for x in around if x.kind is Kind.VECTOR)
        d = next(x.mark for x in reversed(nest.loops) if x.kind in WRITTEN_OUT)
        if d is None:
            raise InternalError(f"{nest.title} of {s.stage.name} has a loop to write out that no directive marked")
        if lanes > MOST_LANES:
            raise s.no(d, f"vectors of {nest.title} would have {shown(lanes)} lanes", f"use at most {MOST_LANES}")
        if copies > MOST_COPIES:
            raise s.no(
                d,
                f"unrolled loops around it would make {shown(copies)} copies of {nest.title}",
                f"unroll to at most {MOST_COPIES} altogether",
            )
        if copies * lanes > MOST_VALUES:
            raise s.no(
                d,
                f"unrolled loops around it would make {copies} copies of {nest.title}, of {lanes} lanes each",
                f"unroll and vectorize to at most {MOST_VALUES} values altogether",
            )

    def _loop(self, site: Site) -> LoopDraft:
        return self._loops(site.stage, site.definition)[site.loop]

    @memoized
    def _loops(self, name: str, definition: int) -> dict[str, LoopDraft]:
        return {x.name: x for x in self.drafts[name].nests[definition].loops}

    def check_inferred(self, s: StageDraft, nest: NestDraft) -> None:
        """Refuse to unroll or vectorize a loop of unknown extent of a stage at root, since its extents depend on those
        of the outputs."""
        unknown = [x for x in nest.loops if x.kind in WRITTEN_OUT and x.extent is None and x.mark is not None]
        if not unknown or self.placement.compute(s.stage.name) is not None:
            return
        mark, constant = unknown[0].mark, any(isinstance(e, Const) for o in s.graph.outputs for e in o.shape)
        if mark is not None and not constant:
            raise unknown_extent(nest, mark, unknown[0])

    def check_versions(self, s: StageDraft) -> None:
        if s.specialized is None:
            return  # loops around it are checked with their own stages
        hosts = {site.stage: None for site in self.placement.around(s.stage.name)}
        versions = math.prod(1 + len(self.drafts[n].conditions) for n in (*hosts, s.stage.name))
        if versions > MOST_VERSIONS:
            raise s.no(
                s.specialized,
                f"there would be {shown(versions)} versions of {s.stage.name}",
                f"specialize for less, to at most {MOST_VERSIONS} altogether",
            )
