"""polymage: the heuristic that polymage-plus starts from (§2.2; Mullapudi et al. 2015), and its auto-tuner (§7.4.1).

At first every stage is a group. Repeatedly, of the groups with a single child, the largest is merged with it for which
dependences can be made constant and the overlap of the merged tiles is less than a given fraction of them. All groups
have the same tile sizes, along two dims. Nothing is inlined, apart from boundary conditions, crops, and short sums
inside expressions, which are PolyMage's Stencil.

A group of one stage has tiles only if it gains from them, as transposes do (`fusion/stage_facts`). PolyMage tiles no
such group: "no point in tiling a group that has no dependencies", its source says (`fused_schedule`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from operator import itemgetter
from typing import ClassVar, TypeVar

from ..dataclass import cached_property, dataclass, memoized
from ..parameters import Count, Weight
from ..progress import step
from ..schedule.schedule import Schedule
from .common.legalize import legal
from .common.tiles import TiledGroup, scheduled
from .fusion.alignment import StageGraph
from .fusion.dag import Group as Set
from .fusion.dag import vertices
from .fusion.expression_inlining import NONE
from .fusion.overlapped_tiles import OverlappedTiles, Tile
from .fusion.stage_facts import cropped, streams
from .strategy import Found, GroupReport, Problem, Report, Strategy

# "Seven tile sizes" (§7.4.1, §7.5): five are named in the one, with 24, and six in the other, seven in all.
TILE_SIZES = (8, 16, 24, 32, 64, 128, 256)
TOLERANCES = (0.2, 0.4, 0.5)
T = TypeVar("T")
WIDTH = 24


@dataclass(frozen=True)
class Polymage(Strategy):
    """Tile sizes of the two outermost dims that are long, and the greatest overlap as a fraction of a tile."""

    name: ClassVar[str] = "polymage"
    tile_sizes: tuple[Count, Count] = (32, 256)
    tolerance: Weight = 0.4

    def find(self, problem: Problem) -> Found:
        before = problem.facts.trivial
        before += cropped(problem.inlined(before))
        small = problem.inlined(before)
        merging = _Merging(StageGraph(small), self)
        groups = [merging.as_group(g) for g in merging.groups]
        result = legal(problem, [scheduled(small, g) for g in groups], before)
        reports = tuple(merging.report(s, g) for s, g in zip(merging.groups, groups, strict=True))
        counts = {"merges": merging.merges, "stages": len(small.graph.stages)}
        report = Report(self.name, problem.machine.name, asdict(self), reports, before, counts, result.remarks)
        return Found(result.schedule, report)


class _Merging:
    """The merging of groups; `groups` are those that remain when no two can be merged."""

    def __init__(self, stages: StageGraph, parameters: Polymage) -> None:
        self.stages = stages
        self.parameters = parameters
        self.groups: list[Set] = [1 << v for v in range(stages.dag.count)]
        self.merges = 0
        while (pair := self._next()) is not None:
            self.groups = [*(g for g in self.groups if g not in pair), pair[0] | pair[1]]
            self.merges += 1
        self.groups.sort(key=lambda g: g & -g)

    def _next(self) -> tuple[Set, Set] | None:
        """The largest group that can be merged with its only child, and that child."""
        dag = self.stages.dag.contracted(self.groups)
        children = zip(self.groups, dag.successors, strict=True)
        with_child = [(g, self.groups[next(vertices(after))]) for g, after in children if after.bit_count() == 1]
        by_size = sorted(with_child, key=lambda pair: (-self._size(pair[0]), pair[0]))
        return next(((g, child) for g, child in by_size if self._may_merge(g | child)), None)

    def _size(self, group: Set) -> int:
        return sum(self._sizes[v] for v in vertices(group))

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.stages.size[name] for name in self.stages.names]

    def _may_merge(self, union: Set) -> bool:
        overlap = self._merged_overlap(union)
        return overlap is not None and overlap < self.parameters.tolerance

    @memoized
    def _merged_overlap(self, union: Set) -> float | None:
        """The overlap of a merged group; None if it cannot be a group, for example because it has an output of the
        pipeline inside, which would be a second live-out."""
        shape = self._shape(union) if len(self.stages.live_outs(union)) == 1 else None
        return None if shape is None else self._relative_overlap(shape)

    def _shape(self, group: Set) -> OverlappedTiles | None:
        aligned = None if self.stages.is_hopeless(group) else self.stages.aligned(group)
        return None if aligned is None else OverlappedTiles(aligned, NONE)

    def _relative_overlap(self, shape: OverlappedTiles) -> float:
        tile = self._tile(shape)
        whole = {shape.group.dims[k]: shape.group.extents[k] for k in shape.long}
        return shape.overlap({**whole, **tile}) / shape.bytes({**whole, **tile})

    def _tile(self, shape: OverlappedTiles) -> Tile:
        sizes = zip(shape.long, self.parameters.tile_sizes, strict=False)
        return {shape.group.dims[k]: min(n, shape.group.extents[k]) for k, n in sizes}

    def as_group(self, group: Set) -> TiledGroup:
        *members, output = self.stages.members(group)
        shape = self._shape(group)
        is_tiled = shape is not None and (members or not streams(self.stages.problem, output))
        tile = self._tile(shape) if shape is not None and is_tiled else {}
        return TiledGroup(output, tuple(members), (tile,) if tile else ())

    def report(self, group: Set, scheduled: TiledGroup) -> GroupReport:
        shape = self._shape(group)
        if shape is None:
            why = "not a function with known limits: scheduled on its own"
            return GroupReport(scheduled.output, scheduled.members, remarks=(why,))
        costs = {"relative overlap": self._relative_overlap(shape)}
        return GroupReport(scheduled.output, scheduled.members, scheduled.tiles, costs)


@dataclass(frozen=True)
class TunedPolymage(Strategy):
    """PolyMage-A: tries all tile sizes and tolerances, as many as `budget` seconds allow, and keeps the fastest
    schedule.

    Ctrl-C ends it early, with the fastest one so far. Nothing is remembered: to use the schedule again, save it.
    """

    name: ClassVar[str] = "polymage_tuned"
    measures: ClassVar[bool] = True
    tile_sizes: tuple[Count, ...] = TILE_SIZES
    tolerances: tuple[Weight, ...] = TOLERANCES
    budget: Weight = 120.0

    def find(self, problem: Problem) -> Found:
        measured: dict[Schedule, tuple[float, Found]] = {}
        stopped: tuple[str, ...] = ()
        try:
            self._measure(problem, measured)
        except KeyboardInterrupt:
            if not measured:
                raise
            stopped = ("stopped by the keyboard: the best of what was tried until then",)
        seconds, best = min(measured.values(), key=itemgetter(0))
        counts = {"schedules tried": len(measured), "best ms": 1e3 * seconds}
        remarks = (*best.report.remarks, *stopped)
        return Found(best.schedule, replace(best.report, strategy=self.name, counts=counts, remarks=remarks))

    def _measure(self, problem: Problem, measured: dict[Schedule, tuple[float, Found]]) -> None:
        """Fill in the seconds of each schedule, while there is time."""
        points = list(self._points())
        for point in within(self.budget, "tuning", points, len(points)):
            result = point.find(problem)
            if result.schedule not in measured:
                measured[result.schedule] = problem.seconds(result.schedule), result

    def _points(self) -> Iterator[Polymage]:
        """The points of the search from the middle outwards, so that a short budget sees the likeliest ones."""
        inner = sorted(self.tile_sizes, key=lambda n: abs(n - 256))
        outer = sorted(self.tile_sizes, key=lambda n: abs(n - 32))
        for x in inner:
            for y in outer:
                for tolerance in self.tolerances:
                    yield Polymage((y, x), tolerance)


def within(budget: float, what: str, items: Iterable[T], total: int, told: Callable[[str], None] = step) -> Iterator[T]:
    """Yield as many items as there is time for, but at least one. A terminal shows the progress."""
    start = time.monotonic()
    for k, item in enumerate(items):
        spent = time.monotonic() - start
        if k and spent > budget:
            break
        part = max(k / total, min(1.0, spent / budget) if budget > 0 else 1.0)
        bar = f"{'#' * int(WIDTH * part):<{WIDTH}}"
        told(f"{what} [{bar}] {k}/{total}, {spent:.0f} of {budget:.0f} s; Ctrl-C takes the best so far")
        yield item
