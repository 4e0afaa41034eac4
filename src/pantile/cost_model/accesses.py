"""The loads and stores of one iteration of an innermost loop: vectors, what copies share, and shuffles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, floor, inf, prod
from operator import add, itemgetter

from ..dataclass import memoized
from ..expr.runs import runs
from ..machine.description import Cpu
from ..schedule.loop_tree import Leaf
from .counted_loops import InnermostLoops
from .nest import Nests
from .reads import Box, MemoryAccess, Reads

GATHERED_BYTES = (4, 8)  # bytes per lane that gather instructions load
LEAST_OF_A_RUN = 4  # bytes of the smallest elements that are gathered into vectors as they are
OF_A_SMALL_ONE, OF_A_RUN = 3.2, 2.5  # instructions: address, load and insertion of a small element; load of a run
OF_A_PIXEL = 2.3  # times as long as one element: a pixel has two loads, and its bytes meet in general registers
FEW_LANES = 8  # whose addresses general registers hold; those of other lanes are stored and reloaded
AGAIN, AGAIN_OF_A_PIXEL = 0.3, 1.0  # the time that this takes, relative to the time of an element
FEWER_LANES = 0.25  # more time per element with half as many lanes: fewer loads are in flight
OF_A_LOOKUP = 1.7  # instructions per lane of a gather instruction
OF_A_PART = 4  # additional instructions per vector of words from which small elements are extracted
MOST_CHANNELS = 8  # elements of a pixel, at most
# Cycles that a sum into an element selected by data waits: it may be the previous one, which is stored and reloaded.
SAME_PLACE = 3.0
LATE_PLACE = 7.0  # if that index is computed: loads wait until the addresses of stores are known
FIRST = 0.7  # of the time to load sums that are not those of the previous iteration: nothing is summed meanwhile
FEW_STORES = 16  # sums and their terms in one iteration, up to which LLVM finds that only the last stores are needed
DRAINED = 30.0  # cycles from the last product of a sum to the first of the next one
NEAR = 4  # the largest stride of loads that are wide loads and shuffles
# A buffer, how it depends on data, and an index along each dim.
_Place = tuple[str, tuple[object, ...], tuple[float, ...]]


def count_accesses(nests: Nests, machine: Cpu, leaf: Leaf, inner: InnermostLoops) -> IterationAccesses:
    """Count the loads and stores of one iteration of the innermost loops of a definition."""
    accesses = IterationAccesses(nests, machine, leaf, inner)
    accesses.count()
    return accesses


class IterationAccesses:
    """The loads and stores of an iteration, as `count_accesses` finds them."""

    def __init__(self, nests: Nests, machine: Cpu, leaf: Leaf, inner: InnermostLoops) -> None:
        self.nests, self.machine, self.leaf, self.inner = nests, machine, leaf, inner
        self.loads = self.stores = self.shuffles = self.gathers = self.instructions = self.waiting = 0.0
        self.rows: set[tuple[object, ...]] = set()
        self.is_unaligned = nests.is_unaligned(leaf[0])  # if not, the first lane is known to be even, for example
        self.by_lane = 0  # vectors whose single lanes are multipliers, without those that copies share
        self.by_element = False  # elements of vectors are loaded one by one
        self.chosen = False  # lanes are computed separately, because coordinates select them
        self.carried = False  # a scan goes along the innermost loop: its one row stays in registers
        self.ends = self.drained = 0.0  # cycles before and after a sum in which nothing is summed
        self.together: float = inf  # iterations that wait for each other but not for earlier ones
        self._in_rows = True  # so far, all that moves with lanes is whole pixels with all channels
        self._moves: dict[tuple[object, ...], list[list[float]]] = {}
        self._alike: dict[int, tuple[Box, float, int]] = {}
        self._jammed: dict[frozenset[str], list[str]] = {}
        self._apart = 0.0  # shuffles that split pixels into channels or merge them

    def count(self) -> None:
        """Count all accesses of the definition."""
        reads = self.nests.facts.reads(self.leaf)
        stage, is_update = self.leaf[0], self.leaf[1] > 0
        own = [a for a in reads.loads if a.source == stage]
        self._add([a for a in reads.loads if a.source != stage], "loads", 1.0)
        self._add_own(own, reads.stores, is_update)
        if not self._in_rows:  # channels that are computed alike stay as they are in memory
            self.shuffles += self._apart * self.machine.costs.shuffle
            self.instructions += self._apart
        if own and is_update:
            self.waiting = self._latency(own, reads)

    def _add_own(self, own: Sequence[MemoryAccess], stores: Sequence[MemoryAccess], is_update: bool) -> None:
        """Add the stores of a definition, and its loads of its own stage. Sums that stay in registers are loaded and
        stored only at the ends of the innermost loops."""
        issue = self.machine.issue
        kept = self._traffic_of_sums(stores) if is_update else 1.0
        before = self.loads, self.stores
        again = [a for a in own if not is_update or not self._is_carried(a, stores[0])]
        self.carried = len(again) < len(own)
        self._add(again, "loads", kept)
        self._add(stores, "stores", kept)
        if kept < 1:
            loads, stored = self.loads - before[0], self.stores - before[1]
            self.loads, self.stores = before
            self.ends = loads / issue.load + stored / issue.store
            self.drained = DRAINED * kept
        elif is_update and self.inner.lanes > 1 and self._are_sums(own, stores):
            more = (self.stores - before[1]) * (self._stored_each(stores[0]) - 1)
            self.stores += more
            self.instructions += more
            if self.machine.target.stores_by_arithmetic:
                loads, stored = self.loads - before[0], self.stores - before[1]
                self.loads, self.stores = before
                self.ends = FIRST * loads / issue.load + stored / issue.fma

    def _traffic_of_sums(self, stores: Sequence[MemoryAccess]) -> float:
        """The fraction of the loads and stores of sums that remains if sums stay in registers while the innermost loops
        run."""
        unknown = any(f.decided is not None for f in stores[0].forms)
        return 1.0 if unknown else 1 / self.inner.standing_still(stores[0].variables)

    def _are_sums(self, own: Sequence[MemoryAccess], stores: Sequence[MemoryAccess]) -> bool:
        """Whether each stored element was loaded before."""
        places = {tuple(a.forms) for a in stores}
        return bool(own) and not self.carried and all(tuple(a.forms) in places and not a.decided for a in own)

    def _stored_each(self, store: MemoryAccess) -> int:
        """How often an iteration stores each sum: once, or for each of its terms if that is much code."""
        every = prod(map(self.inner.loops.trips, self.inner.copied))
        return 1 if every <= FEW_STORES else every // self.inner.copies(store.variables)

    def _latency(self, own: Sequence[MemoryAccess], reads: Reads) -> float:
        """The cycles until the results of the previous iteration are available, for sums and scans."""
        stores = reads.stores
        moved = stores[0].variables
        unknown = any(f.decided is not None for a in (*own, *stores) for f in a.forms)
        latency = self.machine.costs.latency
        if unknown:
            return SAME_PLACE if reads.is_place_read else LATE_PLACE
        if self.inner.along.isdisjoint(moved) or self.carried:
            if not self.carried:
                self.together = self.inner.standing_still(moved)
            again = [n for n in self.inner.copied if self.inner.loops.of[n].isdisjoint(moved) or self.carried]
            return latency * prod(map(self.inner.loops.trips, again)) * (2 if self.carried else 1)
        return 0.0

    def _is_carried(self, load: MemoryAccess, store: MemoryAccess) -> bool:
        """Whether an earlier iteration of the innermost loop stored what is loaded, so that it is still in
        registers."""
        forms = zip(load.forms, store.forms, strict=True)
        return any(f.slope(v) and f.low != g.low for f, g in forms for v in self.inner.along)

    def _add(self, accesses: Sequence[MemoryAccess], unit: str, part: float) -> None:
        dense: dict[_Place, tuple[MemoryAccess, float]] = {}
        families: dict[tuple[object, ...], list[MemoryAccess]] = {}
        written, across = self.inner.written, self.inner.across
        for a in accesses:
            share = a.part(written)
            if not a.decided.isdisjoint(across) or a.rounded and self._is_uneven(a):
                families.setdefault(a.family, []).append(a)
                continue
            far, buffer, decided = self._row(a.source), a.buffer, a.family if a.decided else ()
            for place in self._places(a):
                self.rows.add((buffer, far(place)))
                at = (buffer, decided, place)
                before = dense.get(at)
                dense[at] = (a, share if before is None else max(share, before[1]))
        for family in families.values():
            self._in_rows = False
            self._gather(family, part * max(a.part(written) for a in family), unit)
        dense_accesses = self._vectors(dense, part)
        total: float = getattr(self, unit)
        for vectors, shuffles in dense_accesses:
            total += vectors * part
            self.shuffles += shuffles * self.machine.costs.shuffle * part
            self.instructions += (vectors + shuffles) * part
        setattr(self, unit, total)

    @memoized
    def _row(self, name: str) -> Callable[[tuple[float, ...]], object]:
        """Return a function that maps a place to its row of memory: its indices along all axes except those of channels
        and pixels."""
        axes = [axis for axis, n in enumerate(self.nests.memory_strides(name)) if n > MOST_CHANNELS]
        return itemgetter(*axes) if axes else lambda place: ()

    def _is_uneven(self, a: MemoryAccess) -> bool:
        """Whether the distances of lanes are irregular, as in an image that is enlarged by 3/2."""
        slopes = [f.slope(v) for f in a.forms if f.rounded for v in self.inner.across]
        return any(s and not (1 / s).is_integer() and not s.is_integer() for s in slopes)

    def _gather(self, family: Sequence[MemoryAccess], part: float, unit: str) -> None:
        """Add loads or stores of adjacent elements at data-dependent indices, lane by lane."""
        apart, offsets = self._offsets(family)
        count = self.inner.lanes * apart * part
        if self.inner.lanes == 1:
            setattr(self, unit, getattr(self, unit) + count * len(offsets))
            self.instructions += count * len(offsets)
            return
        by_data = not family[0].decided.isdisjoint(self.inner.across)  # not by rounding alone
        dtype = family[0].dtype
        widths = Counter(run.width for run in set(runs(offsets, dtype, self.inner.lanes).values()))
        for width, number in widths.items():
            if by_data and unit == "loads" and self._has_gather_instruction(width, dtype.bytes):
                self._gather_instructions(count * number, width, dtype.bytes)
            else:
                self._load_runs(count * number, width, dtype.bytes, unit, by_data)

    def _offsets(self, family: Sequence[MemoryAccess]) -> tuple[int, set[int]]:
        """The number of copies that read at data-dependent indices of their own, and the offsets of all other copies
        from the first."""
        loops, strides = self.inner.loops, self.nests.memory_strides(family[0].source)
        variables = frozenset(v for a in family for v in a.variables)
        moved = [n for n in self.inner.copied if not variables.isdisjoint(loops.of[n])]
        steady = [n for n in moved if all(_is_steady(a, loops.of[n]) for a in family)]
        apart = prod(loops.trips(n) for n in moved if n not in steady)
        return apart, {
            floor(sum((f.low + by) * stride for f, by, stride in zip(a.forms, move, strides, strict=True)))
            for a in family
            for move in self._offsets_of_copies(a, steady)
        }

    def _has_gather_instruction(self, width: int, size: int) -> bool:
        """Whether a gather instruction loads the runs of all lanes, by the rule of `codegen/memory`."""
        is_possible = width * size in GATHERED_BYTES or width == 1 and size < LEAST_OF_A_RUN
        return self.machine.costs.lookup is not None and is_possible

    def _gather_instructions(self, count: float, width: int, size: int) -> None:
        costs = self.machine.costs
        self.gathers += count * (costs.lookup or 0.0)
        self.instructions += count * OF_A_LOOKUP
        self.shuffles += count * (width - 1) / self.inner.lanes * width * costs.shuffle
        if size < LEAST_OF_A_RUN:  # a word that contains them
            vectors = count * 8 * LEAST_OF_A_RUN / self.machine.vector_bits
            self.shuffles += vectors * OF_A_PART * costs.shuffle
            self.instructions += vectors * OF_A_PART

    def _load_runs(self, count: float, width: int, size: int, unit: str, by_data: bool) -> None:
        """Add loads that load each lane's run at once and transpose in registers, or loads of single elements. Small
        elements are assembled into words in general registers, while vector units do other things."""
        costs = self.machine.costs
        if width > 1 or size < LEAST_OF_A_RUN:
            setattr(self, unit, getattr(self, unit) + count)
        lanes = self.inner.lanes
        stored = max(0.0, 1 - FEW_LANES / lanes) if by_data else 0.0
        each = costs.gather * (1 + FEWER_LANES * max(0.0, FEW_LANES / lanes - 1) * by_data)
        if width > 1:
            self.instructions += count * (OF_A_RUN + width / 2)
            self.shuffles += count * width / 2 * costs.shuffle
            of_pixels = OF_A_PIXEL + stored * AGAIN_OF_A_PIXEL if by_data else 0.0
            self.gathers += count * each * (of_pixels if size < LEAST_OF_A_RUN else stored * AGAIN)
            return
        self.by_element = True
        if size < LEAST_OF_A_RUN:
            self.instructions += count * OF_A_SMALL_ONE
        else:
            self.gathers += count * each * (1 + stored * AGAIN)
            self.instructions += 3 * count

    def _places(self, a: MemoryAccess) -> list[tuple[float, ...]]:
        """The places that the copies of an unrolled loop read or write; none, if these do not change in the loop."""
        variables = a.variables
        if variables.isdisjoint(self.inner.moving):
            return []
        loops = self.inner.loops
        jammed = self._jammed.get(variables)
        if jammed is None:
            jammed = [n for n in self.inner.copied if not variables.isdisjoint(loops.of[n])]
            self._jammed[variables] = jammed
        at = [f.low for f in a.forms]
        if not jammed:
            return [tuple(map(floor, at))]
        alike = (a.alike, *jammed)
        if alike not in self._moves:
            self._moves[alike] = self._offsets_of_copies(a, jammed)
        return [tuple(map(floor, map(add, at, move))) for move in self._moves[alike]]

    def _offsets_of_copies(self, a: MemoryAccess, jammed: Sequence[str]) -> list[list[float]]:
        """The distance of each copy from the first, along each dim."""
        moves, loops = [[0.0] * len(a.forms)], self.inner.loops
        for n in jammed:
            steps = [f.slope(loops.fastest[n]) * loops.step[n] for f in a.forms]
            copies = range(loops.trips(n))
            moves = [[by + s * i for by, s in zip(move, steps, strict=True)] for move in moves for i in copies]
        return moves

    def _vectors(self, dense: dict[_Place, tuple[MemoryAccess, float]], part: float) -> list[tuple[float, float]]:
        """The numbers of vectors and shuffles of each access, or of all accesses that share one wide access."""
        vectors: list[tuple[float, float]] = []
        near: dict[tuple[object, ...], tuple[int, MemoryAccess, dict[float, float]]] = {}
        same: dict[tuple[object, ...], float] = {}
        for (buffer, family, place), (a, share) in dense.items():
            strides, stride, width = self._alike.get(a.alike) or self._access_shape(a)
            if self.inner.lanes == 1 or stride == 1:
                vectors.append((share * width, 0.0))
                self._in_rows = False
                continue
            flat = sum([x * s for x, s in zip(place, strides, strict=True)])
            if stride == 0:
                which = (buffer, family, flat // self._neighbours(a))
                same[which] = max(share, same.get(which, 0.0))
                continue
            if stride < 1 and self.is_unaligned:
                self._gather([a], share * part, "loads")
            elif stride < 1:
                spread = width
                if a.part(self.inner.written | self.inner.across) < share:
                    self.chosen, spread = True, 0  # every second lane computes something else
                vectors.append((share * ceil(width * stride), share * spread))
            elif stride > NEAR or stride != int(stride):
                vectors.append((share * self.inner.lanes, share * self.inner.lanes))
            else:
                near.setdefault((buffer, family, flat // stride), (int(stride), a, {}))[2][flat % stride] = share
                if not self.inner.written.isdisjoint(a.variables):
                    continue  # each copy has a channel of its own
            self._in_rows = False
        for stride, a, channels in near.values():
            self._in_rows = self._in_rows and len(channels) == stride
            self._apart += sum(channels.values()) * self._width(a) * part
            vectors.append((max(channels.values()) * stride * self._width(a), 0.0))
        if same and any(self._neighbours(a) > 1 for a, _ in dense.values()):
            self.by_lane += len(same)
        return [*vectors, *((share, 0.0) for share in same.values())]

    def _access_shape(self, a: MemoryAccess) -> tuple[Box, float, int]:
        """The strides in memory along each axis and between lanes, and the number of vectors of one access, memoized
        for all accesses that differ only by constants."""
        strides = self.nests.memory_strides(a.source)
        known = self._alike[a.alike] = strides, abs(self._stride(a, strides)), self._width(a)
        return known

    def _width(self, a: MemoryAccess) -> int:
        return ceil(self.inner.lanes * a.dtype.bits / self.machine.vector_bits)

    def _neighbours(self, a: MemoryAccess) -> int:
        """The number of scalars in one load, if multiplications by a single lane can broadcast each of them."""
        by_lane = self.machine.target.multiplies_by_lane and a.dtype.is_float
        return self.machine.vector_bits // a.dtype.bits if by_lane else 1

    def _stride(self, a: MemoryAccess, strides: Sequence[int]) -> float:
        """The stride of adjacent lanes in memory, in elements. Lanes of fused loops continue where the inner loop ends,
        as memory does; an index that only the outer loop moves changes once per inner loop."""
        loops, total = self.inner.loops, 0.0
        for n in self.inner.vectors:
            step = {v: sum(f.slope(v) * s for f, s in zip(a.forms, strides, strict=True)) for v in loops.of[n]}
            fastest = loops.fastest[n]
            total += step[fastest] or sum(step.values()) / loops.extents[fastest]
        return total


def _is_steady(a: MemoryAccess, variables: frozenset[str]) -> bool:
    """Whether an access always moves by the same distance with some variables."""
    rounded = any(f.rounded and any(f.slope(v) for v in variables) for f in a.forms)
    return variables.isdisjoint(a.decided) and not rounded
