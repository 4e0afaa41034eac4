"""The instructions of one iteration of an innermost loop: vectors, copies of unrolled loops, and what these share.

    for x in 0..64:                              two rows of out read four of f: 4 loads, not 6
        unrolled for row in 0..2:
            out[y + row, x*8 : x*8 + 8] = f[y + row - 1, ...] + f[y + row, ...] + f[y + row + 1, ...]

Loop-invariant code is hoisted out of the loop, and sums into the same element stay in registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil, prod
from typing import NamedTuple

from ..dataclass import memoized
from ..machine.description import Cpu
from ..schedule.loop_tree import Leaf
from .accesses import OF_A_SMALL_ONE, count_accesses
from .counted_loops import CountedLoops, InnermostLoops
from .nest import Nests
from .operations import ANYWHERE, Tally

FORESEEN, LONG = 0.3, 32  # fraction of the start cost of a short loop; trip count whose end is always mispredicted
SPILLED = 0.9  # vectors reloaded at each step for which there are too few registers, and cycles that sums wait
LONG_WINDOWS = 2  # windows of instructions beyond which the start of an iteration is exposed, entirely at twice as many
CUT = 2.9  # cycles of a lane that is computed by itself, or not at all, because a condition cuts through its block
ALONE = 1.5  # operations on single elements per operation that is counted, since addresses and tests come with them
MOST_SPILLED = 0.7  # of all instructions: instructions of different lanes need not run at the same time
_FREE_ON_ARM = ("with_mul", "with_wide", "with_narrow", "with_round", "with_limit")  # as parts of other instructions
_SUMS_ON_ARM = {"convert_small": 1, "round_small": 3}  # number of sums
_CONVERSIONS = {"convert", *_SUMS_ON_ARM, "with_round"}
_ONE_UNIT = {"mul", "mul_wide", "div", "sqrt", *_CONVERSIONS}  # while others do something else
_SCALAR_KINDS = {"div", "sqrt", "idiv", *_CONVERSIONS}  # instructions that take as long for one element as for a vector


class Body(NamedTuple):
    """The cycles of one iteration by busy unit, the vectors that it loads and stores, and the number of iterations."""

    arithmetic: float
    shuffles: float
    loads: float
    stores: float
    gathers: float
    instructions: float
    waiting: float  # for results of the previous iteration
    ends: float  # before and after sums, and for spilled sums: nothing else is done meanwhile
    iterations: float
    starts: float  # how often the loop begins
    rows: Mapping[str, int]  # of each buffer that are read or written side by side

    @property
    def streams(self) -> int:
        """The number of rows that are accessed side by side, in all buffers."""
        return sum(self.rows.values())

    def times(self, count: float) -> Body:
        """Return a body that runs `count` times as often."""
        return self._replace(iterations=self.iterations * count, starts=self.starts * count)

    def cycles(self, machine: Cpu) -> float:
        """The cycles of one iteration: execution units work in parallel, instructions are dispatched in order."""
        busy = max(self.arithmetic + self.shuffles, self.memory(machine))
        decoded = (self.instructions + machine.costs.iteration) / machine.costs.dispatch
        return max(busy + self.gathers, decoded, self.waiting) + self.ends

    def memory(self, machine: Cpu) -> float:
        """The cycles of its loads and stores, which share the address generation units."""
        return max((self.loads + self.stores) / machine.issue.load, self.stores / machine.issue.store)


class Bodies:
    """The bodies of the innermost loops of all definitions of a plan."""

    def __init__(self, nests: Nests, machine: Cpu) -> None:
        self.nests, self.machine = nests, machine
        issue, costs = machine.issue, machine.costs
        self._cycles = {
            "int": 1 / issue.int,
            "fma": 1 / issue.fma,
            "mul": costs.mul,
            "shift": costs.shift,
            "widen": costs.widen,
            "div": costs.div,
            "sqrt": costs.sqrt,
            "idiv": costs.idiv,
            "with_limit": 1 / issue.int,
            "mul_wide": costs.mul / 2,
            "with_mul": 1 / issue.int,
            "with_wide": costs.widen,
            "with_narrow": costs.widen,
            **dict.fromkeys(_CONVERSIONS, costs.convert),
        }
        self._one_unit = _ONE_UNIT
        if machine.target.architecture == "aarch64":
            self._cycles |= dict.fromkeys(_FREE_ON_ARM, 0.0) | {n: k / issue.fma for n, k in _SUMS_ON_ARM.items()}
            self._one_unit = _ONE_UNIT - _SUMS_ON_ARM.keys()

    def bodies(self, leaf: Leaf) -> list[Body]:
        """The bodies of whole blocks, and of the tails of splits."""
        computed = self.nests.computed(leaf[0])
        times = computed.times * prod(computed.parts.values()) * self.nests.facts.part(leaf)
        return [self._body(leaf, loops).times(times) for loops in self.nests.versions(leaf)]

    @memoized
    def inner(self, loops: CountedLoops) -> InnermostLoops:
        """The loops that are part of one iteration of an innermost loop."""
        return InnermostLoops(loops)

    def _body(self, leaf: Leaf, loops: CountedLoops) -> Body:
        """The body, with the iterations of one computation of the stage."""
        inner = self.inner(loops)
        iterations = loops.points / inner.points
        trips = loops.trips(inner.loop) if inner.loop else 0
        starts = iterations / trips * (FORESEEN + (1 - FORESEEN) * min(1.0, trips / LONG)) if trips else 0.0
        return self._once(leaf, inner)._replace(iterations=iterations, starts=starts)

    def _once(self, leaf: Leaf, inner: InnermostLoops) -> Body:
        """The body of one iteration, memoized for all loops with the same inner loops."""
        facts, plan = self.nests.facts, self.nests.plan
        touched = [plan.stages[s] for s in (leaf[0], *facts.reads(leaf).sources) if s in plan.stages]
        stored = [(p.storage, p.storage_splits) for p in touched]
        held = inner.standing_still(facts.reads(leaf).stores[0].variables) if leaf[1] else 1
        apart = inner.apart if facts.triangle(leaf).conditions else None
        key = (
            inner.signature,
            apart,
            held,
            self.nests.is_unaligned(leaf[0]),
            *stored,
            facts.dtypes[leaf[0]],
            self.machine,
        )
        answers = facts.definition(leaf).answers
        if key not in answers:
            answers[key] = self._iteration(leaf, inner)
        body: Body = answers[key]
        return body

    def _iteration(self, leaf: Leaf, inner: InnermostLoops) -> Body:
        accesses = count_accesses(self.nests, self.machine, leaf, inner)
        decided = inner.written | inner.across if accesses.chosen else inner.written
        arithmetic, instructions = self._arithmetic(leaf, inner, decided)
        alone = accesses.carried or not leaf[1]
        rows = 1 if alone else inner.copies(self.nests.facts.reads(leaf).stores[0].variables)
        over = self._spilled_sums(leaf, inner, rows, accesses.by_lane) if leaf[1] else 0.0
        spilled = min(self._spilled_values(leaf, inner, rows), MOST_SPILLED * instructions)
        every = instructions + accesses.instructions + 1.5 * (spilled + over)
        apart = min(1.0, accesses.together * every / self.machine.costs.window)  # short sums run side by side
        waiting = max(accesses.waiting * apart, self.nests.facts.depth(leaf) * self._exposed_latency(every))
        ends = accesses.ends + accesses.drained * apart + over * SPILLED + self._masked_lanes(leaf, inner)
        body = Body(
            arithmetic,
            accesses.shuffles,
            accesses.loads + spilled,
            accesses.stores + spilled / 2,
            accesses.gathers,
            every,
            waiting,
            ends,
            1.0,
            1.0,
            Counter(str(row[0]) for row in accesses.rows),
        )
        return body._replace(ends=ends + self._serial_start(leaf, inner, body, accesses.by_element))

    def _serial_start(self, leaf: Leaf, inner: InnermostLoops, body: Body, by_element: bool) -> float:
        """The cycles at the start of a long iteration in which a chain of dependent instructions leaves units idle,
        unless the previous iteration overlaps with it."""
        alone = min(1.0, body.instructions / self.machine.costs.window / LONG_WINDOWS - 1)
        if alone <= 0 or inner.lanes == 1:
            return 0.0
        starts = [b for b in self.nests.facts.start_counts(leaf) if not b.loops.isdisjoint(inner.moving)]
        width = inner.lanes * self.nests.facts.dtypes[leaf[0]][0].bits / self.machine.vector_bits
        element = inner.lanes * OF_A_SMALL_ONE
        counts = [inner.copies(b.loops) * (b.vectors * width + b.elements * element) for b in starts]
        cycles, every = body.cycles(self.machine) - body.ends, max(1.0, sum(counts))
        left, longest = 0.0, cycles
        for b, count in zip(starts, counts, strict=True):  # the last ones first
            left += count
            one_chain = by_element and b.elements and inner.copies(b.places) < inner.copies(b.loops)
            longest = max(longest, b.after + cycles * left / every + (ANYWHERE if one_chain else 0.0))
        return alone * (longest - cycles)

    def _exposed_latency(self, instructions: float) -> float:
        """The part of the latency of its critical path that an iteration of this many instructions does not overlap
        with others: the window holds several short iterations, and of long ones the next has begun when one ends."""
        window = self.machine.costs.window
        return min(instructions / window, instructions / (instructions + window / 2))

    def _spilled_sums(self, leaf: Leaf, inner: InnermostLoops, copies: int, by_lane: int) -> float:
        """The vectors of `copies` rows of sums that are spilled, once per term that is added. Registers also hold a row
        of one factor, and `by_lane` vectors whose single lanes are the other factor."""
        if inner.lanes == 1:
            return 0.0
        each = self.machine.vector_bits // 8
        row = inner.lanes * sum(t.bytes for t in self.nests.facts.dtypes[leaf[0]]) / each
        over = row * copies + min(row, row * copies / 2) + max(1, by_lane) - self.machine.registers
        return max(0.0, over) * inner.points / inner.lanes / copies

    def _spilled_values(self, leaf: Leaf, inner: InnermostLoops, copies: int) -> float:
        """The vectors per iteration that are spilled and reloaded, given that registers also hold `copies` rows of
        sums."""
        if inner.lanes == 1:
            return 0.0
        room = self.machine.registers * (self.machine.vector_bits // 8)
        held = 0.0
        if leaf[1]:
            held = inner.lanes * copies * sum(t.bytes for t in self.nests.facts.dtypes[leaf[0]])
        again = 0
        for live in self.nests.facts.live(leaf):
            if live * inner.lanes <= room - min(held, room / 2):
                break
            again += 1
        width = sum(t.bits for t in self.nests.facts.dtypes[leaf[0]][:1]) * inner.lanes / self.machine.vector_bits
        return again * max(1.0, width) * max(1, inner.points // inner.lanes) * SPILLED

    def _arithmetic(self, leaf: Leaf, inner: InnermostLoops, decided: frozenset[str]) -> tuple[float, float]:
        one_unit = any_unit = instructions = (
            0.0  # cycles of the one unit that does what is slow, and of all units together
        )
        branches = self.nests.facts.branches(leaf)
        copies = inner.all_copies
        for t in self.nests.facts.tallies(leaf, copies):
            if t.loops.isdisjoint(inner.moving) or not self._cycles[t.kind]:
                continue
            count = t.count * branches.share(t.where, decided & t.loops) * (1 if copies else inner.copies(t.loops))
            if t.loops.isdisjoint(inner.across):
                any_unit += count * self._scalar(t)
                instructions += count
            else:
                vectors = count * ceil(inner.lanes * t.bits / self.machine.vector_bits)
                times = inner.lanes * count if t.kind == "idiv" else vectors
                shorter = 0.5 if t.kind == "mul" and t.bits <= 16 else 1.0  # costs are those of 32 bits
                cycles = times * self._cycles[t.kind] * shorter
                one_unit += cycles if t.kind in self._one_unit else 0.0
                any_unit += cycles / max(1.0, self.machine.issue.int) if t.kind in self._one_unit else cycles
                instructions += times
        return max(one_unit, any_unit), instructions

    def _masked_lanes(self, leaf: Leaf, inner: InnermostLoops) -> float:
        """The mean cycles per iteration for lanes that are computed one by one, because a condition holds only in some
        of them: in all iterations, unless a loop is partitioned and has separate code for those."""
        triangle, loops = self.nests.facts.triangle(leaf), inner.loops
        masked = {v for s in triangle.slopes if not inner.across.isdisjoint(s.times) for v in s.times}
        if not masked:
            return 0.0
        whole = masked.isdisjoint(inner.apart)
        box = {loops.fastest[n]: loops.trips(n) * loops.step[n] for n in (*inner.copied, *inner.vectors)}
        part = 1.0 if whole else triangle.cut(box, inner.across) / max(1e-9, self.nests.facts.part(leaf))
        return part * inner.points * CUT

    def _scalar(self, t: Tally) -> float:
        of_vector = self._cycles[t.kind]
        plain = ALONE * self.machine.costs.scalar
        return max(plain, of_vector / 2) if t.kind in _SCALAR_KINDS else plain
