"""The predicted time of a call under any schedule, and what it is made of.

A schedule is priced by what its loops execute: `nest` says how often each stage is computed over which box, `body`
what an iteration of an innermost loop executes, `traffic` which bytes come from where, and here these become seconds,
shared by cores. No loop is lowered and nothing is compiled, so that a search can price hundreds of schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from math import ceil, prod
from typing import Any, TypeVar

from ..cached import cached_property
from ..dataclass import dataclass
from ..expr.nodes import Number
from ..graph.nodes import Graph
from ..machine.description import Cpu
from ..schedule.draft import Drafts
from ..schedule.plan import Plan
from ..schedule.resolve import resolve
from ..schedule.schedule import Schedule
from ..target.kinds import Kind
from .body import Bodies, Body
from .call_facts import Leaf, Shapes, Sized, sized
from .groups import groups, question
from .nest import Nests
from .result import Causes, Cost, StageCost
from .traffic import Moved, Traffic, rooms
from .triangles import slowest

T = TypeVar("T")

COMPILE_S, COMPILE_S_EACH = 0.04, 5e-4  # to compile anything at all, and each instruction
STREAMS = 6  # rows side by side that memory sends before they are asked for
STREAM_POWER = 0.4  # how much more so many of them take from a cache that cores share; twice that from memory
PAGE_BYTES, PAGES = 4096, 40  # and on how many of them rows side by side are found at once
AHEAD = 1.5  # times as fast as `measure` finds it, since loads from the next cache are sent off early
OF_A_COPY = 0.85  # of the bandwidth that copying whole arrays has, which `measure` does: loops have less
MOST_TASKS = 256  # more of them are even, whatever each does
HIDDEN = 0.45  # the part of the shorter one, of computing and of moving bytes, that happens while the other does


@dataclass(frozen=True)
class Sizes:
    """Of a call: the shapes of its outputs by stage, its params by name and input extents as "img.shape.0"."""

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
    """How long a call takes under a schedule, on so many threads (by default all of the machine's). `known`: what other
    schedules of the same pipeline had in common with it."""
    resolved, plan = resolve(graph, schedule, strict=strict, target=machine.target, known=known)
    return plan_cost(resolved, plan, sizes, machine, threads=threads)


def plan_cost(graph: Graph, plan: Plan, sizes: Sizes, machine: Cpu, *, threads: int | None = None) -> Cost:
    """The cost of a schedule that has been resolved to a plan."""
    inlined = frozenset(s.name for s in graph.stages if s.name not in plan.stages)
    written_out = frozenset(p.name for p in plan.stages.values() if p.is_written_out)
    facts = sized(graph, sizes.shapes, sizes.scalars, inlined, written_out)
    threads = machine.threads if threads is None else threads
    parts = [_Group(facts, plan, names, machine, threads) for names in groups(facts, plan)]
    touched: dict[str, float] = {}
    for part in parts:
        touched |= {source: max(touched.get(source, 0.0), n) for source, n in part.touched.items()}
    room = rooms(machine, threads, sum(touched.values()))
    costs = [p for part in parts for p in part.stage_costs(room)]
    order = {s.name: k for k, s in enumerate(facts.graph.stages)}
    return _whole(graph.name, sorted(costs, key=lambda p: order[p[0].name]), machine)


def _whole(name: str, costs: list[tuple[StageCost, int]], machine: Cpu) -> Cost:
    stages = [s for s, _ in costs]
    causes = sum((s.causes for s in stages), Causes(starting=machine.costs.call_s))
    seconds = sum(s.seconds for s in stages) + machine.costs.call_s
    size = sum(instructions for _, instructions in costs)
    moved = tuple(map(sum, zip(*(s.bytes for s in stages), strict=True)))
    return Cost(name, seconds, causes, tuple(stages), moved, size, COMPILE_S + size * COMPILE_S_EACH)


class _Group:
    """Stages whose loops are inside each other's; what was asked of them before, or of others that are alike, is
    known."""

    def __init__(self, facts: Sized, plan: Plan, names: list[str], machine: Cpu, threads: int) -> None:
        self._facts, self._plan, self._names = facts, plan, names
        self._machine, self._threads = machine, threads
        asked, self._sources = question(facts, plan, names)
        self._answers: dict[Hashable, Any] = facts.answers.setdefault((asked, machine, threads), {})

    @property
    def touched(self) -> dict[str, float]:
        """Bytes of each source that the whole call touches, for these stages."""
        numbers, found = self._known("touched", lambda: (self._sources, self._traffic.touched()))
        return {mine: found[theirs] for mine, theirs in zip(self._sources, numbers, strict=True) if theirs in found}

    def stage_costs(self, room: tuple[float, ...]) -> list[tuple[StageCost, int]]:
        """Each stage, and the instructions of its code."""
        found = self._known(room, lambda: _CostModel(self._traffic, self._threads).stages(room))
        return [
            (p if p.name == name else replace(p, name=name), size)
            for name, (p, size) in zip(self._names, found, strict=True)
        ]

    @cached_property
    def _traffic(self) -> Traffic:
        return Traffic(Nests(self._facts, self._plan, self._names), self._machine)

    def _known(self, of: Hashable, find: Callable[[], T]) -> T:
        if of not in self._answers:
            self._answers[of] = find()
        found: T = self._answers[of]
        return found


class _CostModel:
    def __init__(self, traffic: Traffic, threads: int) -> None:
        self.traffic, self.threads = traffic, threads
        self.nests, self.machine = traffic.nests, traffic.machine
        self.cycle = 1e-9 / self.machine.ghz
        self._bytes: dict[str, float] = {}  # of one of the buffers of a stage or an input

    def stages(self, room: tuple[float, ...]) -> list[tuple[StageCost, int]]:
        """The price of each stage, and the instructions of its code."""
        bodies, moved = Bodies(self.nests, self.machine), self.traffic.moved(room)
        parts: dict[str, list[tuple[Leaf, list[Body]]]] = {}
        for leaf in self.nests.leaves:
            parts.setdefault(leaf[0], []).append((leaf, bodies.bodies(leaf)))
        return [
            (self._stage(name, of, moved), sum(int(self._code(leaf, found, bodies)) for leaf, found in of))
            for name, of in parts.items()
        ]

    def _stage(self, name: str, parts: list[tuple[Leaf, list[Body]]], moved: Mapping[Leaf, Moved]) -> StageCost:
        computed = self.nests.computed(name)
        begins = any(body.starts for _, of in parts for body in of)
        starting = Causes(starting=computed.times * self.machine.costs.stage * self.cycle if begins else 0.0)
        seconds, causes = 0.0, Causes()
        for leaf, bodies in parts:
            spent, of_leaf = self._definition(leaf, bodies, moved[leaf], starting)
            seconds, causes, starting = seconds + spent, causes + of_leaf, Causes()
        points = computed.times * prod(computed.box)
        least = prod(self.nests.facts.whole[name])
        bytes_moved = [sum(n) for n in zip(*(moved[leaf].bytes for leaf, _ in parts), strict=True)]
        return StageCost(name, seconds, causes, points, max(0.0, 1 - least / points), tuple(bytes_moved))

    def _definition(self, leaf: Leaf, bodies: list[Body], moved: Moved, starting: Causes) -> tuple[float, Causes]:
        """How long it takes by the clock, and all cores together. `starting`: what happens before it."""
        tasks, regions = self._tasks(leaf)
        most, costs = min(self.threads, tasks), self.machine.costs
        causes = starting + self._leaf(bodies, moved, most)
        causes += Causes(starting=regions * (costs.region_s + tasks * costs.task_s))
        shared = causes.seconds / most
        ends = shared * self._uneven(leaf, tasks, most)
        return ends, causes + Causes(imbalance=(ends - shared) * most)

    def _uneven(self, leaf: Leaf, tasks: int, cores: int) -> float:
        """How much longer the core takes that is done last than each would if all took the same."""
        triangle = self.nests.facts.triangle(leaf)
        own = [s for s in self.nests.own(leaf) if self.nests.kind(s) is Kind.PARALLEL and s[:2] == leaf]
        if triangle.conditions and cores > 1 and tasks <= MOST_TASKS and own:
            loops, name = self.nests.loops(leaf), own[0].loop
            count, v = loops.trips(name), loops.fastest[name]
            if triangle.decides(v) and len(loops.of[name]) == 1 and count * loops.step[name] >= loops.extents[v]:
                parts = triangle.tasks(v, count, loops.step[name])
                return slowest([p * count / tasks for p in parts for _ in range(tasks // count)], cores) * cores
        return ceil(tasks / cores) * cores / tasks

    def _tasks(self, leaf: Leaf) -> tuple[int, float]:
        """How many parts of a definition run in parallel, and how often such a loop of its own begins."""
        count, begins = 1, 0.0
        chain = self.nests.chain(leaf)
        for depth, site in enumerate(chain):
            if self.nests.kind(site) is Kind.PARALLEL:
                if count == 1 and (site.stage, site.definition) == leaf:
                    begins = self.nests.times(chain[depth - 1] if depth else None)
                count *= self.nests.trips(site)
        return count, begins

    def _leaf(self, bodies: list[Body], moved: Moved, cores: int) -> Causes:
        """Of one definition, so many cores together."""
        split = sum(map(self._loop, bodies), Causes())
        streams, pages = max((b.streams for b in bodies), default=0), max(map(self._pages, bodies), default=0.0)
        near, far = self._seconds_of(moved, streams, pages, self._rates(cores))
        return split + Causes(traffic=near + far - _hidden(near, far, split.seconds))

    def _loop(self, body: Body) -> Causes:
        """Of an innermost loop, by what its time is spent on, in proportion."""
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
            waiting=each * waits,
            starting=body.starts * self.machine.costs.row * self.cycle,
        )

    def _pages(self, body: Body) -> float:
        """On how many pages of memory the rows are that a loop goes along side by side."""
        source = self.nests.facts.source
        return sum([min(n, self._stored(source(buffer)) / PAGE_BYTES) for buffer, n in body.rows.items()])

    def _stored(self, source: str) -> float:
        if source not in self._bytes:
            nests, types = self.nests, self.nests.facts.dtypes[source]
            box = nests.stored(source) if source in nests.plan.stages else nests.facts.whole[source]
            self._bytes[source] = prod(box) * max(t.bytes for t in types)
        return self._bytes[source]

    def _seconds_of(self, moved: Moved, streams: int, pages: float, rates: list[float]) -> tuple[float, float]:
        """That it takes one core to move bytes from and to the next cache, and from farther away: so many rows side by
        side, on so many pages."""
        near, *far = [n / rate for n, rate in zip(moved.bytes, rates, strict=True)]
        stored = moved.stored / self.machine.l1.line * self.machine.costs.store_line * self.cycle
        started = moved.begun * self.cycle
        slower: float = max(1.0, streams / STREAMS) ** STREAM_POWER
        turning = max(1.0, pages / PAGES)  # from page to page
        return near / AHEAD * turning + stored, sum(far[:-1]) * slower + sum(far[-1:]) * slower * slower + started

    def _rates(self, cores: int) -> list[float]:
        """Bytes per second, for one of so many cores, from each cache but the first and from memory."""
        of_memory = OF_A_COPY * self.machine.memory_bandwidth(cores) / cores
        return [*(c.bandwidth for c in self.machine.caches[1:]), of_memory]

    def _code(self, leaf: Leaf, found: list[Body], bodies: Bodies) -> float:
        """Instructions of the code of a definition: its innermost loops, as often as they are written out."""
        loops = self.nests.loops(leaf)
        written = prod(loops.trips(n) for n in loops.names if loops.kinds[n] is Kind.UNROLL)
        inside = prod(map(loops.trips, bodies.inner(loops).copied))
        return sum(body.instructions + 20 for body in found) * written / inside


def _hidden(near: float, far: float, computing: float) -> float:
    """Of the seconds that bytes take from the next cache and from farther away, those in which something is computed.
    What the next cache sends ahead is hidden altogether, the more so the less of the time it is busy."""
    idle = max(0.0, 1 - (near + far) / max(computing, 1e-12))
    return HIDDEN * min(near + far, computing) + (1 - HIDDEN) * near * idle
