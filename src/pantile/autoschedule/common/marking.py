"""Marking decides how the loops of a stage run. Grouping decides which loops there are, and one style per kind of
machine marks them:

    CPU    tile loops in parallel, a vector innermost, short loops unrolled around it
    GPU    tile loops as blocks, the loops inside of tiles as threads
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from ...dataclass import cached_property, dataclass
from ...expr.visit import variables
from ...graph.nodes import Definition, Stage
from ...schedule.directives import SUFFIX, StageSchedule
from ...schedule.stage_default import FEWEST_LANES
from ...schedule.updates import is_independent, loop_names, pure_dims
from ..strategy import Problem

Part = tuple[StageSchedule, ...]  # the directives of some stages
Names = Sequence[str]


@dataclass(frozen=True)
class Style:
    """How much runs at once."""

    vectors: int = 1  # registers of the widest type per iteration, on a CPU
    parallelism: int | None = None  # iterations to share among threads, if there are so many; None: as many as threads
    points: int = 1  # of a tile for each thread of a GPU, if enough threads remain
    threads: Mapping[str, int] = field(default_factory=dict)  # of a block, along dims of the output, where that matters
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # stage -> lanes by dim, if warps have tiles
    registers: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # stage -> dim, count of its last entries


PLAIN = Style()


@dataclass(frozen=True)
class Innermost:
    """A loop to vectorize or unroll: by the factor `count`, or as a whole."""

    loop: str
    verb: str
    count: int | None = None

    @property
    def part(self) -> str:
        """The innermost loop that the split creates; the loop itself if it is not split."""
        return self.loop if self.count is None else self.loop + SUFFIX[self.verb]

    def mark(self, chain: StageSchedule) -> StageSchedule:
        mark = chain.vectorize if self.verb == "vectorize" else chain.unroll
        return mark(self.loop) if self.count is None else mark(self.loop, self.count)


def vector(loop: str, lanes: int | None = None) -> Innermost:
    return Innermost(loop, "vectorize", lanes)


def unrolled(loop: str, count: int | None = None) -> Innermost:
    return Innermost(loop, "unroll", count)


@dataclass(frozen=True)
class DefinitionLoops:
    """The loops of one definition, some of which are split into tiles."""

    stage: Stage
    definition: Definition
    order: Names  # the wanted order, reduction loops last
    extents: Mapping[str, int]  # inside of a tile
    split: Mapping[str, Names]  # loop -> what it was split into, outermost first
    tiles: Sequence[tuple[str, str, int]] = ()  # outermost first: a loop, its tile loop, and the number of tiles
    has_members: bool = False  # whether other stages are computed at its tiles
    threads: int = 1  # the fewest that a block of a GPU has; for a member, as many as it has

    @cached_property
    def free(self) -> tuple[str, ...]:
        return pure_dims(self.stage, self.definition)

    @cached_property
    def called(self) -> dict[str, str]:
        """The name of each loop inside of a tile."""
        return {n: self.split[n][-1] if n in self.split else n for n in loop_names(self.stage, self.definition)}

    @cached_property
    def now(self) -> list[str]:
        """All loops in their current order."""
        return [name for n in self.called for name in self.split.get(n, (n,))]

    @cached_property
    def inside(self) -> dict[str, int]:
        """The loops over dims inside of a tile, with their extents."""
        return {self.called[d]: self.extents[d] for d in self.order if d in self.free}

    @cached_property
    def reductions(self) -> list[str]:
        """The reduction loops inside of a tile."""
        return [self.called[r.name] for r in self.definition.domain]

    @property
    def is_scan(self) -> bool:
        """Whether the indices that are written move with a reduction loop."""
        moving = {v for i in self.definition.indices for v in variables(i)}
        return not moving.isdisjoint(r.name for r in self.definition.domain)

    @property
    def is_parallel(self) -> bool:
        """Whether the dims may run in any order; a scan stays as it is defined."""
        return bool(self.free) and all(is_independent(self.stage, self.definition, d) for d in self.free)


@dataclass(frozen=True)
class Marking(ABC):
    """A style of marking loops for the machine of a problem, some of whose stages are inlined."""

    problem: Problem
    style: Style = PLAIN
    inlined: Collection[str] = ()

    @abstractmethod
    def at_root(self, stage: Stage) -> Part:
        """Schedule a stage on its own, in a way that is always legal."""

    def alone(self, stage: Stage) -> Part:
        """Schedule a stage on its own as well as possible."""
        return self.at_root(stage)

    @abstractmethod
    def in_parts(self, stage: Stage) -> Part:
        """Schedule a reduction to one value or to few, and its partial results; () for other stages."""

    @abstractmethod
    def is_alone(self, stage: Stage, is_tiled: bool, is_output: bool = False) -> bool:
        """Whether a stage is better on its own than in a group, or than as the output of one."""

    @abstractmethod
    def untiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition of a group's output that cannot be tiled."""

    @abstractmethod
    def tiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition of a group's output."""

    @abstractmethod
    def inside(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition that is computed inside of a tile of another stage."""

    @abstractmethod
    def nest(
        self, chain: StageSchedule, parts: Sequence[Innermost] = (), order: Names = (), shared: Names = ()
    ) -> StageSchedule:
        """Mark loops that a strategy has split by itself: the innermost `parts`, and the outermost loops, which are
        `shared` among threads or blocks. `order` is the order of all loops and parts; it does not change if this is
        empty."""

    def threads(self, host: StageSchedule) -> int:
        """The number of threads of a block that compute the tiles of a stage."""
        return 1

    def member(
        self, stage: Stage, chain: StageSchedule, extents: Mapping[str, int], host: StageSchedule | None = None
    ) -> StageSchedule:
        """Mark the loops of a stage that is computed inside a tile, over these extents of its dims. `host` is the
        schedule of the output of the tile, if it is known."""
        chain = self.problem.alone.stored(stage, chain)
        order, threads = sharing_last(self.problem, stage, stage.dims), 1 if host is None else self.threads(host)
        for k, definition in enumerate(stage.definitions):
            start = chain if k == 0 else chain.update(k - 1)
            marked = self.inside(DefinitionLoops(stage, definition, order, extents, {}, threads=threads), start)
            chain = chain if marked == start else marked
        return chain


def sharing_last(problem: Problem, stage: Stage, dims: Names) -> list[str]:
    """Return the dims, with those last that are few planes, such as colours, and share much of their work. If the
    planes of a point are computed consecutively, this work is done once."""

    def is_shared(dim: str) -> bool:
        extent = problem.facts.extents(stage.name)[stage.dims.index(dim)]
        few = not stage.updates and 1 < extent < FEWEST_LANES and dim != stage.dims[-1]
        return few and problem.alone.shared_work.is_worth_sharing(stage, dim)

    return sorted(dims, key=is_shared)


def reordered(chain: StageSchedule, now: Names, wanted: Names) -> StageSchedule:
    """Reorder the loops, unless they have the wanted order already."""
    return chain if list(now) == list(wanted) else chain.reorder(*wanted)
