"""Sums of products on a GPU, staged: a block copies a slice of the factors to shared memory while it sums up the slice
before, and each thread keeps a tile of sums in registers.

    out[i, j] = relu(sums[i, j])       block for ib, jb:
    sums[i, j] += a[i, k] * b[k, j]        for slice of k:      a[ib, slice] and b[slice, jb] are copied ahead
                                               thread for it, jt: for k: 8 x 16 sums, of 8 of a times 16 of b
                                           thread for it, jt: out = relu(sums)

If the only reader of the sums computes each value from the sum at the same point, it takes the sums from the registers.
The columns of a thread come in groups of four, each of which is one load; those of its neighbours are in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain as concatenated

from ...dataclass import cached_property, dataclass
from ...expr.nodes import Var
from ...graph.nodes import InputInfo, Stage
from ...schedule.clones import place_of, places
from ...schedule.directives import StageSchedule, on
from ...schedule.names import fresh
from ...schedule.updates import constant, loop_names
from ..strategy import Problem
from .marking import Part
from .staged_tiles import FOUR, Read, StagedTile, Sums, best_tile
from .sum_of_products import Factor, SumOfProducts, factors

FEWEST_ROWS, FEWEST_COLUMNS = 4, 8  # of a stage
FEWEST_PRODUCTS = 1 << 20


@dataclass(frozen=True)
class StagedSum:
    """A sum with its tiles, and the factors that are copied for them."""

    problem: Problem
    sum: SumOfProducts
    tile: StagedTile
    copied: tuple[Factor, ...]

    @staticmethod
    def of(problem: Problem, stage: Stage) -> StagedSum | None:
        """The staged sum of a stage, if staging is worth it. `problem` has all stages, also those that are inlined."""
        found = _is_worth_it(problem, stage)
        if found is None:
            return None
        of_terms = factors(stage)
        reductions = {r.name for r in found.update.domain}
        copied = tuple(f for f in of_terms if f.loops & reductions and _is_shared(problem, found, f))
        if not any(found.row in f.loops for f in copied) or not any(found.column in f.loops for f in copied):
            return None
        loops = problem.facts.loops(stage.name, 1)
        sums = Sums(
            tuple(found.extents.items()),
            found.row,
            found.column,
            -(-sum(t.bytes for t in stage.dtypes) // 4),
            tuple((r.name, loops[r.name], constant(r.extent) is not None) for r in found.update.domain),
            tuple(Read(tuple(tuple(s.items()) for s in f.indices), max(FOUR, f.load.dtype.bytes)) for f in copied),
        )
        tile = best_tile(problem.gpu, sums)
        return None if tile is None else StagedSum(problem, found, tile, copied)

    def part(self, reader: str | None, names: set[str]) -> StagedPart:
        """Return the directives. `reader` takes the sums out of registers; without one, the stage itself stores a copy
        of them. `names` are taken by stages."""
        stages = (self.sum.stage.name,) if reader is None else (self.sum.stage.name, reader)
        return StagedPart(_Directives(self, reader, names).part(), stages)


def _is_shared(problem: Problem, found: SumOfProducts, f: Factor) -> bool:
    """Whether several rows or columns share a factor, and its stage has one value per point."""
    producer = problem.graph.producer.get(f.load.buffer)
    is_single = producer is None or len(producer.buffers) == 1
    return is_single and not f.loops >= {found.row, found.column}


def pointwise_reader(problem: Problem, stage: Stage) -> Stage | None:
    """The only reader of a stage, if it computes each value from those of the stage at the same point; None if not."""
    readers = problem.graph.consumers[stage.name]
    reader = problem.graph.stage[readers[0]] if len(readers) == 1 and stage.name not in problem.graph.output else None
    if reader is None or reader.updates or reader.ndim != stage.ndim:
        return None
    loads = [e for e in reader.pure.loads if e.buffer in stage.buffers]
    at = [[isinstance(i, Var) and i.name for i in e.indices] for e in loads]
    return reader if all(indices == [*reader.dims] for indices in at) else None


@dataclass(frozen=True)
class _Loops:
    """The loops that one dim is split into."""

    block: str
    thread: str
    own: tuple[str, ...]


@dataclass(frozen=True)
class _Directives:
    of: StagedSum
    reader: str | None
    names: set[str]  # of stages
    taken: set[str] = field(default_factory=set)  # by dims and loops

    @cached_property
    def stage(self) -> Stage:
        return self.of.sum.stage

    @cached_property
    def tile(self) -> StagedTile:
        return self.of.tile

    @cached_property
    def dims(self) -> list[str]:
        """The dims along which a block has more than one point."""
        return [d for d, n in self.tile.block.items() if n > 1]

    def part(self) -> Part:
        graph = self.of.problem.graph
        if self.reader is None:
            sums = self._stage(f"{self.stage.name}_sums")
            host, start = self.stage, on(self.stage.name).compute_root().copy_out(sums)
        else:
            sums, host = self.stage.name, graph.stage[self.reader]
            start = on(host.name).compute_root()
        self.taken.update(
            concatenated(host.dims, loop_names(self.stage, self.stage.updates[0]), *[s.dims for s in graph.stages])
        )
        called = dict(zip(self.stage.dims, host.dims, strict=True))
        stored, last = self._stored(start, called)
        summed, sliced = self._summed(on(sums).compute_at(host.name, last).store_in("register"))
        return (stored, summed, *self._copies(sums, sliced))

    def _stored(self, chain: StageSchedule, called: Mapping[str, str]) -> tuple[StageSchedule, str]:
        """Schedule the stage that stores the sums. Return it, and its innermost block loop."""
        blocks, inside = [], {}
        for d in self.stage.dims:
            if d in self.dims:
                block, inner = self._new(called[d], "_o"), self._new(called[d], "_i")
                chain = chain.split(called[d], block, inner, self.tile.block[d])
                blocks.append(block)
                inside[d] = inner
            else:
                blocks.append(called[d])
        chain, threads, own = self._of_threads(chain, inside)
        chain = chain.reorder(*blocks, *threads, *own).block(*blocks).thread(*threads)
        return _written_out(chain, own), blocks[-1]

    def _summed(self, chain: StageSchedule) -> tuple[StageSchedule, str]:
        """Schedule the sums in registers. Return them, and the loop over slices."""
        inside = {d: d for d in self.dims}
        whole = [d for d in self.stage.dims if d not in inside]
        chain, threads, own = self._of_threads(chain, inside)
        chain = _written_out(chain.reorder(*whole, *threads, *own).thread(*threads), own)
        update, t = chain.update(), self.tile
        domain = self.stage.updates[0].domain
        extents = {r.name: constant(r.extent) for r in domain}
        sliced, step = self._new(t.sliced, "_o"), self._new(t.sliced, "_i")
        whole_slices = (extents[t.sliced] or 1) % t.slice == 0 and extents[t.sliced] is not None
        update = update.split(t.sliced, sliced, step, t.slice, tail="auto" if whole_slices else "peel")
        update, threads, own = self._of_threads(update, inside)
        outside = [r.name for r in domain if r.name not in t.inside and r.name != t.sliced]
        terms = [step, *t.inside]
        update = update.reorder(*whole, *outside, sliced, *threads, *terms, *own).thread(*threads)
        return _written_out(update, [*([terms[-1]] if t.unrolled > 1 else []), *own]), sliced

    def _of_threads(
        self, chain: StageSchedule, inside: Mapping[str, str]
    ) -> tuple[StageSchedule, list[str], list[str]]:
        """Share the loops inside of a block's tile among threads. Return the thread loops, and the loops of each
        thread."""
        t, threads, own = self.tile, list[str](), list[str]()
        for d, count in t.threads:
            if d not in self.dims:
                continue
            loop, each = inside[d], t.own.get(d, 1)
            if d == t.sums.column and each > FOUR:
                four, rest = self._new(d, "_f"), self._new(d, "_q")
                chain = chain.split(loop, four, rest, FOUR * count)
                own.append(four)
                loop, each = rest, FOUR
            if count > 1 and each > 1:
                shared, part = self._new(d, "_t"), self._new(d, "_p")
                chain = chain.split(loop, shared, part, each)
                threads.append(shared)
                own.append(part)
            else:
                (threads if count > 1 else own).append(loop)
        return chain, threads, own

    def _copies(self, sums: str, sliced: str) -> Iterator[StageSchedule]:
        graph = self.of.problem.graph
        for f, read in zip(self.of.copied, self.tile.sums.reads, strict=True):
            buffer = f.load.buffer
            source: Stage | InputInfo = graph.producer.get(buffer) or graph.input[buffer]
            name = self._stage(f"{source.name}_near")
            if isinstance(source, Stage):
                dims = [*source.dims]
            else:
                dims = [self._new(min(s, default="d"), "_n") for s in f.indices]
            at = places(source, self.stage)
            which = [at.index(place_of(f.load))] if len(at) > 1 else []
            yield on(source.name).copy_in(sums, name, *dims, *which)
            yield self._copy(on(name).compute_at(sums, sliced).store_in("shared"), read, dims)

    def _copy(self, chain: StageSchedule, read: Read, dims: Sequence[str]) -> StageSchedule:
        """Schedule the copy of a slice of a factor to shared memory, by all threads of the block."""
        t = self.tile
        chain = chain.compute_ahead(t.ahead)
        order = [dims[k] for k in read.stored(t.sums.row, t.sums.column, tuple(t.block))]
        chain = chain if order == [*dims] else chain.reorder_storage(*order)
        padding, lanes = t.padding(read), t.lanes_of_copy(read)
        chain = chain.pad_storage(order[-1], padding) if padding else chain
        if lanes == 1:
            return chain.thread(*dims)
        parts, part = self._new(dims[-1], "_b"), self._new(dims[-1], "_l")
        chain = chain.split(dims[-1], parts, part, lanes, tail="guard")
        return chain.thread(*dims[:-1], parts).vectorize(part)

    def _stage(self, name: str) -> str:
        """The name of a new stage."""
        name = fresh(name.replace(".", "_"), self.names.__contains__)
        self.names.add(name)
        return name

    def _new(self, loop: str, suffix: str) -> str:
        return fresh(loop.replace(".", "_") + suffix, self.taken.__contains__)


def _written_out(chain: StageSchedule, loops: Sequence[str]) -> StageSchedule:
    """Unroll the loops over what a thread has of its own, with neighbouring columns as a vector."""
    for loop in loops[:-1]:
        chain = chain.unroll(loop)
    return chain.vectorize(loops[-1]) if loops else chain


def is_staged(problem: Problem, stage: Stage) -> bool:
    """Whether a stage is a sum to stage, or takes one out of registers, so that no group may contain it. `problem` is
    the one that is left after inlining."""
    return problem.facts.once(("staged", stage.name), lambda: _is_staged(problem, stage))


def _is_staged(problem: Problem, stage: Stage) -> bool:
    if stage.updates:
        return StagedSum.of(problem, stage) is not None
    producers = problem.graph.producer
    sums = {s.name: s for e in stage.pure.loads if (s := producers.get(e.buffer)) is not None and s.updates}
    return any(pointwise_reader(problem, s) is stage and is_staged(problem, s) for s in sums.values())


def _is_worth_it(problem: Problem, stage: Stage) -> SumOfProducts | None:
    found = SumOfProducts.of(problem, stage, FEWEST_ROWS, FEWEST_COLUMNS)
    return None if found is None or problem.facts.runs(stage.name, 1) < FEWEST_PRODUCTS else found


@dataclass(frozen=True)
class StagedPart:
    """The directives of a sum and of what it copies, and the stages of the pipeline that it schedules."""

    part: Part
    stages: tuple[str, ...]


def staged(problem: Problem, parts: Sequence[Part], inlined: Collection[str]) -> list[StagedPart]:
    """Return all sums that can be staged beside these directives. `problem` has all stages. The reader of a sum takes
    it out of registers if it is on its own."""
    left, graph = problem.inlined(tuple(inlined)), problem.graph
    hosts = {str(d.args[0]) for part in parts for c in part for d in c.directives if d.verb == "compute_at"}
    names = {*graph.stage, *graph.input, *(p.name for p in graph.params)}
    found: list[StagedPart] = []
    for name in (s.name for s in left.graph.stages if s.updates):
        s = StagedSum.of(problem, graph.stage[name])
        if s is not None:
            reader = pointwise_reader(left, left.graph.stage[name])
            if reader is not None and (reader.name in hosts or any(reader.name in p.stages for p in found)):
                reader = None
            found.append(s.part(None if reader is None else reader.name, names))
    return found
