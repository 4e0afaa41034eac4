"""GPU defaults for stages that a schedule does not name: each stage is a kernel, and its pixels are threads.

    f[y, x] = ...              block for yo, xo: thread for yi in 0..8, xi in 0..32: f[8*yo + yi, 32*xo + xi]

Rows that are known to be short, such as the eight values of each pixel of a stack of pictures, are computed in vectors.

A reduction per pixel runs in each thread. Short reductions are unrolled, so that all of their loads are in flight at
the same time, and run in the kernel of the pure definition, whose values are then never stored. A loop that carries
values from one iteration to the next also runs in each thread, unless it can run in strips (`gpu_scans`). One thread
computes all channels of a pixel.

Reductions of many terms to few results are computed by all blocks and threads, instead of one thread per result:

    s[] += img[r.y, r.x]       ->   each thread sums its share, each block what its threads have, 32 threads what blocks
                                    have, and one what these have
    h[img[r.y, r.x]] += 1      ->   each block counts its share in shared memory, by atomic instructions, and adds that
                                    to h

Blocks take rows, and threads take columns, with a constant stride, so the number of blocks is constant although the
extents are not. If memory cannot be updated atomically, each thread has a private histogram. Reductions whose order
matters, such as strict sums of floats, are not parallelized.

Histograms per cell of pixels, or per row, are counted in shared memory (`gpu_bins`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from ..analysis.channels import channels
from ..analysis.interval import EVERYTHING, Interval
from ..analysis.regions import Box, required
from ..dataclass import cached_property, dataclass, memoized
from ..graph.nodes import Definition, Graph, Stage
from ..target.gpu import WARP_SIZE
from .associative import associative
from .directives import StageSchedule, on
from .gpu_bins import BinsOfBlocks
from .gpu_blocks import block_sizes, in_blocks
from .gpu_scans import CutScans, StripScans, in_steps
from .gpu_updates import is_pointwise, pointwise_update
from .names import fresh
from .nest import is_one_instruction
from .parallel_reduction import free_name
from .sums import power_of_two
from .updates import accumulation, constant, is_independent, loop_names, pure_dims

VECTOR, LONGEST_VECTOR = 4, 16  # values, and most bytes, of a thread along rows that are shorter than a warp


class GpuDefaults:
    """The default directives for the stages of one pipeline. `named` has the stages that a schedule names. `extents`
    returns the extents of a stage's dims, if they are known better than from the graph alone."""

    def __init__(
        self,
        graph: Graph,
        strict: bool,
        named: Collection[str],
        mentioned: Collection[str] = (),
        extents: Callable[[str], Sequence[float]] | None = None,
    ) -> None:
        """`mentioned` has the stages at whose loops the schedule computes others, and those that read copies."""
        self._graph, self._mentioned, self._known_extents = graph, mentioned, extents
        self._across_blocks = GridReductions(graph, strict, named)
        taken = {*named, *graph.stage, *graph.input, *(p.name for p in graph.params)}
        self._in_strips = StripScans(graph, strict, taken, self._across_blocks.points)
        self._in_bins = BinsOfBlocks(graph, taken, self._across_blocks.points)

    @cached_property
    def _channels(self) -> dict[str, int]:
        return channels(self._graph)

    def at_root(self, stage: Stage) -> list[StageSchedule]:
        """All directives of a stage, and the schedules of the partial results of its reductions and scans."""
        if bins := self.bins(stage):
            return [*bins]
        schedule = self.marked(stage, stage.pure, on(stage.name).compute_root())
        cut = self.cut_scans(stage)
        schedule, parts = (schedule, list[StageSchedule]()) if cut is None else (cut.whole(schedule), cut.parts())
        for k, update in enumerate(stage.updates):
            if cut is not None and k <= cut.last:
                continue
            start = schedule.update(k)
            shared = self._across_blocks.of_update(stage, k, schedule, parts)
            marked = shared[0] if shared else self._of_update(stage, update, start)
            schedule = schedule if marked == start else marked
            parts += shared[1:]
        return [schedule, *parts]

    def _of_update(self, stage: Stage, update: Definition, start: StageSchedule) -> StageSchedule:
        """Schedule the loops of an update. A pointwise update runs in the kernel of the pure definition."""
        marked = self.marked(stage, update, start)
        if marked == start or not is_pointwise(stage, update):
            return in_steps(update, marked)
        innermost = next(d.args[-1 - len(update.domain)] for d in reversed(marked.directives) if d.verb == "reorder")
        return pointwise_update(marked, stage, update, str(innermost))

    @memoized
    def cut_scans(self, stage: Stage) -> CutScans | None:
        """The scans of a stage that run in strips, or None if it has none."""
        return None if stage.name in self._mentioned else self._in_strips.of_stage(stage, self._channel(stage))

    @memoized
    def bins(self, stage: Stage) -> tuple[StageSchedule, ...]:
        """The schedules of a stage and of its bins, if blocks have these in shared memory."""
        found = () if stage.name in self._mentioned else self._in_bins.of_stage(stage, self._extents(stage))
        if not found or self.cut_scans(stage) is not None:
            return ()
        updates = range(len(stage.updates))
        return () if any(self._across_blocks.of_update(stage, k, on(stage.name), ()) for k in updates) else found

    def _channel(self, stage: Stage) -> str | None:
        """The dim of a stage that counts channels, or None."""
        return stage.dims[-1] if stage.name in self._channels else None

    def marked(self, stage: Stage, definition: Definition, schedule: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition: blocks, threads, and inside of these the loops that must run in order."""
        free = [d for d in pure_dims(stage, definition) if is_independent(stage, definition, d)]
        if len(free) > 1 and free[-1] == self._channel(stage):
            free.pop()
        loops = loop_names(stage, definition)
        known = self._extents(stage)
        extents = [known[d] for d in free]
        rest = [n for n in loops if n not in free]
        if not is_pointwise(stage, definition):  # all channels at indices that depend on data are available together
            rest.sort(key=lambda n: n == self._channel(stage))
        if _has_vectors(stage, free, extents):
            row = free[-1]
            outer, vector = (fresh(row + end, loops.__contains__) for end in ("_outer", "_vector"))
            schedule = schedule.split(row, outer, vector, VECTOR)
            free, extents = [*free[:-1], outer], [*extents[:-1], extents[-1] // VECTOR]
            marked = in_blocks(schedule, free, [*rest, vector], {*stage.dims, outer, vector}, block_sizes(extents))
            return marked.vectorize(vector)
        return in_blocks(schedule, free, rest, {*stage.dims, *loops}, block_sizes(extents))

    def _extents(self, stage: Stage) -> dict[str, float]:
        if self._known_extents is not None:
            return dict(zip(stage.dims, self._known_extents(stage.name), strict=True))
        return {d: self._across_blocks.points(stage, [d]) for d in stage.dims}


def _has_vectors(stage: Stage, free: Sequence[str], extents: Sequence[float]) -> bool:
    """Whether the rows of a stage consist of whole vectors, and are so short that a warp takes several rows.
    Neighbouring threads then store adjacent vectors and share index arithmetic."""
    is_row = len(free) > 1 and free[-1] == stage.dims[-1] and not stage.updates
    is_whole = is_row and extents[-1] < WARP_SIZE and extents[-1] % VECTOR == 0
    return is_whole and max(t.bytes for t in stage.dtypes) * VECTOR <= LONGEST_VECTOR


BLOCKS, THREADS = 512, 256  # blocks of a reduction, and threads of a block
GROUP = 16  # number of threads of a block whose results one thread combines
PARTS = WARP_SIZE  # threads that combine the results of blocks
MOST_RESULTS = 4096  # more results than this keep a GPU busy with one thread each
FEWEST_TERMS = 256  # least number of terms of a result that several threads compute
TERMS = 4 * THREADS  # least number of terms of a block, if their number is known
LONG, ROWS = 64, 8  # least trip counts of loops that threads and blocks share, if known
MOST_SHARED = 16 << 10  # most bytes of a histogram in shared memory
OWN_BLOCKS, OWN_THREADS = 64, 64  # if each thread has a private histogram
MOST_OWN = 64 << 20  # most bytes of all private histograms


@dataclass(frozen=True, eq=False)
class GridReductions:
    """Schedules for the reductions of one pipeline. `named` has the stages and loops that a schedule names."""

    graph: Graph
    strict: bool
    named: Collection[str]

    @cached_property
    def _boxes(self) -> dict[str, Box]:
        """The required region of each stage for any sizes and params. Its ends are numbers or unknown."""
        outputs = {}
        for o in self.graph.outputs:
            extents = [constant(n) for n in o.shape]
            outputs[o.stage] = tuple(Interval(0, None if n is None else n - 1) for n in extents)
        sizes = {i.extent(k): Interval(0, None) for i in self.graph.inputs for k in range(i.ndim)}
        return required(self.graph, outputs, sizes | {p.name: EVERYTHING for p in self.graph.params})

    def points(self, stage: Stage, dims: Sequence[str]) -> float:
        """The number of points in the required region of a stage along some dims, or infinity if it is not known."""
        box = dict(zip(stage.dims, self._boxes.get(stage.name, [EVERYTHING] * stage.ndim), strict=True))
        extents = [_extent(box[d]) for d in dims]
        return math.prod(extents) if all(extents) else 0

    def of_update(
        self, stage: Stage, k: int, schedule: StageSchedule, others: Sequence[StageSchedule]
    ) -> tuple[StageSchedule, ...]:
        """The schedule of a stage with its update k, and those of its partial results; () if one thread computes each
        result. `others` has the schedules of the partial results of earlier updates."""
        update = stage.updates[k]
        free = [d for d in pure_dims(stage, update) if is_independent(stage, update, d)]
        terms = _terms(update)
        parts = associative(stage, update) if terms >= FEWEST_TERMS else None
        if parts is None or (self.strict and not parts.is_exact):
            return ()
        results = self.points(stage, free)
        if not 0 < results <= MOST_RESULTS:
            return ()
        taken = {*self.named, *self.graph.stage, *self.graph.input, *(p.name for p in self.graph.params)}
        taken |= {*stage.dims, *(r.name for r in update.domain), *(o.name for o in others)}
        # A power of two, so that parts divide it: argmin and argmax rely on coordinates that ascend with each loop.
        blocks = power_of_two(max(1, int(min(BLOCKS // results, terms // TERMS))))
        shares = _Shares(stage, update, free, blocks, taken)
        start = schedule.update(k)
        if len(free) == stage.ndim:
            return shares.combined(start)
        return self._scattered(shares, start)

    def _scattered(self, shares: _Shares, schedule: StageSchedule) -> tuple[StageSchedule, ...]:
        """Schedule an update whose indices depend on data."""
        stage = shares.stage
        terms = accumulation(stage, shares.update) or ()
        is_atomic = bool(terms) and all(is_one_instruction(t.op, t.dtype) for t in terms)
        size = self.points(stage, shares.bins) * sum(t.bytes for t in stage.dtypes)
        if is_atomic and all(t.is_exact for t in terms) and size <= MOST_SHARED:
            return shares.counted(schedule)
        if size * self.points(stage, shares.free) * OWN_BLOCKS * OWN_THREADS <= MOST_OWN:
            return shares.of_threads(schedule)
        return (shares.atomic(schedule),) if is_atomic else ()


def _extent(interval: Interval) -> float:
    """The number of integers in an interval, which may be empty, or infinity if it is not known."""
    low, high = interval.low, interval.high
    return max(0, high - low + 1) if isinstance(low, int) and isinstance(high, int) else math.inf


def _terms(update: Definition) -> float:
    """The number of terms per result of an update, or infinity if it is not known."""
    extents = [constant(r.extent) for r in update.domain]
    return math.prod(math.inf if n is None else n for n in extents) if extents else 0


@dataclass(frozen=True, eq=False)
class _Shares:
    """The shares of an update that blocks and threads compute. `free` has the dims of its results that it loops over,
    `blocks` is the number of blocks, and `taken` has the names that new loops must not have."""

    stage: Stage
    update: Definition
    free: list[str]
    blocks: int
    taken: Collection[str]

    @cached_property
    def bins(self) -> list[str]:
        """The dims whose indices depend on data."""
        return [d for d in self.stage.dims if d not in self.free]

    @cached_property
    def _domain(self) -> dict[str, int | None]:
        return {r.name: constant(r.extent) for r in self.update.domain}

    @cached_property
    def _along(self) -> str:
        """The loop that threads share: the innermost loop that may be long."""
        domain = self._domain
        long = [name for name, n in domain.items() if n is None or n >= LONG]
        return long[-1] if long else max(domain, key=lambda name: domain[name] or 0)

    @cached_property
    def _across(self) -> str | None:
        """The loop around it that blocks share, or None."""
        around = list(self._domain)[: list(self._domain).index(self._along)]
        several = [name for name in around if (self._domain[name] or ROWS) >= ROWS]
        return several[-1] if several else None

    def _names(self, *names: str) -> list[str]:
        """New names for loops. The stages of partial results are named after them."""
        return [free_name(n, self.stage.name, self.taken) for n in names]

    def _cut(self, schedule: StageSchedule, blocks: int, threads: int) -> tuple[StageSchedule, list[str]]:
        """Split the update into a loop over blocks and one over lanes. Return the schedule and the names of all loops,
        these two first."""
        block, lane, rows, steps, points = self._names("blocks", "lanes", "rows", "steps", "points")
        if self._across is None:
            schedule = schedule.split(self._along, steps, points, blocks * threads).split(points, block, lane, threads)
        else:
            schedule = schedule.split(self._across, rows, block, blocks).split(self._along, steps, lane, threads)
        renamed = {self._across: rows, self._along: steps}
        return schedule, [block, lane, *(renamed.get(n, n) for n in self._domain)]

    def _in_blocks(self, schedule: StageSchedule, dims: Sequence[str], *rest: str) -> StageSchedule:
        """Map each point of some dims to a thread."""
        return in_blocks(schedule, dims, rest, {*self.stage.dims, *dims, *rest})

    def combined(self, schedule: StageSchedule) -> tuple[StageSchedule, ...]:
        """Schedule an update whose indices do not depend on data. There are partial results per thread, per group of
        threads and per block, and per part of the blocks if there are many blocks."""
        schedule, (block, lane, *serial) = self._cut(schedule, self.blocks, THREADS)
        group, member, part = self._names("groups", "members", "parts")
        made, outer, schedule = list[StageSchedule](), self.free, schedule.split(lane, group, member, GROUP)
        if self.blocks > PARTS:
            made.append(self._in_blocks(schedule.split(block, block, part, PARTS).rfactor(part, part), outer, part))
            schedule = self._in_blocks(_partial(made[-1], part), [part, *outer]).update(0)
            outer = [part, *outer]
        schedule = self._in_blocks(schedule.rfactor(block, block), outer, block)
        made.append(_at_once(schedule) if made else schedule)
        outer = [block, *outer]
        made.append(_at_once(_partial(made[-1], block).block(*outer).update(0).rfactor(group, group).block(*outer)))
        of_block = made[-1].name
        made.append(
            on(f"{of_block}_{group}")
            .compute_at(of_block, outer[-1])
            .reorder(*outer, group)
            .thread(group)
            .update(0)
            .rfactor(member, member)
            .reorder(*outer, group, member)
            .thread(group)
        )
        made.append(
            on(f"{of_block}_{group}_{member}")
            .compute_at(of_block, outer[-1])
            .reorder(*outer, group, member)
            .thread(group, member)
            .update(0)
            .reorder(*outer, group, member, *serial)
            .thread(group, member)
        )
        return tuple(made)

    def counted(self, schedule: StageSchedule) -> tuple[StageSchedule, ...]:
        """Schedule a histogram per block in shared memory. The histograms are added to the result atomically."""
        schedule, (block, lane, *serial) = self._cut(schedule, self.blocks, THREADS)
        outer, (*bins, last) = [block, *self.free], self.bins
        turn, bin = self._names("turns", "bins")
        whole = (
            schedule.rfactor(block, block)
            .atomic()
            .split(last, turn, bin, THREADS)
            .reorder(*outer, bin, *bins, turn)
            .block(*outer)
            .thread(bin)
        )
        of_block = (
            on(f"{self.stage.name}_{block}")
            .compute_at(self.stage.name, outer[-1])
            .store_in("shared")
            .reorder(*outer, *self.bins)
            .thread(*self.bins)
            .update(0)
            .atomic()
            .reorder(*outer, lane, *serial)
            .thread(lane)
        )
        return whole, of_block

    def of_threads(self, schedule: StageSchedule) -> tuple[StageSchedule, ...]:
        """Schedule a histogram per thread. The histograms are added up per block, and then the sums of the blocks."""
        schedule, (block, lane, *serial) = self._cut(schedule, OWN_BLOCKS, OWN_THREADS)
        dims = [*self.free, *self.bins]
        whole = self._in_blocks(schedule.rfactor(block, block), dims, block)
        of_block = self._in_blocks(_partial(whole, block), [block, *dims]).update(0).rfactor(lane, lane)
        of_thread = self._in_blocks(_partial(of_block, lane), [lane, block, *dims]).update(0)
        outer = [block, *self.free]
        return (
            whole,
            _at_once(self._in_blocks(of_block, [block, *dims], lane)),
            of_thread.reorder(*outer, lane, *serial).block(*outer).thread(lane),
        )

    def atomic(self, schedule: StageSchedule) -> StageSchedule:
        """Schedule atomic updates of the result itself by all threads."""
        schedule, (block, lane, *serial) = self._cut(schedule.atomic(), self.blocks, THREADS)
        outer = [*self.free, block]
        return schedule.reorder(*outer, lane, *serial).block(*outer).thread(lane)


def _at_once(schedule: StageSchedule) -> StageSchedule:
    """Run an update in the kernel of the pure definition, whose loops are split in the same way."""
    return schedule.compute_with(schedule.name, str(schedule.directives[-1].args[-1]))


def _partial(whole: StageSchedule, loop: str) -> StageSchedule:
    """The schedule of partial results, one for each iteration of a loop."""
    return on(f"{whole.name}_{loop}").compute_root()
