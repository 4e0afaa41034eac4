"""A segment of a pipeline: stages fused into the last of them, each computed and stored at one of its loops.

Levels are the loops of that last stage, counted from the innermost one as D_m of sioutas-thesis chapter 5 is: 0 is the
innermost loop inside a tile, and the number of these loops stands for the innermost loop over tiles.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import field, replace

from ...cached import cached_property
from ...dataclass import dataclass
from ..report import GroupReport


@dataclass(frozen=True)
class Level:
    """S_i: where a stage is computed and stored. Equal levels: nothing slides and nothing is folded."""

    compute: int
    store: int

    @property
    def is_folded(self) -> bool:
        return self.compute != self.store


INLINE = Level(-1, -1)


def through_inlined(
    name: str, neighbours: Mapping[str, Sequence[str]], levels: Mapping[str, Level]
) -> tuple[set[str], set[str]]:
    """The neighbours of a stage (producers, or consumers) once others are inlined, and the inlined ones in between."""
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
    """D_m: the loops inside a tile; of those over tiles only the innermost one matters here."""

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
        """The level inside which the vector loop runs. What is computed a vector at a time instead has no loop of its
        own whose edges could be cut off, and starts as often as there are vectors."""
        return self.innermost + 1

    @property
    def tile(self) -> int:
        """The innermost loop over tiles."""
        return len(self.loops)

    def level(self, loop: str) -> int:
        return self.loops.index(loop)

    def at(self, level: int) -> Level:
        """Computed and stored at a level, or at the tile if there is none."""
        return Level(min(level, self.tile), min(level, self.tile))

    def inside(self, level: int) -> frozenset[str]:
        """The loops inside an iteration of a level."""
        return frozenset(self.loops[:level])


@dataclass(frozen=True)
class Tiling:
    """What Algorithm 6 finds for a segment."""

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
        """The tiling without members that are neither among these stages nor inlined: nothing reads them once all
        inlining is done."""
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
