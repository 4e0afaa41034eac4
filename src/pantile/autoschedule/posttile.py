"""posttile: tiling before fusion, after Zhao and Di (post-tiling-fusion §III-IV).

Start-up fusion gives computation spaces (`spaces`). Only live-out spaces are tiled. What each tile reads of other
spaces, its upwards exposed data, gives those spaces their tile shapes:

    (2)  statement -> tile                  {S2(h, w, kh, kw) -> (h/T2, w/T3)}
    (3)  statement -> data it reads         {S2(h, w, kh, kw) -> A(h + kh, w + kw)}
    (4)  tile -> data, (2)^-1 . (3)         {(o0, o1) -> A(h', w') : T2 o0 <= h' < T2 o0 + KH + T2 - 1 and ...}
    (5)  data -> statement that writes it   {A(h, w) -> S0(h, w)}
    (6)  tile -> statement, (4) . (5)       {(o0, o1) -> S0(h, w) : T2 o0 <= h < T2 o0 + KH + T2 - 1 and ...}

(6) is an extension schedule: S0 is computed inside the tiles of S2, which overlap where (6) says so. Algorithm 2 makes
it an extension node below the band of tile loops and skips the original loops of S0; in a schedule of ours that is
`compute_at` the innermost tile loop, which computes the box around what a tile reads (`tile_boxes`). So the cost model
and `explain` take boxes. Where (6) is no box, `explain` says so; where it is boxes that lie apart, the stage is
computed as copies (`copies`).

Where else this differs from the paper: tile sizes, which it takes from an auto-tuner, come from a model (`tile_time`),
and a space of which overlapping tiles would compute too much again, or store more than L2 holds, is not fused: for
Table I, Algorithm 1 puts all of a pyramid into one group, however often tiles repeat its coarse levels. The whole list
is in docs/autoschedule.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import ClassVar

import islpy as isl

from ..analysis.polyhedra import AffineStatement, box_set, simplified
from ..dataclass import dataclass
from ..machine.description import Cpu
from ..parameters import Amount, Count, Weight
from .common.legalize import legal
from .common.marking import Style
from .common.tiles import TiledGroup, scheduled
from .shapes.copies import copies
from .shapes.fused_space import FusedSpace
from .shapes.spaces import PolyhedralProgram, Space, inlined_at_startup, spaces
from .shapes.tile_time import Candidates, FusedWork, FusionLimits, best_tile, instructions, planes
from .strategy import Found, GroupReport, Problem, Report, Strategy

_TILED_DIMS = 2  # as in Table I
_FEWEST_POINTS = 16  # along a dim that is worth tiling
_TASKS_PER_THREAD = 8  # so that the last ones to run leave few threads idle


@dataclass(frozen=True)
class PostTile(Strategy):
    """`tile_sizes` of the live-outs' tiled dims, outermost first, or None: the best of 7 sizes along each (Table I)."""

    name: ClassVar[str] = "posttile"

    tile_sizes: tuple[Count, ...] | None = None
    candidates: tuple[Count, ...] = (8, 16, 32, 64, 128, 256, 512)
    # How many instructions may be run again in the overlaps of tiles, relative to those of a group and of one space.
    # Tuned on a Neoverse N1 and the apps of docs/results.md, with none held out.
    most_recomputed: Weight = 0.25
    most_recomputed_of_one: Weight = 4.0
    # Loops that are tiled and stay parallel: m of Algorithm 1 at most. The paper allows 1 on CPUs; None: all of them.
    parallel_loops: Amount | None = None

    most_stored: Weight | None = None  # bytes of intermediate values per tile; None: a core's part of L2

    def limits(self, machine: Cpu) -> FusionLimits:
        stored = machine.l2.per_core if self.most_stored is None else self.most_stored
        return FusionLimits(self.most_recomputed, self.most_recomputed_of_one, stored)

    def find(self, problem: Problem) -> Found:
        apart = copies(problem)
        composed, inlined = _compose(self, apart.problem)
        while vain := apart.in_vain({*inlined, *(n for f in composed.fused for n in f.stages[:-1])}):
            apart = copies(problem, {*apart.whole, *vain})
            composed, inlined = _compose(self, apart.problem)
        style = Style(vectors=2, parallelism=_TASKS_PER_THREAD * problem.cpu.threads)
        parts = [scheduled(f.program.problem, _as_group(f), style) for f in composed.fused]
        result = legal(apart.problem, parts, inlined)
        groups = tuple(_group_report(f) for f in composed.fused)
        counts = {"computation spaces": len(composed.spaces), "extension schedules": composed.extension_schedules}
        remarks = (*apart.remarks, *composed.remarks, *result.remarks)
        report = Report(self.name, problem.machine.name, asdict(self), groups, tuple(inlined), counts, remarks)
        return Found(apart.added(result.schedule), report)


def _compose(parameters: PostTile, problem: Problem) -> tuple[Composition, tuple[str, ...]]:
    """Algorithm 3 for what the start-up fusion into common loop bodies leaves, and what that inlines."""
    names = problem.facts.trivial
    program = PolyhedralProgram(problem.inlined(names))
    joined = inlined_at_startup(program)
    if joined:
        names = (*names, *(s.name for s in program.stages if s.name in joined))
        program = PolyhedralProgram(problem.inlined(names))
    return reorder_tiling_and_fusion(parameters, program), names


def _as_group(fused: FusedSpace) -> TiledGroup:
    members = tuple(n for n in fused.stages if n != fused.liveout.output)
    return TiledGroup(fused.liveout.output, members, (fused.cut,) if fused.cut else ())


def _group_report(fused: FusedSpace) -> GroupReport:
    group = _as_group(fused)
    costs = {"parallel tile loops": len(fused.cut), "recomputed": fused.recomputed}
    remarks = (*map(fused.shown, fused.repeated), *fused.remarks)
    return GroupReport(group.output, group.members, group.tiles, costs, remarks)


# ---- Algorithm 3: several live-outs


@dataclass(frozen=True)
class Composition:
    """All spaces in groups, the group of each live-out (the paper's GroupsSet)."""

    spaces: Sequence[Space]
    fused: tuple[FusedSpace, ...]
    remarks: tuple[str, ...]

    @property
    def extension_schedules(self) -> int:
        return sum(len(f.extensions) for f in self.fused)


def reorder_tiling_and_fusion(parameters: PostTile, program: PolyhedralProgram) -> Composition:
    """Algorithm 3. The recursion of Algorithm 1 on what it leaves untiled (lines 17 and 20) is this loop.

    What reads a space that is left untiled is in groups already, so the space is a live-out of those that are left.
    """
    every = spaces(program)
    fused: list[FusedSpace] = []
    remarks: list[str] = []
    left = list(every)
    while left:
        liveouts = _live_outs(program, left)
        for liveout in liveouts:
            mine = _intermediate(program, liveout, liveouts, left)
            fused.append(construct_tile_shapes(parameters, program, liveout, mine))
        done = {n for f in fused for n in f.stages}
        left = [s for s in left if s.output not in done]
        remarks += _sharing_remarks(program, fused, left)
    return Composition(every, tuple(fused), tuple(remarks))


def _live_outs(program: PolyhedralProgram, left: Sequence[Space]) -> list[Space]:
    """The spaces whose values are used after the computation of all of these."""
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
    """Lines 4-5 and 7: what several live-outs use is computed once, on its own."""
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
    parameters: PostTile, program: PolyhedralProgram, liveout: Space, intermediate: Sequence[Space]
) -> FusedSpace:
    """Algorithm 1 for one live-out space and the spaces it needs; those that are not fused are left to the caller."""
    problem = program.problem
    dims = _tilable(parameters, problem, liveout)
    if not dims:
        parallel_ones = problem.facts.tileable(liveout.output)
        why = "its parallel loops are short" if parallel_ones else "none of its loops is parallel"
        return FusedSpace(program, liveout, {}, liveout.stages, remarks=[f"not tiled: {why}"])
    m = len(dims)  # line 4
    parallel = {s: min(len(problem.facts.tileable(n)) for n in s.stages) for s in intermediate}  # line 7
    able = _reachable(problem, liveout, [s for s in intermediate if parallel[s] >= m])
    tile = _tile(parameters, problem, liveout, able, dims)
    growing = _GrowingGroup(FusedSpace(program, liveout, tile, liveout.stages), parameters.limits(problem.cpu))
    growing.start()  # lines 3, 5 and 6
    for space in reversed(intermediate):
        if parallel[space] < m:  # line 8
            growing.leave(space, f"has {parallel[space]} parallel loops, the live-out space {m}")
        else:
            growing.extend(space)  # lines 9-16
    return growing.fused


def _reachable(problem: Problem, liveout: Space, able: Sequence[Space]) -> list[Space]:
    """The spaces that may come to be fused, producers first: nothing but the live-out and others of them reads them."""
    inside = {*liveout.stages}
    reachable = []
    for space in reversed(able):
        if inside.issuperset(problem.facts.consumers[space.output]):
            inside.update(space.stages)
            reachable.append(space)
    return reachable[::-1]


def _tilable(parameters: PostTile, problem: Problem, liveout: Space) -> tuple[str, ...]:
    """The outermost parallel dims that are long enough for tiles."""
    stage = problem.graph.stage[liveout.output]
    extents = dict(zip(stage.dims, problem.facts.extents(stage.name), strict=True))
    fewest = _FEWEST_POINTS if parameters.tile_sizes is None else min(parameters.tile_sizes) + 1
    long = [d for d in problem.facts.tileable(stage.name) if extents[d] >= fewest]
    return tuple(long[: min(_TILED_DIMS, parameters.parallel_loops or _TILED_DIMS)])


def _tile(
    parameters: PostTile, problem: Problem, liveout: Space, able: Sequence[Space], dims: Sequence[str]
) -> dict[str, int]:
    """Line 3: the sizes of the tiling schedule."""
    if parameters.tile_sizes is not None:
        return dict(zip(dims, parameters.tile_sizes, strict=False))
    short = planes(problem, liveout, able, dims[0])
    sizes = Candidates.of(problem, liveout.output, short, dims, parameters.candidates)
    return best_tile(problem, liveout, able, sizes, parameters.limits(problem.cpu))


@dataclass
class _GrowingGroup:
    """The union of a live-out space and what was fused with it so far."""

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
                f.computed.add(name)
                f.repeated[name] = self._repeated(name)

    def extend(self, space: Space) -> None:
        """Lines 9-16: an extension schedule for each statement of a space, if all that read it are in the group."""
        f, facts = self.fused, self.fused.program.problem.facts
        outside = [c for c in facts.consumers[space.output] if c not in f.stages]
        if outside:
            return
        before = dict(f.exposed), dict(f.extensions)
        repeated, more = {}, FusedWork()
        for name in reversed(space.stages):
            self._extend(name)
            f.computed.add(name)
            repeated[name] = self._repeated(name)
            once, stored = instructions(facts, name), f.computed.most(name) * facts.bytes_per_point(name)
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
    """All of the dims along which updates carry values from element to element, such as those of a scan."""
    stage = program.problem.graph.stage[name]
    carried = [k for k, d in enumerate(stage.dims) if d not in program.problem.facts.tileable(name)]
    for k in carried:
        needed = needed.project_out(isl.dim_type.out, k, 1).insert_dims(isl.dim_type.out, k, 1)
        needed = needed.set_tuple_name(isl.dim_type.out, name)
    domain = box_set(name, tuple(range(int(r.low), int(r.high) + 1) for r in program.problem.facts.boxes[name]))
    return needed.intersect_range(domain)
