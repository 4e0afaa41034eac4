"""A segment of a pipeline: stages that are fused into the last of them, each computed and stored at one of its loops.
Its tile and levels become directives.

pt.on("blur_y").compute_root().split("y", "y_o", "y_i", 32).vectorize("x", 8).reorder("y_o", ...).parallel("y_o")
pt.on("blur_x").compute_at("blur_y", "y_i").store_at("blur_y", "y_o").vectorize("x", 8)

Levels are the loops of that last stage, counted from the innermost one, as D_m of sioutas-thesis chapter 5 is: 0 is the
innermost loop inside a tile, and the number of these loops stands for the innermost loop over tiles.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import field, replace

from ...analysis.regions import Box
from ...dataclass import cached_property, dataclass
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.stage_default import lanes
from ...schedule.updates import pure_dims
from ..common import footprint
from ..common.cpu_marking import vectors_at_a_time
from ..common.marking import Marking, Part, Style
from ..common.tiles import TiledGroup, marking, scheduled
from ..nest.statement import Statement
from ..nest.tiled_loops import TiledLoops, blocked
from ..strategy import GroupReport, Problem

VECTORS = 2  # per iteration
PAIRS = Style(VECTORS)


def directives(problem: Problem, t: Tiling) -> Part:
    """Return the directives of a segment. `problem` is the one after all inlining."""
    if not t.tile:
        return tuple(chain for name in (*t.stored, t.output) for chain in scheduled(problem, TiledGroup(name), PAIRS))
    return _Loops(problem, t).chains()


@dataclass(frozen=True)
class _Loops:
    """The loops of a segment whose tile is known."""

    problem: Problem
    t: Tiling

    @cached_property
    def _marks(self) -> Marking:
        return marking(self.problem, PAIRS)

    @cached_property
    def output(self) -> Stage:
        return self.problem.graph.stage[self.t.output]

    @cached_property
    def short(self) -> tuple[str, ...]:
        return tuple(d for d in self.output.dims if d not in self.t.tile)

    @cached_property
    def intra(self) -> tuple[str, ...]:
        return tuple(d for d in self.t.intra if d not in self.short)

    @cached_property
    def tiled(self) -> TiledLoops:
        extents = self.problem.facts.every_loop(self.t.output)
        reductions = tuple(n for n in extents if n not in self.output.dims)
        return TiledLoops(extents, self.t.tile, self.t.inter, (*self.intra, *reductions, *self.short))

    def chains(self) -> Part:
        levels = {name: self.t.levels[name].compute for name in self.t.stored}
        boxes = {level: self._boxes(level) for level in dict.fromkeys(levels.values())}
        return (self._output(), *(self._member(name, boxes[level][name]) for name, level in levels.items()))

    def _output(self) -> StageSchedule:
        chain = on(self.t.output).compute_root()
        for k, d in enumerate(self.output.definitions):
            start = chain if k == 0 else chain.update(k - 1)
            own = (*pure_dims(self.output, d), *(r.name for r in d.domain))
            marked = self._tiled(Statement.of(self.problem, self.output, k), start, own)
            marked = self._marks.nest(marked, shared=[*self.tiled.outer.values()][:1])
            chain = chain if marked == start else marked
        return chain

    def _tiled(self, s: Statement, chain: StageSchedule, own: Sequence[str]) -> StageSchedule:
        """Vectorize the innermost loop; unroll short loops, and compute sums in register tiles."""
        short = {d: self.tiled.extents[d] for d in self.short}
        if s.definition.domain and s.column == self.intra[-1] and not short:
            return blocked(s, chain, own, self.tiled)
        innermost = self.intra[-1]
        wanted = vectors_at_a_time(self.problem, s.stage, s.definition, VECTORS)
        vectors = min(wanted, self.t.tile[innermost] // s.lanes) if innermost in self.tiled.inner else 0
        return self.tiled.applied(self._marks, chain, own, innermost if vectors else None, vectors * s.lanes, short)

    def _boxes(self, level: int) -> dict[str, Box]:
        """The region of each stage that an iteration of the loop at a level requires."""
        inside = {*self.short, *self.intra[len(self.intra) - max(0, level - len(self.short)) :]}
        width = lanes(self.output, self.output.definitions[-1], self.problem.target)
        tile = {d: n if d in inside else min(n, width) if d == self.intra[-1] else 1 for d, n in self.t.tile.items()}
        return footprint.boxes(self.problem.facts, (*self.t.members, self.t.output), self.t.output, tile)

    def _member(self, name: str, box: Box) -> StageSchedule:
        level = self.t.levels[name]
        at, kept = self._loop(level.compute), self._loop(level.store)
        chain = on(name).compute_root() if at is None else on(name).compute_at(self.t.output, at)
        if kept != at:
            chain = chain.store_root() if kept is None else chain.store_at(self.t.output, kept)
        stage = self.problem.graph.stage[name]
        extents = {d: int(r.high - r.low + 1) for d, r in zip(stage.dims, box, strict=True)}
        return self._marks.member(stage, chain, extents)

    def _loop(self, level: int) -> str | None:
        """The loop of a level, or the next outer one that exists; None is root."""
        inside = list(reversed(self.intra))[max(0, level - len(self.short)) :]
        names = [self.tiled.inner[d] for d in inside if d in self.tiled.inner]
        return next(iter([*names, *reversed(self.tiled.outer.values())]), None)


@dataclass(frozen=True)
class Level:
    """S_i: where a stage is computed and stored. If the levels are equal, nothing slides and nothing is folded."""

    compute: int
    store: int

    @property
    def is_folded(self) -> bool:
        return self.compute != self.store


INLINE = Level(-1, -1)


def through_inlined(
    name: str, neighbours: Mapping[str, Sequence[str]], levels: Mapping[str, Level]
) -> tuple[set[str], set[str]]:
    """The neighbours of a stage (producers or consumers) after inlining, and the inlined stages in between."""
    readers: set[str] = set()
    between: set[str] = set()
    pending = list(neighbours[name])
    while pending:
        other = pending.pop()
        if levels.get(other) != INLINE:
            readers.add(other)
        elif other not in between:
            between.add(other)
            pending += neighbours[other]
    return readers, between


@dataclass(frozen=True)
class SegmentLoops:
    """D_m: the loops inside a tile. Of the loops over tiles, only the innermost one matters here."""

    intra: tuple[str, ...]  # outermost first, without short loops
    short: tuple[str, ...]
    column: str

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """The loops of the segment, innermost first."""
        return (*reversed(self.short), *reversed(self.intra))

    @property
    def innermost(self) -> int:
        """The innermost level at which something can be computed: that of the vector loop."""
        return len(self.short)

    @property
    def row(self) -> int:
        """The level whose iterations run the vector loop. If a stage were computed a vector at a time instead, it
        would have no loop of its own whose edges could be partitioned off, and would start once per vector."""
        return self.innermost + 1

    @property
    def tile(self) -> int:
        """The innermost loop over tiles."""
        return len(self.loops)

    def level(self, loop: str) -> int:
        return self.loops.index(loop)

    def at(self, level: int) -> Level:
        """Computed and stored at a level, or at the tile if there is no such level."""
        return Level(min(level, self.tile), min(level, self.tile))

    def inside(self, level: int) -> frozenset[str]:
        """The loops inside an iteration of a level."""
        return frozenset(self.loops[:level])


@dataclass(frozen=True)
class Tiling:
    """The result of Algorithm 6 for a segment."""

    output: str
    members: tuple[str, ...]  # without the output, producers first
    cost: float
    working_set: float  # bytes of all buffers; infinite if no tile meets the constraints
    tile: Mapping[str, int] = field(default_factory=dict)
    intra: tuple[str, ...] = ()  # loops inside a tile, outermost first
    inter: tuple[str, ...] = ()  # loops over tiles
    levels: Mapping[str, Level] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()  # that the tile meets
    compared: int = 0  # tiles, in all orders of loops

    @property
    def inlined(self) -> tuple[str, ...]:
        return tuple(n for n in self.members if self.levels.get(n) == INLINE)

    @property
    def stored(self) -> tuple[str, ...]:
        """The members that are neither inlined nor the output."""
        return tuple(n for n in self.members if self.levels.get(n) != INLINE)

    def among(self, stages: Container[str]) -> Tiling:
        """The tiling without members that are neither among these stages nor inlined: nothing reads them after all
        inlining."""
        return replace(self, members=tuple(n for n in self.members if n in stages or self.levels.get(n) == INLINE))


def reported(t: Tiling) -> GroupReport:
    remarks = []
    if t.tile:
        remarks.append(f"loops over tiles: {', '.join(t.inter)}; inside: {', '.join(t.intra)}")
        remarks.append(f"tiles have {', '.join(t.constraints)}")
    remarks += [f"{name}: {_placed(t, t.levels[name])}" for name in t.members]
    return GroupReport(t.output, t.stored, (t.tile,) if t.tile else (), t.costs, tuple(remarks))


def _placed(t: Tiling, level: Level) -> str:
    if level == INLINE:
        return "inlined"
    loops = [*(f"loop {n}" for n in reversed(t.intra)), "the tile"]
    folded = ", folded" if level.is_folded else ""
    return f"computed at {loops[level.compute]}, stored at {loops[level.store]}{folded}"
