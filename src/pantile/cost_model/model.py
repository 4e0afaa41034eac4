"""The predicted time of a call under any schedule, and its causes.

The cost of a schedule follows from what its loops execute: `nest` says how often each stage is computed over which box,
`body` what an iteration of an innermost loop executes, and `traffic` which bytes come from which cache. This module
turns these into seconds, shared by cores. No loop is lowered and nothing is compiled, so a search can afford to predict
the cost of hundreds of schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from math import ceil, prod
from typing import Any, TypeVar

from ..dataclass import cached_property, dataclass, memoized
from ..expr.nodes import Number
from ..graph.nodes import Graph
from ..machine.description import Cpu
from ..schedule.draft import Drafts
from ..schedule.fit_splits import fit_splits_of_call
from ..schedule.loop_tree import Leaf
from ..schedule.plan import Plan
from ..schedule.resolve import resolve
from ..schedule.schedule import Schedule
from ..target.kinds import Kind
from .body import Bodies, Body
from .call_facts import CallFacts, Shapes, call_facts
from .groups import group_key, groups
from .nest import Nests
from .result import Causes, Cost, StageCost
from .traffic import BytesMoved, GroupTraffic, cache_capacities
from .triangles import makespan

T = TypeVar("T")

COMPILE_S, COMPILE_S_EACH = 0.04, 5e-4  # to compile anything at all, and each instruction
STREAMS = 6  # rows, accessed side by side, that the hardware prefetcher follows
STREAM_POWER = 0.4  # the exponent of the slowdown by more streams, from caches that cores share; twice this from memory
PAGE_BYTES, PAGES = 4096, 40  # the size of a page, and how many of them the first-level TLB holds
AHEAD = 1.5  # times the bandwidth that `measure` finds, since loads from the next cache are issued early
OF_A_COPY = 0.85  # the fraction of the bandwidth of copying whole arrays, which `measure` finds, that loops reach
MOST_TASKS = 256  # more tasks than this are balanced, whatever each of them computes
HIDDEN = 0.45  # the fraction of the shorter of computing and moving bytes that overlaps with the longer one


@dataclass(frozen=True)
class Sizes:
    """The sizes of a call: the shapes of its outputs by stage, its params by name and input extents as
    "img.shape.0"."""

    shapes: Shapes
    scalars: Mapping[str, Number]


def predict_cost(
    graph: Graph,
    schedule: Schedule,
    sizes: Sizes,
    machine: Cpu,
    *,
    strict: bool = False,
    threads: int | None = None,
    known: Drafts | None = None,
) -> Cost:
    """Predict how long a call takes under a schedule, on `threads` threads (by default all of the machine's). `known`
    has the drafts of stages that other schedules of the same pipeline share with it."""
    resolved, plan = resolve(graph, schedule, strict=strict, target=machine.target, known=known)
    return plan_cost(resolved, plan, sizes, machine, threads=threads)


def plan_cost(graph: Graph, plan: Plan, sizes: Sizes, machine: Cpu, *, threads: int | None = None) -> Cost:
    """Predict the cost of a schedule that has been resolved to a plan, with the block sizes that code for such a call
    has."""
    plan = fit_splits_of_call(graph, plan, sizes.scalars)
    inlined = frozenset(s.name for s in graph.stages if s.name not in plan.stages)
    written_out = frozenset(p.name for p in plan.stages.values() if p.is_written_out)
    facts = call_facts(graph, sizes.shapes, sizes.scalars, inlined, written_out)
    threads = machine.threads if threads is None else threads
    parts = [_GroupCosts(facts, plan, names, machine, threads) for names in groups(facts, plan)]
    footprint: dict[str, float] = {}
    for part in parts:
        footprint |= {source: max(footprint.get(source, 0.0), n) for source, n in part.footprint.items()}
    capacities = cache_capacities(machine, threads, sum(footprint.values()))
    costs = [p for part in parts for p in part.stage_costs(capacities)]
    order = {s.name: k for k, s in enumerate(facts.graph.stages)}
    return _total(graph.name, sorted(costs, key=lambda p: order[p[0].name]), machine)


def _total(name: str, costs: list[tuple[StageCost, int]], machine: Cpu) -> Cost:
    stages = [s for s, _ in costs]
    causes = sum((s.causes for s in stages), Causes(overhead=machine.costs.call_s))
    seconds = sum(s.seconds for s in stages) + machine.costs.call_s
    size = sum(instructions for _, instructions in costs)
    moved = tuple(map(sum, zip(*(s.bytes for s in stages), strict=True)))
    return Cost(name, seconds, causes, tuple(stages), moved, size, COMPILE_S + size * COMPILE_S_EACH)


class _GroupCosts:
    """The costs of stages whose loops are nested in each other. Groups that are equal except for the names of stages
    share them."""

    def __init__(self, facts: CallFacts, plan: Plan, names: list[str], machine: Cpu, threads: int) -> None:
        self._facts, self._plan, self._names = facts, plan, names
        self._machine, self._threads = machine, threads
        key, self._sources = group_key(facts, plan, names)
        self._answers: dict[Hashable, Any] = facts.answers.setdefault((key, machine, threads), {})

    @property
    def footprint(self) -> dict[str, float]:
        """The bytes of each source that these stages touch in the whole call."""
        numbers, footprint_of = self._memoized("touched", lambda: (self._sources, self._traffic.footprint()))
        return {
            mine: footprint_of[theirs]
            for mine, theirs in zip(self._sources, numbers, strict=True)
            if theirs in footprint_of
        }

    def stage_costs(self, capacities: tuple[float, ...]) -> list[tuple[StageCost, int]]:
        """The cost of each stage, and the number of instructions of its code."""
        costs = self._memoized(capacities, lambda: _CostModel(self._traffic, self._threads).stages(capacities))
        return [
            (p if p.name == name else replace(p, name=name), size)
            for name, (p, size) in zip(self._names, costs, strict=True)
        ]

    @cached_property
    def _traffic(self) -> GroupTraffic:
        return GroupTraffic(Nests(self._facts, self._plan, self._names), self._machine)

    def _memoized(self, key: Hashable, find: Callable[[], T]) -> T:
        if key not in self._answers:
            self._answers[key] = find()
        answer: T = self._answers[key]
        return answer


class _CostModel:
    def __init__(self, traffic: GroupTraffic, threads: int) -> None:
        self.traffic, self.threads = traffic, threads
        self.nests, self.machine = traffic.nests, traffic.machine
        self.cycle = 1e-9 / self.machine.ghz

    def stages(self, capacities: tuple[float, ...]) -> list[tuple[StageCost, int]]:
        """The cost of each stage, and the number of instructions of its code."""
        bodies, moved = Bodies(self.nests, self.machine), self.traffic.moved(capacities)
        parts: dict[str, list[tuple[Leaf, list[Body]]]] = {}
        for leaf in self.nests.leaves:
            parts.setdefault(leaf[0], []).append((leaf, bodies.bodies(leaf)))
        return [
            (
                self._stage(name, leaves, moved),
                sum(int(self._instructions(leaf, leaf_bodies, bodies)) for leaf, leaf_bodies in leaves),
            )
            for name, leaves in parts.items()
        ]

    def _stage(self, name: str, parts: list[tuple[Leaf, list[Body]]], moved: Mapping[Leaf, BytesMoved]) -> StageCost:
        computed = self.nests.computed(name)
        begins = any(body.starts for _, of in parts for body in of)
        overhead = Causes(overhead=computed.times * self.machine.costs.stage * self.cycle if begins else 0.0)
        seconds, causes = 0.0, Causes()
        for leaf, bodies in parts:
            spent, of_leaf = self._definition(leaf, bodies, moved[leaf], overhead)
            seconds, causes, overhead = seconds + spent, causes + of_leaf, Causes()
        least = prod(self.nests.facts.whole[name])
        bytes_moved = [sum(n) for n in zip(*(moved[leaf].bytes for leaf, _ in parts), strict=True)]
        redundant = max(0.0, 1 - least / computed.points)
        return StageCost(name, seconds, causes, computed.points, redundant, tuple(bytes_moved))

    def _definition(self, leaf: Leaf, bodies: list[Body], moved: BytesMoved, overhead: Causes) -> tuple[float, Causes]:
        """The wall-clock seconds of a definition, and its causes, which are summed over all cores. `overhead` is what
        happens before the definition."""
        tasks, regions = self._tasks(leaf)
        most, costs = min(self.threads, tasks), self.machine.costs
        causes = overhead + self._leaf_causes(bodies, moved, most)
        causes += Causes(overhead=regions * (costs.region_s + tasks * costs.task_s))
        shared = causes.seconds / most
        ends = shared * self._imbalance(leaf, tasks, most)
        return ends, causes + Causes(imbalance=(ends - shared) * most)

    def _imbalance(self, leaf: Leaf, tasks: int, cores: int) -> float:
        """The time of the last core to finish, as a multiple of the time of each core if the work were balanced."""
        triangle = self.nests.facts.triangle(leaf)
        own = [s for s in self.nests.tree.own(leaf) if self.nests.tree.kind(s) is Kind.PARALLEL and s[:2] == leaf]
        if triangle.conditions and cores > 1 and tasks <= MOST_TASKS and own:
            loops, name = self.nests.loops(leaf), own[0].loop
            count, v = loops.trips(name), loops.fastest[name]
            if triangle.decides(v) and len(loops.of[name]) == 1 and count * loops.step[name] >= loops.extents[v]:
                parts = triangle.tasks(v, count, loops.step[name])
                return makespan([p * count / tasks for p in parts for _ in range(tasks // count)], cores) * cores
        return ceil(tasks / cores) * cores / tasks

    def _tasks(self, leaf: Leaf) -> tuple[int, float]:
        """The number of tasks of a definition that run in parallel, and how often a parallel loop of its own begins."""
        count, begins = 1, 0.0
        chain = self.nests.tree.chain(leaf)
        for depth, site in enumerate(chain):
            if self.nests.tree.kind(site) is Kind.PARALLEL:
                if count == 1 and (site.stage, site.definition) == leaf:
                    begins = self.nests.times(chain[depth - 1] if depth else None)
                count *= self.nests.trips(site)
        return count, begins

    def _leaf_causes(self, bodies: list[Body], moved: BytesMoved, cores: int) -> Causes:
        """The seconds of one definition by cause, summed over all cores."""
        split = sum(map(self._loop_causes, bodies), Causes())
        streams, pages = max((b.streams for b in bodies), default=0), max(map(self._pages, bodies), default=0.0)
        near, far = self._transfer_seconds(moved, streams, pages, self._rates(cores))
        return split + Causes(traffic=near + far - _overlapped(near, far, split.seconds))

    def _loop_causes(self, body: Body) -> Causes:
        """The seconds of an innermost loop, attributed to causes in proportion."""
        cycles = body.cycles(self.machine)
        memory = body.memory(self.machine)
        accesses = max(body.loads + body.stores, 1e-9)
        loads, stores = (memory * n / accesses for n in (body.loads, body.stores))
        waits = max(0.0, cycles - max(body.arithmetic + body.shuffles, memory) - body.gathers)
        each = body.iterations * self.cycle
        useful = each * (cycles - waits - body.gathers) / max(body.arithmetic + loads + stores + body.shuffles, 1e-9)
        return Causes(
            arithmetic=useful * body.arithmetic,
            loads=useful * loads,
            stores=useful * stores,
            shuffles=useful * body.shuffles,
            gathers=each * body.gathers,
            stalls=each * waits,
            overhead=body.starts * self.machine.costs.row * self.cycle,
        )

    def _pages(self, body: Body) -> float:
        """The number of pages that hold the rows which a loop accesses side by side."""
        source = self.nests.facts.source
        return sum([min(n, self._stored_bytes(source(buffer)) / PAGE_BYTES) for buffer, n in body.rows.items()])

    @memoized
    def _stored_bytes(self, source: str) -> float:
        nests, types = self.nests, self.nests.facts.dtypes[source]
        box = nests.stored(source) if source in nests.plan.stages else nests.facts.whole[source]
        return prod(box) * max(t.bytes for t in types)

    def _transfer_seconds(
        self, moved: BytesMoved, streams: int, pages: float, rates: list[float]
    ) -> tuple[float, float]:
        """The seconds that one core takes to move bytes to and from the next cache, and from farther away, if it
        accesses `streams` rows side by side on `pages` pages."""
        near, *far = [n / rate for n, rate in zip(moved.bytes, rates, strict=True)]
        stored = moved.stored / self.machine.l1.line * self.machine.costs.store_line * self.cycle
        started = moved.start_cycles * self.cycle
        slower: float = max(1.0, streams / STREAMS) ** STREAM_POWER
        turning = max(1.0, pages / PAGES)  # TLB misses
        return near / AHEAD * turning + stored, sum(far[:-1]) * slower + sum(far[-1:]) * slower * slower + started

    def _rates(self, cores: int) -> list[float]:
        """The bytes per second that each of `cores` cores gets from each cache except L1, and from memory."""
        of_memory = OF_A_COPY * self.machine.memory_bandwidth(cores) / cores
        return [*(c.bandwidth for c in self.machine.caches[1:]), of_memory]

    def _instructions(self, leaf: Leaf, bodies: list[Body], all_bodies: Bodies) -> float:
        """The number of instructions in the code of a definition: those of its innermost loops, as often as these are
        unrolled."""
        loops = self.nests.loops(leaf)
        written = prod(loops.trips(n) for n in loops.names if loops.kinds[n] is Kind.UNROLL)
        inside = prod(map(loops.trips, all_bodies.inner(loops).copied))
        return sum(body.instructions + 20 for body in bodies) * written / inside


def _overlapped(near: float, far: float, computing: float) -> float:
    """The seconds of transfers from the next cache (`near`) and from farther away that overlap with computing.
    Transfers from the next cache are hidden by prefetching, the more so the more of the time memory is idle."""
    idle = max(0.0, 1 - (near + far) / max(computing, 1e-12))
    return HIDDEN * min(near + far, computing) + (1 - HIDDEN) * near * idle
