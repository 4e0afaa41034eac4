"""What one iteration of an innermost loop executes under a schedule: vectors, copies, what they share.

    for x in 0..64:                              two rows of out read four of f: 4 loads, not 6
        unrolled for row in 0..2:
            out[y + row, x*8 : x*8 + 8] = f[y + row - 1, ...] + f[y + row, ...] + f[y + row + 1, ...]

What does not change in the loop is computed before it, sums whose place does not move stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, prod

from ..machine.description import Machine
from .nest import Loops, Nests
from .operations import Tally
from .reads import Access, Box
from .sized import Leaf

MOST_SHARED = 512  # loads of all copies together; of more, none count as shared
FORESEEN, LONG = 0.3, 32  # of what beginning a loop costs, for a short one; and iterations whose end is a surprise
RUN_BYTES = 16  # of neighbours that one load of an element brings along
OF_A_RUN, SHARED = 0.6, 0.1  # of a gather: loading a run for a lane, and taking each element out of it
SPILLED = 0.9  # vectors that are loaded again at each step that registers have no room for
ALONE = 1.5  # operations on single elements, for each that is counted: these come with addresses and tests
MOST_SPILLED = 0.5  # of all instructions: those of different lanes need not run side by side
NEAR = 4  # the largest stride of loads that are wide ones and shuffles
_ONE_UNIT = {"mul", "convert", "div", "sqrt"}  # while others do something else
_SCALAR_KINDS = {"div", "sqrt", "idiv", "convert", "mul"}  # what takes as long of one element as of a vector


@dataclass(frozen=True)
class Body:
    """Cycles of one iteration by what is busy, vectors that it loads and stores, and how many iterations there are."""

    arithmetic: float
    shuffles: float
    loads: float
    stores: float
    gathers: float
    instructions: float
    waiting: float  # for results of the iteration before
    iterations: float
    starts: float  # how often the loop begins
    streams: int = 0  # rows that are read or written side by side

    def times(self, count: float) -> Body:
        """The same, so many times."""
        return replace(self, iterations=self.iterations * count, starts=self.starts * count)

    def cycles(self, machine: Machine) -> float:
        """Of one iteration: units work side by side, instructions come in order."""
        busy = max(self.arithmetic + self.shuffles, self.memory(machine))
        decoded = (self.instructions + machine.costs.iteration) / machine.costs.dispatch
        return max(busy + self.gathers, decoded, self.waiting)

    def memory(self, machine: Machine) -> float:
        """Cycles of its loads and stores, which share the units that find addresses."""
        return max((self.loads + self.stores) / machine.issue.load, self.stores / machine.issue.store)


class Inner:
    """The loops of a definition that one iteration of its innermost real loop consists of."""

    def __init__(self, loops: Loops) -> None:
        self.loops = loops
        names, kinds = loops.names, loops.kinds
        real = [k for k, n in enumerate(names) if kinds[n] in ("serial", "parallel") and loops.trips(n) > 1]
        at = real[-1] if real else -1
        self.loop: str | None = names[at] if real else None
        self.copied = [n for n in names[at + 1 :] if kinds[n] == "unroll" and loops.trips(n) > 1]
        self.vectors = [n for n in names[at + 1 :] if kinds[n] == "vector"]
        self.lanes = prod(map(loops.trips, self.vectors))
        self.across = frozenset().union(*(loops.of[n] for n in self.vectors)) if self.lanes > 1 else frozenset()
        inside = [*self.copied, *self.vectors, *([self.loop] if self.loop else [])]
        self.moving = frozenset().union(*(loops.of[n] for n in inside))
        self.points = self.lanes * prod(map(loops.trips, self.copied))

    @property
    def along(self) -> frozenset[str]:
        """The variables of the innermost real loop."""
        return self.loops.of[self.loop] if self.loop else frozenset()

    def copies(self, variables: frozenset[str]) -> int:
        """How many copies differ, of what depends on some variables."""
        return prod(self.loops.trips(n) for n in self.copied if not variables.isdisjoint(self.loops.of[n]))


class Bodies:
    """Of all definitions of a plan."""

    def __init__(self, nests: Nests, machine: Machine) -> None:
        self.nests, self.machine = nests, machine
        issue, costs = machine.issue, machine.costs
        self._cycles = {
            "int": 1 / issue.int, "fma": 1 / issue.fma, "mul": costs.mul, "shift": costs.shift, "widen": costs.widen,
            "convert": costs.convert, "div": costs.div, "sqrt": costs.sqrt, "idiv": costs.idiv,
        }  # fmt: skip

    def bodies(self, leaf: Leaf) -> list[Body]:
        """Of the whole blocks, and of what splits leave over."""
        name, k = leaf
        facts, plan, computed = self.nests.facts, self.nests.plan, self.nests.computed(name)
        stored = [plan.stages[s].dim_order for s in facts.reads(leaf).sources if s in plan.stages]
        question = (leaf, plan.stages[name].nests[k], computed.box, *stored, self.machine)
        if question not in facts.answers:
            facts.answers[question] = [self._body(leaf, loops) for loops in self.nests.versions(leaf)]
        return [b.times(computed.times) for b in facts.answers[question]]

    def _body(self, leaf: Leaf, loops: Loops) -> Body:
        """For one time that the stage is computed."""
        inner = Inner(loops)
        iterations = prod(map(loops.trips, loops.names)) * loops.part / inner.points
        trips = loops.trips(inner.loop) if inner.loop else 0
        starts = iterations / trips * (FORESEEN + (1 - FORESEEN) * min(1.0, trips / LONG)) if trips else 0.0
        arithmetic, instructions = self._arithmetic(leaf, inner)
        traffic = _Accesses(self.nests, self.machine, leaf, inner)
        spilled = min(self._spilled(leaf, inner), MOST_SPILLED * instructions)
        every = instructions + traffic.instructions + 1.5 * spilled
        waiting = max(traffic.waiting, self.nests.facts.depth(leaf) * min(1.0, every / self.machine.costs.window))
        return Body(
            arithmetic, traffic.shuffles, traffic.loads + spilled, traffic.stores + spilled / 2, traffic.gathers, every,
            waiting, iterations, starts, len(traffic.rows),
        )  # fmt: skip

    def _spilled(self, leaf: Leaf, inner: Inner) -> float:
        """Vectors per iteration that registers have no room for, and that are loaded again."""
        if inner.lanes == 1:
            return 0.0
        each = self.machine.vector_bits // 8
        room = registers(self.machine) * each
        held = 0.0
        if leaf[1]:
            sums = inner.lanes * inner.copies(self.nests.facts.reads(leaf).stores[0].variables)
            held = sums * sum(t.bytes for t in self.nests.facts.dtypes[leaf[0]])
            if held > room:
                return 2 * (held - room) / each
        again = 0
        for live in self.nests.facts.live(leaf):
            if live * inner.lanes <= room - min(held, room / 2):
                break
            again += 1
        width = sum(t.bits for t in self.nests.facts.dtypes[leaf[0]][:1]) * inner.lanes / self.machine.vector_bits
        return again * max(1.0, width) * max(1, inner.points // inner.lanes) * SPILLED

    def _arithmetic(self, leaf: Leaf, inner: Inner) -> tuple[float, float]:
        one = any_unit = instructions = 0.0  # cycles of the one unit that does what is slow, and of all units together
        for t in self.nests.facts.tallies(leaf):
            if t.loops.isdisjoint(inner.moving):
                continue
            count = t.count * inner.copies(t.loops)
            if t.loops.isdisjoint(inner.across):
                any_unit += count * self._scalar(t)
                instructions += count
            else:
                vectors = count * ceil(inner.lanes * t.bits / self.machine.vector_bits)
                times = inner.lanes * count if t.kind == "idiv" else vectors
                shorter = 0.5 if t.kind == "mul" and t.bits <= 16 else 1.0  # costs are those of 32 bits
                cycles = times * self._cycles[t.kind] * shorter
                one += cycles if t.kind in _ONE_UNIT else 0.0
                any_unit += cycles / max(1.0, self.machine.issue.int) if t.kind in _ONE_UNIT else cycles
                instructions += times
        return max(one, any_unit), instructions

    def _scalar(self, t: Tally) -> float:
        of_vector = self._cycles[t.kind]
        plain = ALONE * self.machine.costs.scalar
        return max(plain, of_vector / 2) if t.kind in _SCALAR_KINDS else plain


# A buffer, for what data decides how it does, and an index along each dim.
_Place = tuple[str, tuple[object, ...], tuple[float, ...]]


class _Accesses:
    """The loads and stores of an iteration."""

    def __init__(self, nests: Nests, machine: Machine, leaf: Leaf, inner: Inner) -> None:
        self.nests, self.machine, self.inner = nests, machine, inner
        self.loads = self.stores = self.shuffles = self.gathers = self.instructions = self.waiting = 0.0
        self.rows: set[tuple[object, ...]] = set()
        reads = nests.facts.reads(leaf)
        own = [a for a in reads.loads if a.source == leaf[0]]
        others = [a for a in reads.loads if a.source != leaf[0]]
        kept = self._stays(reads.stores) if leaf[1] else 1.0
        self._add(others, "loads", 1.0)
        self._add(own, "loads", kept)
        self._add(reads.stores, "stores", kept)
        if own and leaf[1]:
            self.waiting = self._chain(own, reads.stores)

    def _stays(self, stores: Sequence[Access]) -> float:
        """How much of loading and storing sums is left, if they stay in registers while the innermost loop runs."""
        moved = stores[0].variables
        unknown = any(f.decided is not None for f in stores[0].forms)
        loop = self.inner.loop
        if unknown or loop is None or not self.inner.along.isdisjoint(moved):
            return 1.0
        return 1 / self.inner.loops.trips(loop)

    def _chain(self, own: Sequence[Access], stores: Sequence[Access]) -> float:
        """Cycles until an iteration has what the one before computed, for sums and scans."""
        moved = stores[0].variables
        unknown = any(f.decided is not None for a in (*own, *stores) for f in a.forms)
        latency = self.machine.costs.latency
        if unknown:
            return 1.5 * latency
        carried = any(
            f.slope(v) and f.low != g.low
            for a in own for f, g in zip(a.forms, stores[0].forms, strict=True) for v in self.inner.along
        )  # fmt: skip
        if self.inner.along.isdisjoint(moved) or carried:
            again = [n for n in self.inner.copied if self.inner.loops.of[n].isdisjoint(moved) or carried]
            return latency * prod(map(self.inner.loops.trips, again)) * (2 if carried else 1)
        return 0.0

    def _add(self, accesses: Sequence[Access], unit: str, part: float) -> None:
        dense: dict[_Place, Access] = {}
        families: dict[tuple[object, ...], list[Access]] = {}
        for a in accesses:
            if not a.decided.isdisjoint(self.inner.across):
                families.setdefault(a.family, []).append(a)
                continue
            last = self._order(a.source)[-1:]
            for place in self._places(a):
                self.rows.add((a.buffer, *(x for axis, x in enumerate(place) if axis not in last)))
                dense[a.buffer, a.family if a.decided else (), place] = a
        for family in families.values():
            self._gather(family, part, unit)
        for vectors, shuffles in self._wide(dense):
            setattr(self, unit, getattr(self, unit) + vectors * part)
            self.shuffles += shuffles * self.machine.costs.shuffle * part
            self.instructions += (vectors + shuffles) * part

    def _order(self, source: str) -> list[int]:
        return storage_order(self.nests, source)

    def _gather(self, family: Sequence[Access], part: float, unit: str) -> None:
        """Neighbours at places that data decides: element by element, or a short run for each."""
        copies = self.inner.copies(frozenset(v for a in family for v in a.variables))
        count = self.inner.lanes * copies * part
        if self.inner.lanes > 1:
            runs = ceil(sum(a.dtype.bytes for a in family) / RUN_BYTES)
            each = 1.0 if len(family) == 1 else OF_A_RUN * runs + SHARED * len(family)
            self.gathers += count * each * self.machine.costs.gather
            self.instructions += count * (2 * runs + len(family))
        else:
            setattr(self, unit, getattr(self, unit) + count * len(family))
            self.instructions += count * len(family)

    def _places(self, a: Access) -> list[tuple[float, ...]]:
        """Where the copies of an unrolled loop read or write; nowhere, if that does not change in the loop."""
        variables = a.variables
        if variables.isdisjoint(self.inner.moving):
            return []
        loops = self.inner.loops
        jammed = [n for n in self.inner.copied if not variables.isdisjoint(loops.of[n])]
        at = tuple([f.low for f in a.forms])
        if not jammed:
            return [at]
        steps = [[sum(f.slope(v) for v in loops.of[n]) * loops.step[n] for f in a.forms] for n in jammed]
        counts = [range(loops.trips(n)) for n in jammed]
        return [
            tuple([x + sum(s[d] * i for s, i in zip(steps, which, strict=True)) for d, x in enumerate(at)])
            for which in product(*counts)
        ]  # fmt: skip

    def _wide(self, dense: dict[_Place, Access]) -> list[tuple[float, float]]:
        """Vectors and shuffles of each access, or of all that one wide access serves."""
        found: list[tuple[float, float]] = []
        near: dict[tuple[object, ...], tuple[int, Access]] = {}
        same: dict[tuple[object, ...], None] = {}
        for (buffer, family, place), a in dense.items():
            strides = memory_strides(self.nests, a.source)
            stride = abs(self._stride(a, strides))
            width = ceil(self.inner.lanes * a.dtype.bits / self.machine.vector_bits)
            if self.inner.lanes == 1 or stride == 1:
                found.append((width, 0.0))
            elif stride == 0:
                flat = sum(x * s for x, s in zip(place, strides, strict=True))
                same[buffer, family, flat // self._neighbours(a)] = None
            elif stride < 1:
                found.append((ceil(width * stride), width))
            elif stride > NEAR or stride != int(stride):
                found.append((self.inner.lanes, self.inner.lanes))
            else:
                flat = sum(x * s for x, s in zip(place, strides, strict=True))
                near[buffer, family, flat // stride] = (int(stride), a)
        for stride, a in near.values():
            width = ceil(self.inner.lanes * a.dtype.bits / self.machine.vector_bits)
            found.append((stride * width, stride * width))
        return [*found, *((1.0, 0.0) for _ in same)]

    def _neighbours(self, a: Access) -> int:
        """How many numbers one load brings that each become all lanes of a vector: where instructions take a lane."""
        by_lane = self.machine.architecture == "aarch64" and a.dtype.is_float
        return self.machine.vector_bits // a.dtype.bits if by_lane else 1

    def _stride(self, a: Access, strides: Sequence[int]) -> float:
        """How far apart in memory neighbouring lanes are, in elements."""
        return sum(
            f.slope(v) * s for f, s in zip(a.forms, strides, strict=True) for v in self.inner.across
        )  # fmt: skip


def registers(machine: Machine) -> int:
    """Of vectors."""
    return 32 if machine.architecture == "aarch64" or machine.vector_bits == 512 else 16


def memory_strides(nests: Nests, name: str) -> Box:
    """How far apart in memory neighbours along each dim of a stage or input are, in elements."""
    whole = nests.facts.whole[name]
    order = storage_order(nests, name)
    strides, distance = [0] * len(whole), 1
    for axis in reversed(order):
        strides[axis] = distance
        distance *= whole[axis]
    return tuple(strides)


def storage_order(nests: Nests, name: str) -> list[int]:
    """The axes of a stage or input, the contiguous one last."""
    if name not in nests.plan.stages:
        return list(range(len(nests.facts.whole[name])))
    dims = nests.facts.graph.stage[name].dims
    return [dims.index(d) for d in nests.plan.stages[name].dim_order]
