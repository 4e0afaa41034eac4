"""greedy: halide-autoscheduler §4 (Mullapudi et al. 2016).

Inline what is cheaper to repeat (§4.3), tile each remaining stage for reuse of its inputs (§4.2.1, Listing 1), then
merge, again and again, the two groups whose merging saves most (§4.2.2, §4.2.3, Listing 2), and turn the groups into
loops (§4.4). Loads are counted in values, all from memory, unless a tile keeps what it reads in the cache.

A stage counts as one function with all of its updates (the paper allows one). Stages whose loops carry values from one
iteration to the next are not tiled, and neither are those that data may read anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..schedule.updates import is_independent, pure_dims
from . import footprint
from .facts import Facts
from .inlining import Inlining
from .legal import legal
from .report import GroupReport, Report
from .strategy import Found, Problem, Strategy
from .tiles import Group, Style, scheduled

KB = 1 << 10
SIZES = (1, 4, 8, 16, 32, 64, 128, 256)  # of tiles, along each dim
LANES_PER_TILE = 4  # the least extent of a tile along the innermost dim, in vectors

Tile = Mapping[str, int]


@dataclass(frozen=True)
class Greedy(Strategy):
    """The parameters of §5.1; what is None is chosen for the machine as §5.1 and §5.4 choose it."""

    name: ClassVar[str] = "greedy"

    vector_width: int | None = None  # twice the native width for 32-bit data
    parallelism_threshold: int | None = None  # "a small multiple of core count"
    cache_size: int | None = None  # per-core fraction of L2
    load_cost: float = 10.0

    def find(self, problem: Problem) -> Found:
        return _Search(problem, self._for(problem)).found()

    def _for(self, problem: Problem) -> Greedy:
        machine = problem.machine
        return Greedy(
            self.vector_width or 2 * machine.lanes(32),
            self.parallelism_threshold or 2 * machine.cores,
            self.cache_size or machine.l2.per_core,
            self.load_cost,
        )


@dataclass(frozen=True)
class TunedGreedy(Strategy):
    """The best of six, measured: "a reduced auto-tuning search that varies only CACHE_SIZE and LOAD_COST" (§5.1)."""

    name: ClassVar[str] = "greedy_tuned"

    cache_sizes: tuple[int, ...] = (32 * KB, 128 * KB, 256 * KB)
    load_costs: tuple[float, ...] = (10.0, 20.0)

    def find(self, problem: Problem) -> Found:
        points = [Greedy(cache_size=size, load_cost=cost) for size in self.cache_sizes for cost in self.load_costs]
        found = [p.find(problem) for p in points]
        different = {f.schedule: f for f in reversed(found)}
        seconds = {s: problem.seconds(s) for s in different}
        best = min(found, key=lambda f: seconds[f.schedule])
        counts = {"schedules tried": len(different), "best ms": 1e3 * seconds[best.schedule]}
        return Found(best.schedule, replace(best.report, strategy=self.name, counts=counts))


@dataclass(frozen=True)
class _Cost:
    """Of a group: operations, and values loaded from memory."""

    arithmetic: float
    loads: float

    def total(self, load_cost: float) -> float:
        return self.arithmetic + load_cost * self.loads


@dataclass(frozen=True)
class _Merge:
    """What merging the group of `producer` into that of `consumer` saves at best, and with which tile."""

    producer: str
    consumer: str
    benefit: float
    tile: Tile
    cost: _Cost


class _Search:
    """Groups are known by their outputs."""

    def __init__(self, problem: Problem, parameters: Greedy) -> None:
        self.original, self.parameters = problem, parameters
        self.inlining = Inlining(problem, parameters.load_cost)
        self.problem = problem.inlined(self.inlining.names)
        self.facts: Facts = self.problem.facts
        stages = [s.name for s in self.problem.graph.stages]
        self.group_of = {name: name for name in stages}
        self.members: dict[str, tuple[str, ...]] = {name: (name,) for name in stages}  # the output last
        self.tile: dict[str, Tile] = {name: self.tile_singleton_group(name) for name in stages}
        self.benefit: dict[str, float] = dict.fromkeys(stages, 0.0)
        self._merges: dict[tuple[str, str], _Merge | None] = {}

    def found(self) -> Found:
        while merge := self.best_merge():
            self.merge(merge)
        groups = [self.as_group(name) for name in self.members]
        style = Style(parallelism=self.parameters.parallelism_threshold)
        result = legal(self.original, [scheduled(self.problem, g, style) for g in groups], self.inlining.names)
        report = Report(
            Greedy.name, self.problem.machine.name, asdict(self.parameters),
            tuple(self.report(g) for g in groups), tuple(self.inlining.names), {}, result.remarks,
        )  # fmt: skip
        return Found(result.schedule, report)

    def report(self, group: Group) -> GroupReport:
        cost = self.cost(self.members[group.output], self.tile[group.output])
        costs = {"arithmetic": cost.arithmetic, "loads": cost.loads, "benefit of merging": self.benefit[group.output]}
        return GroupReport(group.output, group.members, group.tiles, costs)

    # ---- §4.2.2: which groups could be merged

    def opportunities(self) -> Iterator[tuple[str, str]]:
        """Producer and consumer groups: the output of the one is consumed by functions in exactly one group."""
        for producer in self.members:
            consumers = {self.group_of[c] for c in self.facts.consumers[producer]}
            if len(consumers) == 1 and producer not in self.problem.graph.output:
                yield producer, consumers.pop()

    def best_merge(self) -> _Merge | None:
        """The merge that yields the greatest performance benefit, if there is one that provides any."""
        merges = [m for pair in self.opportunities() if (m := self._evaluated(*pair)) is not None]
        return max(merges, key=lambda m: m.benefit, default=None)

    def _evaluated(self, producer: str, consumer: str) -> _Merge | None:
        if (producer, consumer) not in self._merges:
            self._merges[producer, consumer] = self.evaluate_group_merge(producer, consumer)
        return self._merges[producer, consumer]

    def merge(self, m: _Merge) -> None:
        moved = self.members.pop(m.producer)
        self.members[m.consumer] = (*moved, *self.members[m.consumer])
        self.group_of.update(dict.fromkeys(moved, m.consumer))
        self.tile[m.consumer] = m.tile
        self.benefit[m.consumer] += m.benefit
        self._merges = {pair: e for pair, e in self._merges.items() if not {m.producer, m.consumer} & set(pair)}

    # ---- §4.2.1: Listing 1

    def tile_singleton_group(self, name: str) -> Tile:
        """The tile that loads least; none for pure functions, which "exhibit high input locality without tiling"."""
        if not self.problem.graph.stage[name].updates or not self.is_tileable(name):
            return {}
        tiles = self.tiles_of(name, (name,))
        untiled = self.cost((name,), {})
        num_tiles = footprint.tiles(self.facts, name, tiles)
        loads, in_cache = self.tile_loads((name,), name, tiles)
        benefit = np.where(self.is_small_enough(num_tiles, in_cache), untiled.loads - num_tiles * loads, 0)
        best = int(np.argmax(benefit))
        return {loop: int(sizes[best]) for loop, sizes in tiles.items()} if benefit[best] > 0 else {}

    def is_small_enough(self, num_tiles: Any, in_cache: Any) -> Any:
        """Listing 1 line 17, Listing 2 line 30."""
        return (num_tiles >= self.parameters.parallelism_threshold) & (in_cache <= self.parameters.cache_size)

    # ---- §4.2.3: Listing 2

    def evaluate_group_merge(self, producer: str, consumer: str) -> _Merge | None:
        members = (*self.members[producer], *self.members[consumer])
        if not all(map(self.is_tileable, members)):
            return None
        costs = [self.cost(self.members[g], self.tile[g]) for g in (producer, consumer)]
        no_merge_cost = sum(c.total(self.parameters.load_cost) for c in costs)
        tiles = self.tiles_of(consumer, members)
        num_tiles = footprint.tiles(self.facts, consumer, tiles)
        loads, in_cache = self.tile_loads(members, consumer, tiles)
        arithmetic = self.tile_arithmetic(members, consumer, tiles)
        merge_cost = num_tiles * (arithmetic + self.parameters.load_cost * loads)
        benefit = np.where(self.is_small_enough(num_tiles, in_cache), no_merge_cost - merge_cost, -1)
        best = int(np.argmax(benefit))
        if benefit[best] <= 0:
            return None
        tile = {loop: int(sizes[best]) for loop, sizes in tiles.items()}
        cost = _Cost(float((num_tiles * arithmetic)[best]), float((num_tiles * loads)[best]))
        return _Merge(producer, consumer, float(benefit[best]), tile, cost)

    def is_tileable(self, name: str) -> bool:
        """Whether all its dims may run in any order, over a box that is known."""
        stage = self.problem.graph.stage[name]
        return self.facts.is_limited(name) and all(
            is_independent(stage, d, dim) for d in stage.definitions for dim in pure_dims(stage, d)
        )

    def cost(self, members: Sequence[str], tile: Tile) -> _Cost:
        """Of a whole group (arith_cost and group_loads of Listing 2); without a tile, every load is a miss."""
        output = members[-1]
        if not tile:
            return _Cost(self.facts.work(output), sum(self.loads_untiled(output)))
        count = footprint.tiles(self.facts, output, tile)
        loads, _ = self.tile_loads(members, output, tile)
        return _Cost(float(count * self.tile_arithmetic(members, output, tile)), float(count * loads))

    def loads_untiled(self, name: str) -> Iterator[float]:
        for k in range(len(self.problem.graph.stage[name].definitions)):
            others = sum(n for source, n in self.facts.reads(name, k).items() if source != name)
            yield float(others * self.facts.runs(name, k))

    def tile_loads(self, members: Sequence[str], output: str, tile: Mapping[str, Any]) -> tuple[Any, Any]:
        """group_tile_loads: values read from other groups. group_tile_footprint: bytes to keep in the cache."""
        needed = footprint.boxes(self.facts, members, output, tile)
        outside = [name for name in needed if name not in members]
        loads = sum(footprint.points(needed[name]) for name in outside)
        kept = [name for name in needed if name != output]
        return loads, sum(footprint.size(self.facts, name, needed[name]) for name in kept)

    def tile_arithmetic(self, members: Sequence[str], output: str, tile: Mapping[str, Any]) -> Any:
        """arith_cost of one tile: the work of each member, in proportion to its points."""
        needed = footprint.boxes(self.facts, members, output, tile)
        parts: Any = 1.0
        for loop, extent in self.facts.every_loop(output).items():
            if loop in tile and loop not in self.problem.graph.stage[output].dims:
                parts = parts * np.asarray(tile[loop]) / extent
        per_point = {m: self.facts.work(m) / self.facts.points(m) for m in members}
        work = sum(footprint.points(needed[m]) * per_point[m] for m in members if m != output and m in needed)
        return work + footprint.points(needed[output]) * per_point[output] * parts

    # ---- tile sizes to try (§4.2.3, "Generating tile sizes")

    def tiles_of(self, output: str, members: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
        """Hypercubes, and boxes elongated along the dims of greatest reuse; per loop, one size of each tile."""
        reuse = self.reuse(output, members)
        extents = self.facts.every_loop(output)
        dims = self.problem.graph.stage[output].dims
        loops = sorted(extents if len(members) == 1 else dims, key=lambda loop: -reuse[loop])
        tiles = [dict.fromkeys(loops, size) for size in SIZES]
        for k, loop in enumerate(loops):
            longer = dict.fromkeys(loops[:k], SIZES[-1])
            tiles += [{**dict.fromkeys(loops, SIZES[0]), **longer, loop: size} for size in SIZES]
            whole = {other: extents[other] for other in loops if other != loop}
            tiles += [{**whole, loop: size} for size in SIZES]
        assert self.parameters.vector_width is not None
        least = LANES_PER_TILE * self.parameters.vector_width
        for tile in tiles:
            tile.update({d: max(tile[d], least) for d in dims[-1:]})
        return {loop: np.array([min(t[loop], extents[loop]) for t in tiles]) for loop in loops}

    def reuse(self, output: str, members: Sequence[str]) -> dict[str, float]:
        """Per-direction input reuse (§4.1): values that two adjacent strips, one thick, both need."""
        return {loop: self._overlap(output, members, loop) for loop in self.facts.every_loop(output)}

    def _overlap(self, output: str, members: Sequence[str], loop: str) -> float:
        one, two = (footprint.boxes(self.facts, members, output, {loop: thickness}) for thickness in (1, 2))
        shared = [2 * footprint.points(one[n]) - footprint.points(two[n]) for n in one if n != output and n in two]
        return float(sum(max(0, int(s)) for s in shared))

    # ---- §4.4

    def as_group(self, output: str) -> Group:
        """Loops in the order of reuse, the least outermost; the innermost dim stays where it is."""
        members = self.members[output]
        dims = self.problem.graph.stage[output].dims
        reuse = self.reuse(output, members) if self.is_tileable(output) else dict.fromkeys(dims, 0.0)
        order = (*sorted(dims[:-1], key=lambda d: reuse[d]), *dims[-1:])
        others = tuple(m for m in members if m != output)
        return Group(output, others, (self.tile[output],) if self.tile[output] else (), order)
