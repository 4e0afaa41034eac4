"""Groups with tile sizes to a schedule: the loops of overlapped tiles, as a person would write them.

    Group("out", ("blur_x",), ({"y": 32, "x": 256},))  becomes

    pt.on("out").split("y", "y_o", "y_i", 32).split("x", "x_o", "x_i", 256).reorder("y_o", "x_o", "y_i", "x_i")
        .parallel("y_o").vectorize("x_i", 8)
    pt.on("blur_x").compute_at("out", "x_o").vectorize("x", 8)

The output of a group is computed at root, its tiles in parallel; all other members are computed at the innermost tile
loop, over what the tile needs of them. `legal` turns groups into a schedule of the whole pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..graph.nodes import Definition, Stage
from ..schedule.default import lanes
from ..schedule.directives import StageSchedule, on
from ..schedule.updates import is_independent, pure_dims
from .footprint import boxes
from .strategy import Problem

MOST_UNROLLED = 4  # iterations of a small loop around the vector
_LEVELS = ("_o", "_m", "_n")  # suffixes of the tile loops of each level
_INSIDE = "_i"


@dataclass(frozen=True)
class Group:
    """Stages that run together, tile by tile of the output."""

    output: str
    members: tuple[str, ...] = ()  # the others
    tiles: tuple[Mapping[str, int], ...] = ()  # levels, outermost first: dim of the output -> extent; others are whole
    order: tuple[str, ...] = ()  # of the output's dims, outermost first; as they are defined if it is empty

    @property
    def stages(self) -> tuple[str, ...]:
        return (*self.members, self.output)


@dataclass(frozen=True)
class Style:
    """How loops are marked."""

    vectors: int = 1  # natural vectors of the widest type per iteration
    parallelism: int | None = None  # iterations to share among threads, if there are so many; None: as many as threads

    def width(self, problem: Problem, stage: Stage, definition: Definition) -> int:
        """Lanes of the vector loop."""
        return self.vectors * lanes(stage, definition, problem.machine.vector_bits)


PLAIN = Style()


def scheduled(problem: Problem, group: Group, style: Style = PLAIN) -> tuple[StageSchedule, ...]:
    """The directives of all stages of a group."""
    output = problem.graph.stage[group.output]
    levels = _levels(problem, group)
    host = _Output(problem, output, levels, group.order or output.dims, style)
    chains = [host.chain()]
    if not group.members:
        return tuple(chains)
    needed = boxes(problem.facts, group.stages, group.output, levels[-1] if levels else {})
    for name in group.members:
        stage = problem.graph.stage[name]
        extents = [int(r.high - r.low + 1) for r in needed[name]]
        chain = on(name).compute_at(group.output, host.innermost_tile_loop)
        chains.append(marked_inside(problem, stage, chain, dict(zip(stage.dims, extents, strict=True)), style))
    return tuple(chains)


def _levels(problem: Problem, group: Group) -> tuple[Mapping[str, int], ...]:
    """Tiles that are smaller than what they are tiles of; a level without any is left out."""
    sizes = dict(zip(problem.graph.stage[group.output].dims, problem.facts.extents(group.output), strict=True))
    kept = []
    for level in group.tiles:
        smaller = {d: n for d, n in level.items() if n < sizes[d]}
        sizes.update(smaller)
        if smaller:
            kept.append(smaller)
    return tuple(kept)


# ---- the stage that is tiled


@dataclass
class _Output:
    """The loops of a group's output; all of its definitions are tiled alike."""

    problem: Problem
    stage: Stage
    levels: Sequence[Mapping[str, int]]
    order: Sequence[str]
    style: Style
    names: dict[str, list[str]] = field(default_factory=dict)  # dim -> its loops, outermost first

    @property
    def innermost_tile_loop(self) -> str:
        """Where other members are computed: the innermost tile loop, or the outermost loop if there is none."""
        tiled = [self.names[d][level] for level, d in self._tile_loops()]
        return tiled[-1] if tiled else self.order[0]

    def _tile_loops(self) -> list[tuple[int, str]]:
        """Place among the loops of its dim, and the dim."""
        done = dict.fromkeys(self.order, 0)
        found = []
        for level in self.levels:
            for d in self.order:
                if d in level:
                    found.append((done[d], d))
                    done[d] += 1
        return found

    def chain(self) -> StageSchedule:
        chain = on(self.stage.name).compute_root()
        for k, definition in enumerate(self.stage.definitions):
            start = chain if k == 0 else chain.update(k - 1)
            marked = self._definition(definition, start)
            chain = chain if marked == start else marked
        return chain

    def _definition(self, definition: Definition, chain: StageSchedule) -> StageSchedule:
        free = [d for d in self.order if d in pure_dims(self.stage, definition)]
        if not all(is_independent(self.stage, definition, d) for d in free):
            return chain  # a scan: its loops stay as they are
        chain = self._split(free, chain)
        extents = self._inner_extents(free)
        outer = [self.names[d][level] for level, d in self._tile_loops() if d in free]
        inner = {self.names[d][-1]: extents[d] for d in free}
        loops = [n for d in pure_dims(self.stage, definition) for n in self.names[d]]
        chain = _order_and_vectorize(self.problem, self.stage, definition, chain, loops, outer, inner, self.style)
        return self._parallel(chain, free, outer)

    def _split(self, free: Sequence[str], chain: StageSchedule) -> StageSchedule:
        taken = {*self.stage.dims, *(r.name for d in self.stage.definitions for r in d.domain)}
        for d in free:
            factors = [level[d] for level in self.levels if d in level]
            loops = self.names[d] = [d]
            names = [_fresh(d + suffix, taken) for suffix in (*_LEVELS[: len(factors)], _INSIDE)]
            taken |= set(names)
            for factor, (outer, inner) in zip(factors, pairwise(names), strict=True):
                chain = chain.split(loops[-1], outer, inner, factor)
                loops[-1:] = [outer, inner]
        return chain

    def _inner_extents(self, free: Sequence[str]) -> dict[str, int]:
        sizes = dict(zip(self.stage.dims, self.problem.facts.extents(self.stage.name), strict=True))
        for level in self.levels:
            sizes.update({d: n for d, n in level.items() if d in free})
        return sizes

    def _parallel(self, chain: StageSchedule, free: Sequence[str], outer: Sequence[str]) -> StageSchedule:
        """As many outermost loops as it takes; not the vectorized one, unless it is tiled."""
        if not free:
            return chain
        sizes = dict(zip(self.stage.dims, self.problem.facts.extents(self.stage.name), strict=True))
        wanted = self.style.parallelism or self.problem.machine.threads
        if not outer:
            return chain.parallel(free[0]) if len(free) > 1 else chain
        first = [(level, d) for level, d in self._tile_loops() if level == 0 and d in free]
        shared = 1
        for _, d in first:
            if shared >= wanted:
                break
            factor = next(level[d] for level in self.levels if d in level)
            shared *= -(-sizes[d] // factor)
            chain = chain.parallel(self.names[d][0])
        return chain


def _fresh(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


# ---- loops inside a tile


def marked_inside(
    problem: Problem, stage: Stage, chain: StageSchedule, extents: Mapping[str, int], style: Style = PLAIN
) -> StageSchedule:
    """Order and vectorize the loops of a stage that is computed inside a tile over such extents of its dims."""
    for k, definition in enumerate(stage.definitions):
        start = chain if k == 0 else chain.update(k - 1)
        free = {d: extents[d] for d in pure_dims(stage, definition)}
        if not all(is_independent(stage, definition, d) for d in free):
            continue
        marked = _order_and_vectorize(problem, stage, definition, start, list(free), [], free, style)
        chain = chain if marked == start else marked
    return chain


def _order_and_vectorize(
    problem: Problem, stage: Stage, definition: Definition, chain: StageSchedule,
    loops: Sequence[str], outer: Sequence[str], inner: Mapping[str, int], style: Style,
) -> StageSchedule:  # fmt: skip
    """Tile loops, other loops, reduction loops, and innermost the vector along the last loop that is long enough.

    Short loops behind it, such as the channels of an interleaved image, are written out around the vector. `loops` is
    the order so far.
    """
    width = style.width(problem, stage, definition)
    reductions = [r.name for r in definition.domain]
    long = [n for n in inner if inner[n] >= width]
    if not long:
        return _reordered(chain, [*loops, *reductions], [*outer, *inner, *reductions])
    vector, lane = long[-1], long[-1] + "_v"
    short = {n: inner[n] for n in list(inner)[list(inner).index(vector) + 1 :]}
    written_out = [n for n in short if 1 < short[n] <= MOST_UNROLLED]
    chain = chain.vectorize(vector, width)
    for n in written_out:
        chain = chain.unroll(n, short[n])
    before = [m for n in loops for m in _halves(n, vector, written_out)] + reductions
    others = [n for n in inner if n != vector]
    after = [*outer, *others, vector, *reductions, *(n + "_u" for n in written_out), lane]
    return _reordered(chain, before, after)


def _halves(loop: str, vector: str, written_out: Sequence[str]) -> tuple[str, ...]:
    return (loop, loop + "_v") if loop == vector else (loop, loop + "_u") if loop in written_out else (loop,)


def _reordered(chain: StageSchedule, before: Sequence[str], after: Sequence[str]) -> StageSchedule:
    return chain if list(before) == list(after) else chain.reorder(*after)
