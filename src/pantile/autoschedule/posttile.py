"""posttile: tiling before fusion, after Zhao and Di (post-tiling-fusion §III-IV).

Start-up fusion yields computation spaces (`spaces`). Only live-out spaces are tiled. What each tile reads of other
spaces, its upwards exposed data, gives those spaces their tile shapes:

    (2)  statement -> tile                  {S2(h, w, kh, kw) -> (h/T2, w/T3)}
    (3)  statement -> data it reads         {S2(h, w, kh, kw) -> A(h + kh, w + kw)}
    (4)  tile -> data, (2)^-1 . (3)         {(o0, o1) -> A(h', w') : T2 o0 <= h' < T2 o0 + KH + T2 - 1 and ...}
    (5)  data -> statement that writes it   {A(h, w) -> S0(h, w)}
    (6)  tile -> statement, (4) . (5)       {(o0, o1) -> S0(h, w) : T2 o0 <= h < T2 o0 + KH + T2 - 1 and ...}

(6) is an extension schedule: S0 is computed inside the tiles of S2, which overlap where (6) says so. Algorithm 2 makes
it an extension node below the band of tile loops and skips the original loops of S0. In our schedules that is
`compute_at` the innermost tile loop, which computes the box around what a tile reads (`tile_boxes`). So the cost model
and `explain` count boxes. If (6) is not a box, `explain` says so; if it consists of boxes that lie apart, the stage is
computed as copies (`copies`).

On GPUs (§V) tiles are blocks of threads, which keep these boxes in shared memory, or in registers if no two threads
read the same value. `shapes/cpu_tiles` and `shapes/gpu_tiles` have what depends on the machine.

Other differences from the paper: tile sizes, which it takes from an auto-tuner, come from a model (`tile_time`,
`block_time`). A space is not fused if overlapping tiles would recompute too much of it, or store more than L2 or a
block holds: for Table I, Algorithm 1 puts all of a pyramid into one group, however often tiles repeat its coarse
levels. The whole list is in docs/autoschedule.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import Annotated, ClassVar

import islpy as isl

from ..analysis.polyhedra import AffineStatement, box_set, simplified
from ..dataclass import dataclass
from ..errors import UserError
from ..parameters import Amount, Count, OneOf, Weight
from ..target.gpu import MOST_THREADS
from .common.legalize import LegalSchedule, legal_choice
from .common.marking import Part
from .common.tiles import scheduled
from .shapes.copies import copies
from .shapes.cpu_tiles import CpuTiles
from .shapes.fused_space import FusedSpace
from .shapes.gpu_tiles import GpuTiles
from .shapes.spaces import PolyhedralProgram, Space, inlined_at_startup, spaces
from .shapes.tile_time import FusedWork, FusionLimits, instructions
from .shapes.tiling_rules import TilingRules
from .strategy import Found, GroupReport, Problem, Report, Strategy

POSTTILE, MINFUSE = FUSIONS = ("posttile", "minfuse")


@dataclass(frozen=True)
class PostTile(Strategy):
    """`tile_sizes`: those of the live-outs' tiled dims, outermost first; None: the best of 7 sizes along each (Table
    I)."""

    name: ClassVar[str] = "posttile"
    for_gpus: ClassVar[bool] = True

    tile_sizes: tuple[Count, ...] | None = None
    candidates: tuple[Count, ...] = (8, 16, 32, 64, 128, 256, 512)
    # The limits of instructions that are repeated in the overlaps of tiles, relative to those of a group and of one
    # space. Tuned on a Neoverse N1 and the apps of docs/results.md, with none held out.
    most_recomputed: Weight = 0.25
    most_recomputed_of_one: Weight = 4.0
    # The most loops that are tiled and stay parallel: a limit on m of Algorithm 1. The paper allows 1 on CPUs; None: no
    # limit.
    parallel_loops: Amount | None = None

    # Bytes of intermediate values per tile; None: a core's part of L2, or the shared memory of a block.
    most_stored: Weight | None = None
    fusion: Annotated[str, OneOf(*FUSIONS)] = POSTTILE  # or minfuse, the baseline of §VI, which fuses nothing
    # The threads of a block of a GPU along the tiled dims, then along the others: the "GPU grid parameter" of Table I.
    threads: tuple[Count, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (count := prod(self.threads or ())) > MOST_THREADS:
            given = f"{type(self).__name__}(threads={self.threads})"
            raise UserError(
                f"{given}: these are {count:,} threads, and a block has {MOST_THREADS:,} at most; name fewer"
            )

    def find(self, problem: Problem) -> Found:
        apart = copies(problem, problem.graph.stage if self.fusion == MINFUSE else ())
        composed, inlined = _compose(self, apart.problem)
        while vain := apart.in_vain({*inlined, *(n for f in composed.fused for n in f.stages[:-1])}):
            apart = copies(problem, {*apart.whole, *vain})
            composed, inlined = _compose(self, apart.problem)
        most: dict[str, int] = {}
        while refused := _halved(composed, (directed := _Directed(composed, apart.problem, inlined)).result):
            most |= refused
            composed, inlined = _compose(self, apart.problem, most)
        groups = tuple(map(_group_report, composed.fused, directed.parts))
        counts = {"computation spaces": len(composed.spaces), "extension schedules": composed.extension_schedules}
        remarks = (*apart.remarks, *composed.remarks, *directed.result.remarks)
        report = Report(self.name, problem.machine.name, asdict(self), groups, tuple(inlined), counts, remarks)
        return Found(apart.added(directed.result.schedule), report)


def _compose(
    parameters: PostTile, problem: Problem, most_stages: Mapping[str, int] | None = None
) -> tuple[Composition, tuple[str, ...]]:
    """Algorithm 3 after the start-up fusion into common loop bodies, and the stages that this fusion inlines.
    `most_stages` limits the number of stages in the groups of some live-outs."""
    names = problem.facts.trivial
    program = PolyhedralProgram(problem.inlined(names))
    if parameters.fusion == MINFUSE:
        return minfuse(_rules(parameters, program, {}), program), names
    joined = inlined_at_startup(program)
    if joined:
        names = (*names, *(s.name for s in program.stages if s.name in joined))
        program = PolyhedralProgram(problem.inlined(names))
    return reorder_tiling_and_fusion(_rules(parameters, program, most_stages or {}), program), names


def _rules(parameters: PostTile, program: PolyhedralProgram, most_stages: Mapping[str, int]) -> TilingRules:
    kind = GpuTiles if program.problem.target.has_blocks else CpuTiles
    return kind(parameters, program.problem, most_stages)


class _Directed:
    """The directives of groups, with stages in private memory of threads where that is legal (§V)."""

    def __init__(self, composed: Composition, problem: Problem, inlined: Sequence[str]) -> None:
        rules, fused = composed.rules, composed.fused
        plain = [scheduled(rules.problem, f.group, rules.style(f)) for f in fused]
        private = [rules.private(f, part) for f, part in zip(fused, plain, strict=True)]
        self.result, is_private = legal_choice(problem, private, plain, inlined)
        self.parts = [a if is_best else b for is_best, a, b in zip(is_private, private, plain, strict=True)]


def _halved(composed: Composition, result: LegalSchedule) -> dict[str, int]:
    """Half the number of stages of each group that was refused, for example because the size of a box is not a
    constant."""
    refused = [f for f, is_legal in zip(composed.fused, result.honoured, strict=True) if not is_legal]
    return {f.liveout.output: len(f.stages) // 2 for f in refused if len(f.stages) > len(f.liveout.stages)}


def _group_report(fused: FusedSpace, part: Part) -> GroupReport:
    group = fused.group
    costs = {"parallel tile loops": len(fused.cut), "recomputed": fused.recomputed}
    remarks = [*map(fused.shown, fused.repeated), *fused.remarks]
    if fused.program.problem.target.has_blocks and group.tiles:
        private = [chain.name for chain in part if "store_in" in chain.verbs and chain.name in group.members]
        costs["shared bytes"] = sum(fused.stored(n) for n in group.members if n not in private)
        remarks += [f"private to threads: {', '.join(private)}"] if private else []
    return GroupReport(group.output, group.members, group.tiles, costs, tuple(remarks))


# ---- Algorithm 3: several live-outs


@dataclass(frozen=True)
class Composition:
    """All spaces in groups: the group of each live-out (the paper's GroupsSet)."""

    rules: TilingRules
    spaces: Sequence[Space]
    fused: tuple[FusedSpace, ...]
    remarks: tuple[str, ...]

    @property
    def extension_schedules(self) -> int:
        return sum(len(f.extensions) for f in self.fused)


def reorder_tiling_and_fusion(rules: TilingRules, program: PolyhedralProgram) -> Composition:
    """Algorithm 3. The recursion of Algorithm 1 on what it leaves untiled (lines 17 and 20) is this loop.

    All readers of a space that is left untiled are in groups already, so the space is a live-out of the remaining ones.
    """
    every = spaces(program)
    fused: list[FusedSpace] = []
    remarks: list[str] = []
    left = list(every)
    while left:
        liveouts = _live_outs(program, left)
        for liveout in liveouts:
            mine = _intermediate(program, liveout, liveouts, left)
            fused.append(construct_tile_shapes(rules, program, liveout, mine))
        done = {n for f in fused for n in f.stages}
        left = [s for s in left if s.output not in done]
        remarks += _sharing_remarks(program, fused, left)
    return Composition(rules, every, tuple(fused), tuple(remarks))


def minfuse(rules: TilingRules, program: PolyhedralProgram) -> Composition:
    """The most conservative heuristic (§VI): every stage is tiled on its own."""
    every = [Space((s.name,)) for s in program.stages]
    return Composition(rules, every, tuple(construct_tile_shapes(rules, program, s, ()) for s in every), ())


def _live_outs(program: PolyhedralProgram, left: Sequence[Space]) -> list[Space]:
    """The spaces whose values are used after all of these have been computed."""
    inside = {n for s in left for n in s.stages}
    consumers, outputs = program.problem.facts.consumers, program.problem.graph.output
    return [s for s in left if s.output in outputs or not inside.issuperset(consumers[s.output])]


def _intermediate(
    program: PolyhedralProgram, liveout: Space, liveouts: Sequence[Space], left: Sequence[Space]
) -> list[Space]:
    """Line 2: the spaces that a live-out needs, producers first."""
    needed, others = {*liveout.stages}, {s.output for s in liveouts}
    spaces = []
    for space in reversed(left):
        if space.output not in others and not needed.isdisjoint(program.problem.facts.consumers[space.output]):
            needed.update(space.stages)
            spaces.append(space)
    return spaces[::-1]


def _sharing_remarks(program: PolyhedralProgram, fused: Sequence[FusedSpace], left: Sequence[Space]) -> list[str]:
    """Lines 4-5 and 7: spaces that several live-outs share are computed once, on their own."""
    remarks = []
    for space in left:
        uses = {f.liveout.output: f.exposed[space.output] for f in fused if space.output in f.exposed}
        if len(uses) < 2:
            continue
        parts = [part.range() for part in uses.values()]
        common = any(not a.is_disjoint(b) for k, a in enumerate(parts) for b in parts[:k])
        why = "their parts of it intersect" if common else "no copy of it could be fused with its use"
        remarks.append(f"{space.output} is not fused: {' and '.join(uses)} share it, and {why}")
    return remarks


# ---- Algorithm 1: tile shapes from upwards exposed data


def construct_tile_shapes(
    rules: TilingRules, program: PolyhedralProgram, liveout: Space, intermediate: Sequence[Space]
) -> FusedSpace:
    """Algorithm 1 for one live-out space and the spaces that it needs. Those that are not fused are left to the
    caller."""
    problem = program.problem
    if why := rules.why_untiled(liveout):
        return FusedSpace(program, liveout, {}, liveout.stages, remarks=[f"not tiled: {why}"])
    m = rules.parallel_loops(liveout.output)  # line 4
    parallel = {s: min(len(problem.facts.tileable(n)) for n in s.stages) for s in intermediate}  # line 7
    why_not = {s: rules.why_left_out(s) for s in intermediate}
    able = _reachable(problem, liveout, [s for s in intermediate if parallel[s] >= m and not why_not[s]])
    tile = rules.tile(liveout, able)
    growing = _GrowingGroup(FusedSpace(program, liveout, tile, liveout.stages), rules.limits)
    growing.start()  # lines 3, 5 and 6
    for space in reversed(intermediate):
        if parallel[space] < m:  # line 8
            growing.leave(space, f"has {parallel[space]} parallel loops, the live-out space {m}")
        elif len(growing.fused.stages) + len(space.stages) > rules.most_stages.get(liveout.output, len(program.stages)):
            growing.leave(space, "code for more stages at a time is refused")
        elif why_not[space]:
            growing.leave(space, why_not[space])
        else:
            growing.extend(space)  # lines 9-16
    return growing.fused


def _reachable(problem: Problem, liveout: Space, able: Sequence[Space]) -> list[Space]:
    """The spaces that may come to be fused, producers first: only the live-out and others of them read these."""
    inside = {*liveout.stages}
    reachable = []
    for space in reversed(able):
        if inside.issuperset(problem.facts.consumers[space.output]):
            inside.update(space.stages)
            reachable.append(space)
    return reachable[::-1]


@dataclass
class _GrowingGroup:
    """The union of a live-out space and the spaces that were fused with it so far."""

    fused: FusedSpace
    limits: FusionLimits

    def start(self) -> None:
        """The tiling schedule of the live-out space (relations 1-4)."""
        f = self.fused
        for name in reversed(f.liveout.stages):
            f.load += FusedWork(instructions(f.program.problem.facts, name))
            if name == f.liveout.output:
                for t in f.program.statements[name]:
                    self._expose(t, f.tiling(t).reverse())
            else:
                self._extend(name)
                f.add(name)
                f.repeated[name] = self._repeated(name)

    def extend(self, space: Space) -> None:
        """Lines 9-16: an extension schedule for each statement of a space, if all its readers are in the group."""
        f, facts = self.fused, self.fused.program.problem.facts
        outside = [c for c in facts.consumers[space.output] if c not in f.stages]
        if outside:
            return
        before = dict(f.exposed), dict(f.extensions)
        repeated, more = {}, FusedWork()
        for name in reversed(space.stages):
            self._extend(name)
            f.add(name)
            repeated[name] = self._repeated(name)
            once, stored = instructions(facts, name), f.stored(name)
            times = f.computed.without_edges(name) / facts.points(name)
            more += FusedWork(once, once * max(0.0, times - 1), stored)
        if not self.limits.allow(f.load, more):
            f.exposed, f.extensions = before
            self.leave(space, self._why(more))
            return
        f.load += more
        f.stages, f.repeated = (*space.stages, *f.stages), repeated | f.repeated

    def _why(self, more: FusedWork) -> str:
        stored = self.fused.load.stored + more.stored
        if stored > self.limits.stored:
            return f"with it, a tile would store {stored / 1024:.0f} KB"
        return f"tiles would compute it {1 + more.again / more.once:.3g} times"

    def leave(self, space: Space, why: str) -> None:
        if all(c in self.fused.stages for c in self.fused.program.problem.facts.consumers[space.output]):
            self.fused.remarks.append(f"{space.output} is left out: {why}")

    # ---- relations

    def _expose(self, statement: AffineStatement, tiles: isl.Map) -> None:
        """(4), line 16: the data that the instances in each tile read."""
        exposed = self.fused.exposed
        for source, reads in statement.reads.items():
            more = simplified(tiles.apply_range(reads))
            exposed[source] = simplified(exposed[source].union(more)) if source in exposed else more

    def _extend(self, name: str) -> None:
        """(6), lines 11-16: the instances of each definition of a stage that each tile needs, and what these read."""
        program = self.fused.program
        needed = _with_carried(program, name, self.fused.exposed[name])
        for t in program.statements[name]:
            self.fused.extensions[t.name] = simplified(needed.apply_range(t.writes.reverse()))
            self._expose(t, self.fused.extensions[t.name])

    def _repeated(self, name: str) -> float:
        """How often tiles compute a point, on average."""
        return self.fused.computed.in_all(name) / self.fused.program.problem.facts.points(name)


def _with_carried(program: PolyhedralProgram, name: str, needed: isl.Map) -> isl.Map:
    """Extend a region to whole dims along which updates carry values from element to element, such as those of a
    scan."""
    stage = program.problem.graph.stage[name]
    carried = [k for k, d in enumerate(stage.dims) if d not in program.problem.facts.tileable(name)]
    for k in carried:
        needed = needed.project_out(isl.dim_type.out, k, 1).insert_dims(isl.dim_type.out, k, 1)
        needed = needed.set_tuple_name(isl.dim_type.out, name)
    domain = box_set(name, tuple(range(int(r.low), int(r.high) + 1) for r in program.problem.facts.boxes[name]))
    return needed.intersect_range(domain)
