"""The bytes that pass between a core, each cache, and memory, which depend on the loop at which data are reused before
they are evicted.

Of the loops around a definition, consider the outermost one whose iterations each touch no more than a cache holds,
with all that is computed in them. From one iteration to the next, the cache keeps what they share: each time that the
loop begins, the cache misses what all its iterations touch together. What is stored inside of an iteration stays in the
cache. If everything fits, it was left there by the call before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf, prod

from ..dataclass import dataclass, memoized
from ..machine.description import Cpu
from ..schedule.loop_tree import Leaf
from ..schedule.plan import Site
from ..target.kinds import WRITTEN_OUT, Kind
from .layout import MemoryDim, conflict_factor, far_runs, run
from .nest import Nests
from .reads import Box, scattered

USED = 0.6  # the fraction of a cache that is available to a loop; the rest is lost to other data and to associativity
SHORT_BYTES = 512  # a shorter run ends before the hardware prefetcher follows it
AT_ONCE = 8  # the most runs that are in flight at a time
BOTH_WAYS = 2  # runs of a scan: it reads them and writes them
PREFETCHED = 0.4  # the fraction of the latency of a run that remains if the schedule prefetches it
FOLLOWED = 16  # runs side by side that the hardware prefetcher follows
NEAR_BYTES = 2048  # from run to run, if steps are recognized and followed: both are in a page
FROM_NEXT = 5.0  # the latency in cycles of a line of the next cache that was not prefetched
WRITTEN = 0.6  # the cost of a written byte relative to a read one: nobody waits for it


@dataclass
class BytesMoved:
    """The traffic of one definition: bytes from each cache except L1, and from memory last; the stored ones among the
    first of these; and the cycles until runs of elements have begun to arrive."""

    bytes: list[float]
    stored: float = 0.0
    start_cycles: float = 0.0

    def times(self, part: float) -> BytesMoved:
        """Return the traffic of a fraction of the definition."""
        return (
            self
            if part == 1
            else BytesMoved([n * part for n in self.bytes], self.stored * part, self.start_cycles * part)
        )


def cache_capacities(machine: Cpu, threads: int, footprint: float) -> tuple[float, ...]:
    """The bytes of each cache that one thread can use; infinite if the cache holds the footprint of the whole call,
    which for a shared cache includes what other threads have loaded."""
    sharing = [min(cache.shared_by, threads) for cache in machine.caches]
    return tuple(
        inf if footprint <= USED * cache.size * (threads == n) else USED * cache.size / n
        for cache, n in zip(machine.caches, sharing, strict=True)
    )


class GroupTraffic:
    """The memory traffic of the definitions of a group of stages."""

    def __init__(self, nests: Nests, machine: Cpu) -> None:
        self.nests, self.machine, self._line = nests, machine, machine.l1.line
        self._inside: dict[Site, list[Leaf]] = {}
        for leaf in nests.leaves:
            for site in nests.tree.chain(leaf):
                self._inside.setdefault(site, []).append(leaf)
        self._decided = {
            leaf: {
                name: scattered(of, nests.memory_strides(name))
                for name, of in nests.facts.reads(leaf).scattered.items()
            }
            for leaf in nests.leaves
        }
        self._stars = {leaf for leaf in nests.leaves if nests.facts.reads(leaf).stars}
        sources = dict.fromkeys(source for leaf in nests.leaves for source in nests.facts.reads(leaf).sources)
        self._layout = {name: nests.layout(name) for name in sources}
        self._whole = {name: nests.whole_layout(name) for name in sources}  # with the row distances of the whole stage
        stages = {name: nests.plan.stages[name] for name in sources if name in nests.plan.stages}
        self._stores = {name: nests.tree.to(p.store) for name, p in stages.items()}
        self._stored_in: dict[Site | None, set[str]] = {None: set(stages)}  # by loop: what outlives its iterations
        for name, sites in self._stores.items():
            for site in sites:
                self._stored_in.setdefault(site, set()).add(name)

    def footprint(self) -> dict[str, float]:
        """The bytes of each source that the whole call touches."""
        return self._largest(self.nests.leaves, None)

    def moved(self, sizes: Sequence[float]) -> dict[Leaf, BytesMoved]:
        """The traffic of each definition, given the capacities of the caches."""
        moved_by = {leaf: BytesMoved([0.0] * len(self.machine.caches)) for leaf in self.nests.leaves}
        beyond: dict[tuple[str, Leaf], list[float]] = {}
        for level, size in enumerate(sizes):
            for (_, source), (leaf, missed, times, box) in self._misses(size, first=level == 0).items():
                amounts = beyond.setdefault((source, leaf), [0.0] * len(self.machine.caches))
                amounts[level] += missed
                if self._is_read(leaf, source):
                    runs = min(times * self._runs(leaf, source, box, level), missed / self._line)
                    waits = self._to_begin(level, missed / runs) / self._at_once(leaf, source)
                    moved_by[leaf].start_cycles += (
                        runs * waits * (PREFETCHED if self._is_prefetched(leaf, source) else 1)
                    )
        for (source, leaf), amounts in beyond.items():
            for level, n in enumerate(amounts):
                farther = amounts[level + 1] if level + 1 < len(amounts) else 0.0
                here = max(0.0, n - farther)
                if source == leaf[0]:
                    moved_by[leaf].stored += 0.0 if level else here
                    here *= WRITTEN + self._is_read(leaf, source)
                moved_by[leaf].bytes[level] += here
        return {leaf: moved.times(self.nests.facts.part(leaf)) for leaf, moved in moved_by.items()}

    def _to_begin(self, level: int, length: float) -> float:
        """The latency in cycles of a run of this many bytes that misses a cache, beyond that of the next one. Short
        runs end before the hardware prefetcher follows them."""
        if level == 0:
            return FROM_NEXT if length < SHORT_BYTES else 0.0
        costs, last = self.machine.costs, level == len(self.machine.caches) - 1
        near, far = (costs.line, costs.far_line) if length < SHORT_BYTES else (costs.stream, costs.far_stream)
        return near if not last else far - near if level > 1 else far

    def _is_read(self, leaf: Leaf, source: str) -> bool:
        return source != leaf[0] or self.nests.facts.reads(leaf).is_scan

    def _is_prefetched(self, leaf: Leaf, source: str) -> bool:
        """Whether the schedule prefetches a source."""
        prefetches = self.nests.plan.stages[leaf[0]].prefetches
        return leaf[1] == 0 and any(self.nests.facts.source(p.buffer) == source for p in prefetches)

    def _at_once(self, leaf: Leaf, source: str) -> float:
        """The number of runs that one iteration of the innermost loop requests, with all lanes of a vector; their
        latencies overlap. A scan reads one run and writes one, which do not."""
        if source == leaf[0]:
            return 1 / BOTH_WAYS
        chain = self.nests.tree.chain(leaf)
        innermost = next((site for site in reversed(chain) if self.nests.tree.kind(site) is not Kind.VECTOR), None)
        box = self._box(leaf, source, innermost)
        return max(1.0, min(AT_ONCE, prod(box) / run(self._layout[source], box)))

    def _misses(self, size: float, first: bool) -> dict[tuple[Site | None, str], tuple[Leaf, float, float, Box]]:
        """The bytes of each source that miss a cache (L1 if `first`), with the definition that misses them, how often,
        and which box. If several definitions in a loop use the same box, one of them fetches it."""
        if size == inf:
            return {}
        misses: dict[tuple[Site | None, str], tuple[Leaf, float, float, Box]] = {}
        plans = self.nests.plan.stages
        for leaf in self.nests.leaves:
            chain = self.nests.tree.chain(leaf)
            innermost = max(0, len(chain) - self._written_out(leaf) - 1)
            depth = next((k for k in range(innermost) if self._iteration_footprint(chain[k], first) <= size), innermost)
            site = chain[depth] if chain else None
            outside = chain[depth - 1] if depth > 0 else None
            boxes = self.nests.footprint(leaf, outside)
            most = self._scattered(leaf, outside)
            filled = self.nests.filled(leaf, outside) if leaf in self._stars else {}
            times = self.nests.times(outside)
            for source, box in (boxes or {}).items():
                size_of = filled.get(source, 1.0) * self._bytes(source, box)
                if source in plans:
                    if site in self._stores[source] or self._is_still_there(leaf, source, size):
                        continue
                    size_of = min(size_of, self._bytes(source, self.nests.stored(source)))  # what it stores in a loop
                if source in most:
                    size_of = min(size_of, most[source])
                if source in plans:
                    size_of = max(0.0, size_of - self._just_computed(leaf, source, chain[:depth], size))
                amount = times * size_of
                if amount > (misses[site, source][1] if (site, source) in misses else 0.0):
                    misses[site, source] = (leaf, amount, times, box)
        return misses

    def _is_still_there(self, leaf: Leaf, source: str, size: float) -> bool:
        """Whether what a scan has stored in an iteration of a common loop is still in a cache that cannot hold all of
        the iteration, because little was accessed in between. Scans pass over the same elements repeatedly."""
        sites = self._stores[source]
        if not sites or sites[-1] not in self.nests.tree.chain(leaf) or not self._is_scanned(source):
            return False
        inside = self._inside[sites[-1]]
        at = inside.index(leaf)
        before = next((k for k in reversed(range(at)) if source in self.nests.facts.reads(inside[k]).sources), at)
        return before < at and sum(self._largest(inside[before : at + 1], sites[-1]).values()) <= size

    def _just_computed(self, leaf: Leaf, source: str, outside: Sequence[Site], size: float) -> float:
        """The bytes of a stage that was computed shortly before, in the same iteration of these loops, and that are
        still in a cache that cannot hold all of the iteration."""
        p = self.nests.plan.stages[source]
        if p.compute is None or p.compute not in outside or source == leaf[0]:
            return 0.0
        inside = self._inside[p.compute]
        at = inside.index(leaf)
        made = next((k for k in reversed(range(at)) if inside[k][0] == source), at)
        between = outside[outside.index(p.compute) + 1 :]
        if made == at or any(self.nests.trips(site) > 1 for site in between):
            return 0.0
        is_there = sum(self._largest(inside[made : at + 1], p.compute).values()) <= size
        return self._bytes(source, self.nests.computed(source).box) if is_there else 0.0

    def _is_scanned(self, source: str) -> bool:
        updates = range(1, len(self.nests.facts.graph.stage[source].definitions))
        return any(self.nests.facts.reads((source, k)).is_scan for k in updates)

    @memoized
    def _written_out(self, leaf: Leaf) -> int:
        """The number of innermost loops of a definition that are vectorized, unrolled, or have a trip count of one."""
        count = 0
        for site in reversed(self.nests.tree.chain(leaf)):
            if self.nests.tree.kind(site) not in WRITTEN_OUT and self.nests.trips(site) > 1:
                break
            count += 1
        return count

    @memoized
    def _iteration_footprint(self, site: Site, first: bool) -> float:
        """The footprint of one iteration of a loop in a cache (L1 if `first`), in bytes."""
        return sum(self._largest(self._inside[site], site, first).values())

    def _largest(self, leaves: Iterable[Leaf], site: Site | None, with_conflicts: bool = False) -> dict[str, float]:
        sizes: dict[str, float] = {}
        nests, outlive = self.nests, self._stored_in.get(site, ())
        bytes_of = self._bytes_with_conflicts if with_conflicts else self._bytes
        for leaf in leaves:
            most = self._scattered(leaf, site) if self._decided[leaf] else {}
            filled = nests.filled(leaf, site) if leaf in self._stars else {}
            for source, box in (nests.footprint(leaf, site) or {}).items():
                if source in outlive:  # for a stage stored in a loop: its memory there
                    size = bytes_of(source, nests.stored(source))
                else:
                    size = filled.get(source, 1.0) * bytes_of(source, box)
                if source in most:
                    size = min(size, most[source])
                if source not in sizes or size > sizes[source]:
                    sizes[source] = size
        return sizes

    @memoized
    def _bytes_with_conflicts(self, source: str, box: Box) -> float:
        """The bytes of an L1 cache that a box takes if its lines conflict with each other: see `layout`."""
        return self._bytes(source, box) * self._conflict_factor(source, box)

    def _conflict_factor(self, source: str, box: Box) -> float:
        p, l1 = self.nests.plan.stages.get(source), self.machine.l1
        padding = l1.line if p is not None and p.store is None else 0  # if sizes are constants, rows are not padded
        return conflict_factor(l1, self._layout[source], box, self.nests.facts.dtypes[source][0].bytes, padding)

    def _scattered(self, leaf: Leaf, site: Site | None) -> dict[str, float]:
        """The most bytes that a definition touches of sources that it indexes by data."""
        places = self._decided[leaf]
        extents = self.nests.extents(leaf, site) if places else None
        if extents is None:
            return {}
        return {source: of.bytes(extents, self._line) for source, of in places.items()}

    @memoized
    def _bytes(self, source: str, box: Box) -> float:
        """The bytes of the cache lines that hold a box."""
        line, points = self._line, prod(box)
        together = min(points, run(self._layout[source], box))
        total = 0.0
        for t in self.nests.facts.dtypes[source]:
            length = together * t.bytes
            lines = length / line if together == points else (length + line - t.bytes) / line
            total += points / together * max(1.0, lines) * line
        return total

    def _runs(self, leaf: Leaf, source: str, box: Box, level: int) -> float:
        """The number of runs, as followed by the hardware prefetcher, in which a box is traversed. In L1, rows that
        conflict evict each other before they are used."""
        points = prod(box)
        together: float = min(points, run(self._layout[source], box))
        if level:
            together = min(together, self._walk_length(leaf, source))
        elif self._bytes_with_conflicts(source, box) == self._bytes(source, box):
            together = min(points, self._stream_length(leaf, source))
        return points / together * len(self.nests.facts.dtypes[source])

    @memoized
    def _walk_length(self, leaf: Leaf, source: str) -> int:
        """The number of consecutive elements, up to the innermost loop that does not continue them."""
        length, side_by_side = 1, 0
        for runs, box in self._far_runs(leaf, source, self._whole[source]):
            side_by_side = side_by_side or runs  # in one iteration: each has an instruction of its own
            if runs > FOLLOWED * side_by_side:
                break
            length = run(self._whole[source], box)
        return length

    @memoized
    def _stream_length(self, leaf: Leaf, source: str) -> float:
        """The number of elements that follow each other at short steps in one of the runs that proceed side by side."""
        length, side_by_side = 1.0, 0
        for runs, box in self._far_runs(leaf, source, self._layout[source], self._written_out(leaf)):
            side_by_side = side_by_side or runs  # of one iteration
            if runs > side_by_side:
                break
            length = prod(box) / runs
        return length

    def _far_runs(self, leaf: Leaf, source: str, parts: list[MemoryDim], inside: int = 0) -> Iterator[tuple[int, Box]]:
        """For each loop from the innermost, the number of distant places that its iterations access, and their box,
        without the `inside` innermost loops."""
        near = NEAR_BYTES / self.nests.facts.bytes_per_point(source)
        for site in (*reversed(self.nests.tree.chain(leaf)), None)[inside:]:
            box = self._box(leaf, source, site)
            yield far_runs(parts, box, near), box

    def _box(self, leaf: Leaf, source: str, site: Site | None) -> Box:
        return (self.nests.footprint(leaf, site) or {}).get(source, self.nests.facts.whole[source])
