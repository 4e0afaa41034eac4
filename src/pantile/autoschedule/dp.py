"""dp: fusion by dynamic programming, with tile sizes from a cost model (Jangda and Bondhugula, polymage-plus §3-6).

The steps, and where they are:
    alignment and scaling to constant dependence vectors      alignment (analysis.alignment)
    Algorithms 1 and 5, grouping                              grouping, bounded_grouping
    Algorithms 2 and 4, cost and tile sizes of a group        tile_model with terms, on overlapped_tiles
    Algorithm 3, expression inlining inside the cost          expression_inlining
    §5.2, parallelogram tiles inside overlapped ones          parallelogram
    §5.3, intra-tile loop fusion                              loop_fusion
    Table 2, weights and other numbers of machines            dp_machines

Differences from the paper: a group has one live-out, since a stage is computed in one place; stages that are not
functions over known boxes (scatters, scans, data-dependent reads) are scheduled on their own, as PolyMage does with
reductions; pipelines for which the table of Algorithm 1 would grow too large are grouped with ever tighter bounds, or
greedily; pointwise producers of more than one operation are not repeated by stencils; a group of one stage has tiles
only if it gains from them (`fusion/stage_facts`), as with `polymage`; and three terms of the cost are scaled (see
`dp_machines`), unless they are requested as printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated, ClassVar

from ..dataclass import dataclass
from ..machine.description import Cpu
from ..parameters import Count, OneOf, Weight
from .common.legalize import legal_choice
from .common.marking import Part, Style
from .common.tiles import TiledGroup, scheduled
from .fusion.alignment import StageGraph
from .fusion.bounded_grouping import MOST_MERGED, Grouping, greedily, grouped
from .fusion.dp_machines import PRINTED, SCALED, TERMS, Weights, limits_for, weights_for
from .fusion.expression_inlining import FULL, INLININGS, NONE
from .fusion.grouping import MOST_PARTITIONED
from .fusion.loop_fusion import parallelograms, with_fused_loops
from .fusion.stage_facts import cropped, streams
from .fusion.tile_model import CostedGroup, TileModel
from .strategy import Found, GroupReport, Problem, Report, Strategy

FUSIONS = ("dp", "greedy")
STYLE = Style(vectors=2)  # as compilers vectorize PolyMage's loops: two vectors at a time


@dataclass(frozen=True)
class Dp(Strategy):
    """The weights of equation 2, the other parameters of Algorithms 2 and 5, and the switches of §7.4.3."""

    name: ClassVar[str] = "dp"
    w1: Weight | None = None
    w2: Weight | None = None
    w3: Weight | None = None
    w4: Weight | None = None
    innermost_tile_size: Count | None = None
    fusion: Annotated[str, OneOf(*FUSIONS)] = "dp"
    inlining: Annotated[str, OneOf(*INLININGS)] = FULL  # "pointwise": line 8 of Algorithm 3 only
    multi_level: bool = True
    loop_fusion: bool = True
    terms: Annotated[str, OneOf(*TERMS)] = SCALED  # of Algorithm 2
    group_limit: Count | None = None  # initialLimit of Algorithm 5; None: none, or what keeps below most_states
    step: Count | None = None  # of Algorithm 5; None: the same for later rounds
    most_states: Count = 2000  # per round; if there are more, groups are merged greedily

    def find(self, problem: Problem) -> Found:
        return self._for(problem.cpu)._find(problem)

    def _for(self, machine: Cpu) -> Dp:
        """The parameters, with those of the machine for the ones that are None."""
        weights, limits = weights_for(machine), limits_for(machine)
        chosen = {**asdict(weights), "innermost_tile_size": limits.innermost}
        return replace(self, **{k: v for k, v in chosen.items() if getattr(self, k) is None})

    def _find(self, problem: Problem) -> Found:
        before = problem.facts.trivial
        before += cropped(problem.inlined(before))
        stages = StageGraph(problem.inlined(before))
        model = self._model(stages, problem.cpu)
        grouping = self._grouping(stages, model)
        groups = [model.costed(g) for g in grouping.groups]
        inlined = (*before, *(name for g in groups for name in g.inlined))
        left = problem.inlined(inlined)
        groups = [_left_of(g, left) for g in groups if g.output in left.graph.stage]
        return self._scheduled(problem, left, groups, inlined, grouping)

    def _model(self, stages: StageGraph, machine: Cpu) -> TileModel:
        assert self.w1 is not None and self.w2 is not None and self.w3 is not None and self.w4 is not None
        assert self.innermost_tile_size is not None
        limits = replace(limits_for(machine), innermost=self.innermost_tile_size)
        weights = Weights(self.w1, self.w2, self.w3, self.w4)
        return TileModel(stages, limits, weights, self.inlining, self.multi_level, self.terms)

    def _grouping(self, stages: StageGraph, model: TileModel) -> Grouping:
        if self.fusion == "greedy":
            return greedily(stages.dag, model)
        return grouped(stages.dag, model, self.group_limit, self.step, self.most_states)

    def _scheduled(
        self, problem: Problem, left: Problem, groups: list[CostedGroup], inlined: tuple[str, ...], grouping: Grouping
    ) -> Found:
        """Return the schedule. A group whose shared loops or parallelograms are refused gets plain tiles."""
        plain = [_plain(left, g) for g in groups]
        refined = [self._refine(left, g, part) for g, part in zip(groups, plain, strict=True)]
        result, is_refined = legal_choice(problem, [part for part, _ in refined], plain, inlined)
        remarks = (of_group if is_best else () for is_best, (_, of_group) in zip(is_refined, refined, strict=True))
        reports = tuple(map(_report, groups, remarks))
        merges, states = grouping.merges, grouping.states
        searched = {"states explored": states} if merges is None else {"merges evaluated": merges}
        counts = {**searched, "stages": sum(1 + len(g.members) + len(g.inlined) for g in groups)}
        report = Report(
            self.name,
            problem.machine.name,
            asdict(self),
            reports,
            inlined,
            counts,
            (*self._bounds(grouping), *result.remarks),
        )
        return Found(result.schedule, report)

    def _refine(self, problem: Problem, group: CostedGroup, part: Part) -> tuple[Part, tuple[str, ...]]:
        remarks: tuple[str, ...] = ()
        if len(group.levels) > 1:
            part = parallelograms(problem, TiledGroup(group.output, group.members, group.levels), STYLE)
            remarks = ("tiles of level 2 are parallelograms",)
        if self.loop_fusion:
            part, shared = with_fused_loops(problem.graph, part)
            remarks += shared
        return part, remarks

    def _bounds(self, grouping: Grouping) -> Iterator[str]:
        """Remarks about what Algorithm 1 did not consider."""
        if grouping.merges is not None:
            bounds = f"groups were merged greedily, up to {MOST_MERGED} stages"
            yield bounds if self.fusion == "greedy" else f"more than {self.most_states} states: {bounds}"
        elif grouping.limits != (None,):
            first, *later = ("any number" if n is None else f"at most {n}" for n in grouping.limits)
            rounds = "".join(f", then of {bound} of those" for bound in later)
            yield f"Algorithm 5: groups of {first} stages{rounds}"
        if not grouping.has_all_partitions:
            yield f"of more than {MOST_PARTITIONED} successors, two partitions were considered"


def _left_of(group: CostedGroup, problem: Problem) -> CostedGroup:
    """A group after all inlining: without members that nothing reads any more, and without tiles that gain nothing."""
    members = tuple(m for m in group.members if m in problem.graph.stage)
    is_tiled = members or not streams(problem, group.output)
    return replace(group, members=members, levels=group.levels if is_tiled else ())


def _plain(problem: Problem, group: CostedGroup) -> Part:
    return scheduled(problem, TiledGroup(group.output, group.members, group.levels), STYLE)


def _report(group: CostedGroup, remarks: tuple[str, ...]) -> GroupReport:
    said = (*((f"inlined: {', '.join(group.inlined)}",) if group.inlined else ()), *remarks)
    said += (group.remark,) if group.remark else ()
    return GroupReport(group.output, group.members, group.levels, {"cost": group.cost, **group.terms}, said)


BASE = Dp(inlining=NONE, multi_level=False, loop_fusion=False)
# Strategies with other parameters, by name (see `variants`).
VARIANTS: dict[str, Strategy] = {
    # The configurations of §7.4.3: PolyMageDP, that with one part more, and PolyMage+G+TC.
    "dp-base": BASE,
    "dp-base+F": replace(BASE, loop_fusion=True),
    "dp-base+M": replace(BASE, multi_level=True),
    "dp-base+I": replace(BASE, inlining=FULL),
    "dp-greedy": Dp(fusion="greedy", loop_fusion=False),
    # The default, but with Algorithm 2 to the letter.
    "dp-printed": Dp(terms=PRINTED),
}
