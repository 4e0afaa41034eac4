"""Rolling: a group of stages is computed down strips of its output, several rows at a time, which share what they read.

    Roll("out", ("blur",), rows=2, strip=64)  becomes

    pt.on("out").compute_root().split("y", "y_o", "y_i", 64).split("y_i", "y_i", "y_r", 2).vectorize("x", 8)
        .reorder("y_o", "y_i", "x", "y_r", "x_v").unroll("y_r").parallel("y_o")
    pt.on("blur").compute_at("out", "y_i").store_at("out", "y_o").split("y", "y", "y_r", 2).vectorize("x", 8)
        .reorder("y", "x", "y_r", "x_v").unroll("y_r")

Strips have whole rows, or tiles of a number of columns. Rows of a stage that the next rows need as well are kept. If
stages cannot slide, all that a strip needs of them is computed before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod

from ...analysis.access import Access, accesses_by_buffer
from ...dataclass import cached_property, dataclass
from ...expr.nodes import Const
from ...expr.visit import has_floats, loaded, names
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.names import fresh
from ...schedule.stage_default import FEWEST_LANES, lanes
from ..common.marking import unrolled, vector
from ..common.tiles import marking, reads_halves
from ..sliding.overlap import Motion, motions, overlaps, shares_reads
from ..strategy import Problem
from .groups import StageGroup

OUTSIDE, INSIDE, WRITTEN_OUT = "outside", "inside", "written out"  # where the loops over planes are
MOST_ROWS, MOST_VECTORS, MOST_PLANES, WIDEST = 8, 4, 4, 64
SLOW = Fraction(1, 2)  # rows of a stage per row of the output, at least
LEAST_STRIP, LEAST_TILE = 8, 64


@dataclass(frozen=True)
class Roll:
    """The parameters by which a group is computed. The defaults are a good start."""

    output: str
    members: tuple[str, ...]  # producers first
    inlined: tuple[str, ...] = ()
    rows: int = 2  # at a time
    strip: int = 64  # rows per task
    tile: int = 0  # columns; 0: whole rows
    vectors: int = 2  # per iteration
    together: bool = True  # rows of the output in one iteration
    planes: str = OUTSIDE
    slides: bool = True  # or all that a strip or tile needs of a stage is computed before it, some of it again

    @staticmethod
    def of(problem: Problem, group: StageGroup) -> Roll:
        roll = Roll(group.output, group.members, group.inlined)
        roll = replace(roll, planes=INSIDE) if _planes_share(problem, roll) else roll
        if _resizes_rows(problem, roll):
            line = 8 * problem.cpu.l1.line // problem.cpu.vector_bits
            roll = replace(roll, rows=1, vectors=max(roll.vectors, line))
        return roll if _rolls_several(problem, roll) else replace(roll, rows=1)


def _planes_share(problem: Problem, roll: Roll) -> bool:
    """Whether planes of the output require the same values of some stage, which loops over planes outside would compute
    for each of them."""
    planes = set(RolledLoops.of(problem, problem.graph.stage[roll.output]).planes)
    return any(not planes <= set(problem.graph.stage[name].dims) for name in roll.members)


def rolls(problem: Problem, roll: Roll) -> bool:
    """Whether a group can be computed by a roll."""
    slides = _all_slide(problem, roll) if roll.slides else _are_cut(problem, roll)
    return slides and can_roll(problem, roll.output) and _rolls_several(problem, roll)


def _resizes_rows(problem: Problem, roll: Roll) -> bool:
    """Whether rows become twice or half as long, and share no reads. One row at a time is best then, one cache line
    after the other (measured on a Neoverse N1: two rows at a time take up to half as long again, more so in halves of
    lines)."""
    stages = [problem.graph.stage[n] for n in (roll.output, *roll.inlined)]
    if roll.members or any(shares_reads(s, RolledLoops.of(problem, s).y) for s in stages if s.ndim > 1):
        return False
    x = RolledLoops.of(problem, stages[0]).x
    reads = [a for of in accesses_by_buffer(stages[0]) for accesses in of.values() for a in accesses]
    return any(i is not None and i.dim == x and abs(i.scale) in (SLOW, 1 / SLOW) for a in reads for i in a.indices)


def _rolls_several(problem: Problem, roll: Roll) -> bool:
    """Whether it is worth computing the requested number of rows at a time."""
    apart = _reads_numbered_planes(problem, roll) or _shares_nothing(problem, roll)
    return not _is_cut_short(problem, roll) and (roll.rows == 1 or not apart)


def _reads_numbered_planes(problem: Problem, roll: Roll) -> bool:
    """Whether rows read different planes, selected by their plane number: several rows at a time would read all of them
    at once, which are more streams than the hardware prefetcher follows."""
    numbered = problem.alone.numbered
    readers = (name for planes in numbered for name in problem.graph.consumers[planes] if name not in numbered)
    return not {*readers}.isdisjoint((roll.output, *roll.members, *roll.inlined))


def _shares_nothing(problem: Problem, roll: Roll) -> bool:
    """Whether rows load pixels at indices that depend on data or floats, and share no reads: several rows at a time
    would only need more addresses than registers hold (measured on a Neoverse N1: `colour_table` takes a sixth
    longer)."""
    stages = [problem.graph.stage[n] for n in (roll.output, *roll.inlined)]
    places = [i for s in stages for e in s.pure.loads for i in e.indices]
    if roll.members or not any(loaded(i) or has_floats(i) for i in places):
        return False
    for stage in stages:
        y = RolledLoops.of(problem, stage).y if stage.ndim > 1 else None
        for reads in (reads for of in accesses_by_buffer(stage) for reads in of.values()):
            rows = [i for a in reads for i in a.indices if i is not None and i.dim == y]
            if len({row for i in rows for row in (i.low, i.high)}) > 1:
                return False
    return True


def _is_cut_short(problem: Problem, roll: Roll) -> bool:
    """Whether the last strip may be shorter than others and is split into rows or columns again, for which bounds
    inference overestimates the required region. The strips of an output of the pipeline all have the same size."""
    if roll.output in problem.graph.output:
        return False
    halves = any(reads_halves(problem.graph.stage[n]) for n in (roll.output, *roll.members, *roll.inlined))
    return bool(roll.members and roll.rows > 1) or (halves and roll.tile > 0)


def can_roll(problem: Problem, name: str) -> bool:
    """Whether a stage is a picture whose points may be computed in any order, and whose planes are not all computed at
    once."""
    stage = problem.graph.stage[name]
    if stage.updates or stage.ndim + problem.row(name) < 1 or not problem.facts.is_limited(name):
        return False
    if problem.alone.is_written_out(stage):
        return False
    loops = RolledLoops.of(problem, stage)
    return loops.extents[loops.y] > LEAST_STRIP and loops.extents[loops.x] >= FEWEST_LANES


def chains(problem: Problem, roll: Roll) -> Iterator[StageSchedule]:
    """Yield the directives of all stages of the group."""
    output = RolledLoops.of(problem, problem.graph.stage[roll.output])
    yield _output(problem, roll, output)
    for name in roll.members:
        yield _member(problem, roll, output, name)
    for name in roll.inlined:
        yield on(name).compute_inline()


def variations(problem: Problem, roll: Roll) -> Iterator[tuple[str, Roll]]:
    """Yield the rolls that differ in one parameter, with what differs."""
    loops = RolledLoops.of(problem, problem.graph.stage[roll.output])
    yield "rows together" if not roll.together else "row by row", replace(roll, together=not roll.together)
    for rows in (roll.rows * 2, roll.rows // 2):  # later, since row by row has no use for several rows
        if 1 <= rows <= min(MOST_ROWS, roll.strip):
            yield f"{rows} rows at a time", replace(roll, rows=rows)
    for tile in (roll.tile * 2, roll.tile // 2) if roll.tile else (256,):
        if tile < loops.extents[loops.x]:
            yield f"tiles of {tile} columns", replace(roll, tile=tile if tile >= LEAST_TILE else 0)
    for strip in (roll.strip * 4, roll.strip // 4):  # resizing tries lengths in between
        if max(LEAST_STRIP, roll.rows) <= strip < loops.extents[loops.y]:
            yield f"strips of {strip} rows", replace(roll, strip=strip)
    for vectors in (roll.vectors * 2, roll.vectors // 2):
        if 1 <= vectors <= MOST_VECTORS and not (vectors < roll.vectors and loops.falls_apart(problem, vectors)):
            yield f"{vectors} vectors at a time", replace(roll, vectors=vectors)
    for planes in (OUTSIDE, INSIDE, WRITTEN_OUT) if loops.planes else ():
        if planes != roll.planes and not (planes == OUTSIDE and _planes_share(problem, roll)):
            yield f"planes {planes}", replace(roll, planes=planes)
    yield from _other_places(problem, roll)


def _other_places(problem: Problem, roll: Roll) -> Iterator[tuple[str, Roll]]:
    plane_dims = set(RolledLoops.of(problem, problem.graph.stage[roll.output]).planes)
    for name in roll.members:
        if problem.facts.can_be_inlined(name):
            others = tuple(n for n in roll.members if n != name)
            # what all planes share is computed once for all of them, if they are unrolled around it
            planes = roll.planes if plane_dims <= set(problem.graph.stage[name].dims) else WRITTEN_OUT
            yield f"{name} inlined", replace(roll, members=others, inlined=(*roll.inlined, name), planes=planes)
    for name in roll.inlined:
        if problem.facts.is_limited(name) and name not in problem.facts.trivial and can_roll(problem, name):
            members = sorted((*roll.members, name), key=problem.facts.position.__getitem__)
            kept = tuple(n for n in roll.inlined if n != name)
            yield f"{name} stored", replace(roll, members=tuple(members), inlined=kept)


def columns(problem: Problem, name: str) -> int:
    """The number of distinct reads of a stage, not counting those that differ only in rows. If the stage is inlined, it
    is computed for each of them, while adjacent rows share theirs. Sums over it are unrolled, since a group only has
    sums that are inlined, too."""
    return problem.facts.once(("columns", name), lambda: _columns(problem, name))


def _columns(problem: Problem, name: str) -> int:
    stage = problem.graph.stage[name]
    places: dict[tuple[object, ...], int] = {}
    for c in (problem.graph.stage[c] for c in problem.graph.consumers[name]):
        row = RolledLoops.of(problem, c).y if c.ndim > 1 else None
        for definition, by_buffer in zip(c.definitions, accesses_by_buffer(c), strict=True):
            for a in (a for b in stage.buffers for a in by_buffer.get(b, ())):
                place = (c.name, *(i if i is None or i.dim != row else i.scale for i in a.indices))
                places[place] = max(places.get(place, 1), _terms(definition, a, row))
    return sum(places.values())


def _terms(definition: Definition, read: Access, row: str | None) -> int:
    """The number of distinct reads of a sum, not counting those that differ only in rows, as far as its extents are
    constants."""
    beside = [e for i, e in zip(read.indices, read.load.indices, strict=True) if i is None or i.dim != row]
    moved = frozenset[str]().union(*map(names, beside))
    return prod(int(r.extent.value) for r in definition.domain if r.name in moved and isinstance(r.extent, Const))


def _all_slide(problem: Problem, roll: Roll) -> bool:
    """Whether lowering computes every row of every stage once; rows of stages that cannot slide would be recomputed."""
    y = RolledLoops.of(problem, problem.graph.stage[roll.output]).y
    members = frozenset((roll.output, *roll.members, *roll.inlined))
    moving = problem.facts.once(("motions", roll.output, members), lambda: motions(problem.graph, members, roll.output))
    return all(can_roll(problem, name) and _slides(moving[name], y) for name in roll.members)


def _are_cut(problem: Problem, roll: Roll) -> bool:
    """Whether all stages are pictures, and a strip requires only a part of each."""
    output = RolledLoops.of(problem, problem.graph.stage[roll.output])
    return roll.strip < output.extents[output.y] and all(can_roll(problem, name) for name in roll.members)


def _slides(moving: Mapping[str, Motion], y: str) -> bool:
    """Whether one dim of a stage moves with the rows of the output, steadily and at least at half their rate."""
    along = [m for m in moving.values() if m.dim == y]
    return len(along) == 1 and along[0].steady and along[0].rate >= SLOW


@dataclass(frozen=True)
class RolledLoops:
    """The names of the loops of a stage."""

    stage: Stage
    extents: Mapping[str, int]
    planes: tuple[str, ...]
    y: str
    x: str
    channel: str | None

    @staticmethod
    def of(problem: Problem, stage: Stage) -> RolledLoops:
        return problem.facts.once(("loops that roll", stage.name), lambda: RolledLoops._find(problem, stage))

    @staticmethod
    def _find(problem: Problem, stage: Stage) -> RolledLoops:
        row = stage.ndim + problem.row(stage.name)
        extents = dict(zip(stage.dims, problem.facts.extents(stage.name), strict=True))
        channel = stage.dims[-1] if row == stage.ndim - 2 else None
        return RolledLoops(stage, extents, stage.dims[: row - 1], stage.dims[row - 1], stage.dims[row], channel)

    def named(self, dim: str, suffix: str) -> str:
        return fresh(dim + suffix, self.stage.dims.__contains__)

    @cached_property
    def strips(self) -> str:
        return self.named(self.y, "_o")

    @cached_property
    def tiles(self) -> str:
        return self.named(self.x, "_o")

    @cached_property
    def rows(self) -> str:
        return self.named(self.y, "_i")

    @cached_property
    def row(self) -> str:
        return self.named(self.y, "_r")

    @cached_property
    def columns(self) -> str:
        return self.named(self.x, "_i")

    def width(self, problem: Problem, vectors: int) -> int:
        each = lanes(self.stage, self.stage.pure, problem.target)
        while vectors > 1 and each * vectors > min(WIDEST, self.extents[self.x]):
            vectors //= 2
        return each * vectors

    def falls_apart(self, problem: Problem, vectors: int) -> bool:
        """Whether the smallest elements would fill less than half of a register: these are computed one by one, and are
        kept in memory (measured on a Neoverse N1: `bilateral` takes a third longer)."""
        least = min(8 * t.bytes for t in (*self.stage.dtypes, *(e.dtype for e in self.stage.pure.loads)))
        return 2 * least * self.width(problem, vectors) < problem.cpu.vector_bits


@dataclass(frozen=True)
class _LoopOrder:
    """The loops of a stage from the outermost to the innermost, before the rows and vectors of one iteration are split
    off."""

    outer: tuple[str, ...]
    rows: str
    planes: tuple[str, ...]  # inside of the loop over rows
    columns: str
    shared: tuple[str, ...] = ()


def _output(problem: Problem, roll: Roll, loops: RolledLoops) -> StageSchedule:
    """The schedule of the output: strips of rows, tiles of columns, and several rows at a time."""
    chain = problem.alone.stored(loops.stage, on(roll.output).compute_root())
    around, rows, x = [], loops.y, loops.x
    if not roll.members:
        chain = _split_rows(roll, loops, chain, rows)
    if roll.strip < loops.extents[loops.y]:
        each = roll.strip if roll.members else roll.strip // roll.rows
        chain, rows = chain.split(loops.y, loops.strips, loops.rows, each), loops.rows
        around.append(loops.strips)
    if roll.members:
        chain = _split_rows(roll, loops, chain, rows)
    if 0 < roll.tile < loops.extents[loops.x]:
        chain, x = chain.split(loops.x, loops.tiles, loops.columns, roll.tile), loops.columns
        around.append(loops.tiles)
    outside, inside = (loops.planes, ()) if roll.planes == OUTSIDE else ((), loops.planes)
    order = _LoopOrder((*outside, *around), rows, inside, x, shared=(*outside, *around[:1]))
    return _inner_loops(problem, roll, loops, chain, order, roll.together)


def _inner_loops(
    problem: Problem, roll: Roll, loops: RolledLoops, chain: StageSchedule, order: _LoopOrder, together: bool
) -> StageSchedule:
    """Vectorize columns, and unroll planes, channels, and the rows of one iteration if they are computed together."""
    columns = vector(order.columns, loops.width(problem, roll.vectors))
    few = [d for d in order.planes if roll.planes == WRITTEN_OUT and 1 < loops.extents[d] <= MOST_PLANES]
    planes = [unrolled(d, loops.extents[d]) for d in few]
    channels = [unrolled(loops.channel, loops.extents[loops.channel])] if loops.channel is not None else []
    row = [loops.row] if roll.rows > 1 else []
    before, after = ([], row) if together else (row, [])
    outer = [*order.outer, order.rows, *order.planes, *(c.loop for c in channels)]
    inner = [*(p.part for p in planes), *after, columns.part, *(c.part for c in channels)]
    parts = [columns, *planes, *channels, *map(unrolled, after)]
    return marking(problem).nest(chain, parts, [*outer, *before, order.columns, *inner], order.shared)


def _member(problem: Problem, roll: Roll, output: RolledLoops, name: str) -> StageSchedule:
    """The schedule of one stage, memoized for all rolls that agree about it."""
    at = output.rows if roll.strip < output.extents[output.y] else None
    around = output.tiles if 0 < roll.tile < output.extents[output.x] else output.strips
    stored = around if at is not None and roll.slides and is_used_again(problem, roll, name) else None
    at = at if roll.slides else around
    question = ("rolling", name, roll.output, at, stored, roll.rows, roll.vectors, roll.planes)
    return problem.facts.once(question, lambda: _marked_member(problem, roll, name, at or output.y, stored))


def _marked_member(problem: Problem, roll: Roll, name: str, at: str, stored: str | None) -> StageSchedule:
    """The schedule of a member that is computed at a loop of the output, and stored at one whose iterations share
    it."""
    loops = RolledLoops.of(problem, problem.graph.stage[name])
    chain = on(name).compute_at(roll.output, at)
    if stored is not None:
        chain = chain.store_at(roll.output, stored)
    chain = problem.alone.stored(loops.stage, chain)
    order = _LoopOrder((), loops.y, loops.planes, loops.x)
    return _inner_loops(problem, roll, loops, _split_rows(roll, loops, chain, loops.y), order, together=True)


def _split_rows(roll: Roll, loops: RolledLoops, chain: StageSchedule, rows: str) -> StageSchedule:
    """Split the rows of one iteration off the loop over all rows, if there are several."""
    return chain.split(rows, rows, loops.row, roll.rows) if roll.rows > 1 else chain


def is_used_again(problem: Problem, roll: Roll, name: str) -> bool:
    """Whether the next rows require some of the same rows of a stage, because a stage reads several of its rows, or
    because one of its readers is ahead of another."""
    stage = problem.graph.stage[name]
    readers = [problem.graph.stage[c] for c in problem.graph.consumers[name]]
    if any(RolledLoops.of(problem, c).y in overlaps(stage, c) for c in readers if c.ndim > 1):
        return True
    if len(readers) == 1 and readers[0].name not in roll.inlined:
        return False
    return any(c.name != roll.output and is_used_again(problem, roll, c.name) for c in readers)
