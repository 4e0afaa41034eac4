"""Marking: which kinds of loops run the loops of a stage. Grouping says which loops there are, one style per kind of
machine (`styles`) marks them:

    CPU    tile loops in parallel, a vector innermost, short loops written out around it
    GPU    tile loops as blocks, the loops inside of tiles as threads
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from ...cached import cached_property
from ...dataclass import dataclass
from ...expr.visit import variables
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule
from ...schedule.stage_default import FEWEST_LANES
from ...schedule.updates import is_independent, pure_dims
from ..strategy import Problem

Part = tuple[StageSchedule, ...]  # the directives of some stages


@dataclass(frozen=True)
class Style:
    """How much runs at once."""

    vectors: int = 1  # registers of the widest type per iteration, on a CPU
    parallelism: int | None = None  # iterations to share among threads, if there are so many; None: as many as threads


PLAIN = Style()


@dataclass(frozen=True)
class DefinitionLoops:
    """The loops of one definition, before any directive."""

    stage: Stage
    definition: Definition

    @cached_property
    def free(self) -> tuple[str, ...]:
        return pure_dims(self.stage, self.definition)

    @cached_property
    def reductions(self) -> list[str]:
        return [r.name for r in self.definition.domain]

    @property
    def names(self) -> list[str]:
        return [*self.free, *self.reductions]

    @property
    def is_scan(self) -> bool:
        """Whether what is written moves with a reduction loop."""
        moving = {v for i in self.definition.indices for v in variables(i)}
        return not moving.isdisjoint(self.reductions)

    @property
    def is_parallel(self) -> bool:
        """Whether its dims may run in any order; a scan stays as it is defined."""
        return bool(self.free) and all(is_independent(self.stage, self.definition, d) for d in self.free)


@dataclass(frozen=True)
class SplitLoops:
    """What the loops of a definition were split into."""

    now: Sequence[str]  # all loops, in their order so far
    order: Sequence[str]  # the loops before they were split, in the order to bring them in
    extents: Mapping[str, int]  # of these inside of a tile
    called: Mapping[str, str]  # what they are called there
    tiles: Sequence[tuple[str, str, int]] = ()  # outermost first: a loop, its tile loop, and the number of tiles
    has_members: bool = False  # at whose tiles other stages are computed

    @staticmethod
    def whole(loops: DefinitionLoops, order: Sequence[str], extents: Mapping[str, int]) -> SplitLoops:
        """Loops that are not split."""
        return SplitLoops(loops.names, order, extents, {n: n for n in loops.names})

    def inside(self, loops: DefinitionLoops) -> dict[str, int]:
        """The loops over dims inside of a tile, with their extents."""
        return {self.called[d]: self.extents[d] for d in self.order if d in loops.free}


@dataclass(frozen=True)
class Marking(ABC):
    """A style of marking loops, on the machine of a problem."""

    problem: Problem
    style: Style = PLAIN
    inlined: Collection[str] = ()  # stages of the problem that are not computed by themselves

    @abstractmethod
    def at_root(self, stage: Stage) -> Part:
        """The directives of a stage on its own, and of its partial results."""

    @abstractmethod
    def in_parts(self, stage: Stage) -> Part:
        """The directives of a reduction to one value or to few, and of its partial results; () for other stages."""

    @abstractmethod
    def is_apart(self, stage: Stage) -> bool:
        """Whether a stage is in no group."""

    @abstractmethod
    def needs_tiles(self, stage: Stage) -> bool:
        """Whether a stage that has no tiles is scheduled on its own."""

    @abstractmethod
    def tileable(self, stage: Stage) -> Sequence[str]:
        """The loops of a group's output that may be tiled."""

    @abstractmethod
    def tiled(self, loops: DefinitionLoops, split: SplitLoops, chain: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition of a group's output, at whose tiles other members may be computed."""

    @abstractmethod
    def inside(self, loops: DefinitionLoops, split: SplitLoops, chain: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition that is computed inside of a tile of another stage."""

    @abstractmethod
    def unsplit(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition of a group's output that is not tiled."""

    def stored(self, stage: Stage, chain: StageSchedule) -> StageSchedule:
        """The layout of a stage in memory."""
        return chain

    def member(self, stage: Stage, chain: StageSchedule, extents: Mapping[str, int]) -> StageSchedule:
        """Mark the loops of a stage that is computed inside a tile, over such extents of its dims."""
        chain = self.stored(stage, chain)
        for k, definition in enumerate(stage.definitions):
            loops, start = DefinitionLoops(stage, definition), chain if k == 0 else chain.update(k - 1)
            order = sharing_last(self.problem, stage, loops.free)
            marked = self.inside(loops, SplitLoops.whole(loops, order, extents), start)
            chain = chain if marked == start else marked
        return chain


def sharing_last(problem: Problem, stage: Stage, dims: Sequence[str]) -> list[str]:
    """The dims, with those last that are few planes, such as colours, and share much of their work: computed one after
    the other for a point, they do it once."""
    behind = [d for d in dims if d != stage.dims[-1] and _is_shared(problem, stage, d)]
    return [*(d for d in dims if d not in behind), *behind]


def _is_shared(problem: Problem, stage: Stage, dim: str) -> bool:
    extent = problem.facts.extents(stage.name)[stage.dims.index(dim)]
    return not stage.updates and 1 < extent < FEWEST_LANES and problem.alone.shared_work.is_worth_sharing(stage, dim)


def reordered(chain: StageSchedule, now: Sequence[str], wanted: Sequence[str]) -> StageSchedule:
    """The loops in another order, if it is another."""
    return chain if list(now) == list(wanted) else chain.reorder(*wanted)
