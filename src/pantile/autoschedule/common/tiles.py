"""Turns groups with tile sizes into directives: the loops of overlapped tiles, as a person would write them.

    Group("out", ("blur_x",), ({"y": 32, "x": 256},))  becomes, on a CPU,

    pt.on("out").compute_root().split("y", "y_o", "y_i", 32).split("x", "x_o", "x_i", 256).vectorize("x_i", 8)
        .reorder("y_o", "x_o", "y_i", "x_i", "x_i_v").parallel("y_o")
    pt.on("blur_x").compute_at("out", "x_o").vectorize("x", 8)

The output of a group is computed at root. All other members are computed at the innermost tile loop, over what the tile
needs of them. `marking` decides how loops run on the machine. `legalize` checks whether the result is legal for the
stages at hand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from ...analysis.access import accesses
from ...dataclass import cached_property, dataclass
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.names import fresh
from ...schedule.updates import constant, loop_names
from .. import common
from ..strategy import Problem
from .cpu_marking import CpuMarking
from .footprint import boxes
from .marking import PLAIN, DefinitionLoops, Marking, Part, Style, sharing_last

MOST_WHOLE = 64  # points along a dim that each block of a GPU has all of, such as channels and coarse pyramid levels
_LEVELS, _INSIDE = ("_o", "_m", "_n"), "_i"  # suffixes of tile loops by level, and of the loops inside

Level = Mapping[str, int]


@dataclass(frozen=True)
class TiledGroup:
    """Stages that run together, tile by tile of the output."""

    output: str
    members: tuple[str, ...] = ()  # without the output
    tiles: tuple[Level, ...] = ()  # levels, outermost first: dim or reduction loop of the output -> extent
    order: tuple[str, ...] = ()  # of the output's dims, outermost first; as they are defined if it is empty
    threads: int = 1  # the fewest that a block of a GPU has; it has one for each point of a tile in any case
    of_warp: Level = field(default_factory=dict)  # the innermost tile, of each warp of a block of a GPU

    @property
    def stages(self) -> tuple[str, ...]:
        return (*self.members, self.output)


def marking(problem: Problem, style: Style = PLAIN, inlined: Collection[str] = ()) -> Marking:
    """The style of marking loops for the machine of a problem, of which these stages are inlined."""
    return (common.GpuMarking if problem.target.has_blocks else CpuMarking)(problem, style, inlined)


def scheduled(problem: Problem, group: TiledGroup, style: Style = PLAIN) -> Part:
    """Return the directives of all stages of a group, those of its output first."""
    graph, marks = problem.graph, marking(problem, style)
    output = _Output(problem, group, _levels(problem, group), marks)
    if marks.is_alone(output.stage, bool(output.levels), is_output=True) or (group.members and not output.levels):
        return tuple(chain for name in (group.output, *group.members) for chain in marks.alone(graph.stage[name]))
    chains = [output.chain()]
    needed = boxes(problem.facts, group.stages, group.output, output.innermost) if group.members else {}
    for name in group.members:
        stage = graph.stage[name]
        if marks.is_alone(stage, is_tiled=True):
            chains += marks.alone(stage)
            continue
        extents = {d: int(r.high - r.low + 1) for d, r in zip(stage.dims, needed[name], strict=True)}
        start = on(name).compute_at(group.output, output.innermost_tile_loop)
        chains.append(marks.member(stage, start, extents, chains[0]))
    return tuple(chains)


def _levels(problem: Problem, group: TiledGroup) -> tuple[Level, ...]:
    """The tile sizes that are smaller than what they divide, and those of warps. A level without any is left out."""
    sizes = problem.facts.every_loop(group.output)
    kept = []
    for level in group.tiles:
        smaller = {loop: n for loop, n in level.items() if n < sizes[loop]}
        sizes = {**sizes, **smaller}
        if smaller:
            kept.append(smaller)
    if kept and group.members and problem.target.has_blocks:
        kept[-1] = {**kept[-1], **_whole_dims(problem, group.output, kept)}
    return (*kept, group.of_warp) if kept and group.of_warp else tuple(kept)


def _whole_dims(problem: Problem, name: str, levels: Sequence[Level]) -> Level:
    """Short dims as tiles, if their extents are not constants: then what a block keeps for members has a constant
    size."""
    dims, output = problem.graph.stage[name].dims, problem.graph.output.get(name)
    known = [] if output is None else [d for d, n in zip(dims, output.shape, strict=True) if constant(n) is not None]
    cut = {*known, *(loop for level in levels for loop in level)}
    extents = dict(zip(dims, problem.facts.extents(name), strict=True))
    return {d: extents[d] for d in problem.facts.tileable(name) if d not in cut and extents[d] <= MOST_WHOLE}


@dataclass(frozen=True)
class _Output:
    """The loops of a group's output; all of its definitions are tiled alike."""

    problem: Problem
    group: TiledGroup
    levels: Sequence[Level]
    marks: Marking

    @cached_property
    def stage(self) -> Stage:
        return self.problem.graph.stage[self.group.output]

    @cached_property
    def extents(self) -> dict[str, int]:
        return self.problem.facts.every_loop(self.group.output)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The requested order of dims, with those of planes that share their work last, then reduction loops."""
        loops = tuple(dict.fromkeys([*self.group.order, *self.extents]))
        dims = sharing_last(self.problem, self.stage, [d for d in loops if d in self.stage.dims])
        return (*dims, *(r for r in loops if r not in dims))

    def tail(self, loop: str) -> str:
        """The tail strategy of a loop. A last tile that is shifted inwards is unaligned: it would gather reads of x //
        2 lane by lane, instead of loading a few values each of which serves two lanes. Warps have whole tiles."""
        is_row = loop == self.stage.dims[self.problem.row(self.stage.name)]
        return "guard" if is_row and self.has_halves and not self.group.of_warp else "auto"

    @cached_property
    def has_halves(self) -> bool:
        """Whether some stage of the group reads a coarser one."""
        return any(reads_halves(self.problem.graph.stage[name]) for name in self.group.stages)

    @cached_property
    def innermost(self) -> Level:
        """The extents of the innermost tiles."""
        return {loop: n for level in self.levels for loop, n in level.items()}

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The loops that each loop is split into, outermost first."""
        taken = set(self.extents)
        names = {}
        for loop in self.order:
            count = sum(loop in level for level in self.levels)
            suffixes = (*_LEVELS[:count], _INSIDE) if count else ()
            names[loop] = [fresh(loop.replace(".", "_") + s, taken.__contains__) for s in suffixes] or [loop]
            taken.update(names[loop])
        return names

    @cached_property
    def tile_loops(self) -> list[tuple[str, str, int]]:
        """The tile loops of all levels, outermost first: the loop, the name of its tile loop, and the number of
        tiles."""
        sizes = dict(self.extents)
        depth = dict.fromkeys(self.order, 0)
        loops = []
        for level in self.levels:
            for loop in self.order:
                if loop in level:
                    loops.append((loop, self.names[loop][depth[loop]], -(-sizes[loop] // level[loop])))
                    depth[loop], sizes[loop] = depth[loop] + 1, level[loop]
        return loops

    @property
    def innermost_tile_loop(self) -> str:
        """The loop at which other members are computed."""
        pure = [name for loop, name, _ in self.tile_loops if loop in self.stage.dims]
        return (pure or [name for _, name, _ in self.tile_loops])[-1]

    def chain(self) -> StageSchedule:
        chain = self.problem.alone.stored(self.stage, on(self.stage.name).compute_root())
        for k, definition in enumerate(self.stage.definitions):
            loops, start = self._loops(definition), chain if k == 0 else chain.update(k - 1)
            if loops.is_parallel and (self.levels or not loops.is_scan):
                marked = self.marks.tiled(loops, self._split(loops, start))
            else:
                marked = self.marks.untiled(loops, start)
            chain = chain if marked == start else marked
        return chain

    def _loops(self, definition: Definition) -> DefinitionLoops:
        own = loop_names(self.stage, definition)
        return DefinitionLoops(
            self.stage,
            definition,
            order=[loop for loop in self.order if loop in own],
            extents={**self.extents, **self.innermost},
            split=self.names,
            tiles=[tile for tile in self.tile_loops if tile[0] in own],
            has_members=bool(self.group.members),
            threads=self.group.threads,
        )

    def _split(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        for loop in loops.order:
            if loop in self.group.of_warp:
                chain = self._warps(loop, chain)
                continue
            factors = [level[loop] for level in self.levels if loop in level]
            current = loop
            for factor, (outer, inner) in zip(factors, pairwise(self.names[loop]), strict=True):
                chain = chain.split(current, outer, inner, factor, tail=self.tail(loop))
                current = inner
        return chain

    def _warps(self, loop: str, chain: StageSchedule) -> StageSchedule:
        """Split a loop into tiles of warps, several of which make a block. In a clipped block, no tile becomes
        larger."""
        outer, middle, inner = self.names[loop]
        tile, each = self.group.of_warp[loop], fresh(loop + "_w", {*self.names[loop], *self.extents}.__contains__)
        block = self.levels[0][loop] // tile
        return chain.split(loop, each, inner, tile, tail=self.tail(loop)).split(each, outer, middle, block)


def reads_halves(stage: Stage) -> bool:
    """Whether a stage reads something at x // 2."""
    indices = (i for d in stage.definitions for a in accesses(stage, d) for i in a.indices)
    return any(i is not None and i.scale.denominator > 1 for i in indices)
