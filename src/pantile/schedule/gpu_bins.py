"""Histograms of each point on GPUs: the bins of neighbouring points are in shared memory of a block, if they fit.

    h[y, z] = 0                          block for y in blocks of 64:
    h[y, level[y, r]] += 1    ->             thread for y, z: h_bins[y, z] = 0             in shared memory
                                             thread for y: for r: h_bins[y, level[y, r]] += 1
                                             thread for y, z: h[y, z] = h_bins[y, z]

In global memory, each term would load and store a sector far from those of other threads. Here each bin is stored
once, and adjacent threads store adjacent bins. One thread updates all bins of a point, in the order of the definition.
If points have many terms, whose order does not matter, 32 threads share the terms of each point and use atomic
instructions: there are few such points then, and adjacent terms are mostly adjacent in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from ..dataclass import cached_property, dataclass
from ..expr.nodes import COMPARISON, Cast, Expr, Op
from ..expr.visit import loaded, names, walk
from ..graph.nodes import Definition, Graph, Stage
from ..target.gpu import SHARED_WITHOUT_OPT_IN, WARP_SIZE, whole_warps
from .directives import StageSchedule, on
from .gpu_updates import written_out
from .names import fresh
from .nest import is_one_instruction
from .sums import power_of_two
from .updates import accumulation, constant, is_independent, keeps_to, pure_dims

MOST_POINTS, FEWEST_POINTS = 64, 32  # of a block, one thread each
SHARED = 16 << 10  # bytes of the bins of a block; of the fewest points as many as there are
FEWEST_TERMS = 1024  # of a point that 32 threads share
MOST_SHARED_POINTS = 8  # of a block, if they do
IN_FLIGHT = 16  # terms of an unknown number whose loads are in flight together


@dataclass(frozen=True, eq=False)
class BinsOfBlocks:
    """The stages of one pipeline whose bins fit in shared memory. `taken` are names that new stages must not have.
    `points` returns the number of points of a stage along some dims."""

    graph: Graph
    taken: Collection[str]
    points: Callable[[Stage, Sequence[str]], float]

    def of_stage(self, stage: Stage, extents: Mapping[str, float]) -> tuple[StageSchedule, ...]:
        """The schedules of a stage and of its bins in shared memory; () for other stages."""
        if not any(map(is_scattered, stage.updates)):
            return ()
        cells = _cells(stage)
        bins = {d: self.points(stage, [d]) for d in stage.dims if d not in cells}
        if not cells or not all(0 < n < math.inf for n in bins.values()) or not _is_always_read(self.graph, stage):
            return ()
        padded = dims_to_pad(stage, bins)
        size = int(math.prod(n + (d in padded) for d, n in bins.items())) * sum(t.bytes for t in stage.dtypes)
        has_lanes = any(_is_shared(stage, u) for u in stage.updates)
        most, fewest = (MOST_SHARED_POINTS, 1) if has_lanes else (MOST_POINTS, FEWEST_POINTS)
        most = min(most, max(fewest, power_of_two(SHARED // size or 1)))
        if most * size > SHARED_WITHOUT_OPT_IN:
            return ()
        return _Blocks(stage, cells, _tile([extents[d] for d in cells], most), self.taken).schedules(padded)


def is_scattered(update: Definition) -> bool:
    """Whether an update has several terms for each point and indices that depend on data."""
    return bool(update.domain) and any(loaded(i) for i in update.indices)


def dims_to_pad(stage: Stage, extents: Mapping[str, float]) -> list[str]:
    """The dims of bins with an even number of entries, inside of the dims of points. Padding them by one puts the same
    bin of adjacent points into different banks."""
    cells = _cells(stage)
    inside = stage.dims[stage.dims.index(cells[0]) :] if cells else ()
    return [d for d in inside if d not in cells and extents[d] % 2 == 0]


def padded(schedule: StageSchedule, dims: Sequence[str]) -> StageSchedule:
    """The schedule with some dims padded by one entry."""
    for d in dims:
        schedule = schedule.pad_storage(d, 1)
    return schedule


def _is_always_read(graph: Graph, stage: Stage) -> bool:
    """Whether all stages that depend on a stage read it in every call. A region that is required only under conditions
    on coordinates has ends for which lowering may not find bounds, and shared memory needs bounds."""
    readers, pending = set[str](), [*graph.consumers[stage.name]]
    while pending:
        name = pending.pop()
        if name not in readers:
            readers.add(name)
            pending += graph.consumers[name]
    definitions = [d for name in readers for d in graph.stage[name].definitions]
    return all(
        d.condition is None
        and all(constant(r.extent) is not None for r in d.domain)
        and not any(map(_reads_by_coordinates, walk(*d.values, *d.indices)))
        for d in definitions
    )


def _reads_by_coordinates(e: Expr) -> bool:
    """Whether an expression is a select between loads whose condition compares coordinates or params."""
    if not isinstance(e, Op) or e.op != "select" or not any(map(loaded, e.args[1:])):
        return False
    pending: list[Expr] = [e.args[0]]
    while pending:
        part = pending.pop()
        if isinstance(part, Op) and part.op in COMPARISON:
            if any(names(side) and not loaded(side) for side in part.args):
                return True
        elif isinstance(part, (Op, Cast)):
            pending += part.operands
    return False


def _cells(stage: Stage) -> list[str]:
    """The dims along which every update stays at its own point. The other dims count bins."""
    return [d for d in stage.dims if all(keeps_to(stage, u, [d]) for u in stage.updates)]


def _is_shared(stage: Stage, update: Definition) -> bool:
    """Whether threads share the terms of a point. The result must not depend on the order of the terms."""
    extents = [constant(r.extent) for r in update.domain]
    if not is_scattered(update) or math.prod(FEWEST_TERMS if n is None else n for n in extents) < FEWEST_TERMS:
        return False
    terms = accumulation(stage, update) or ()
    return bool(terms) and all(t.is_exact and is_one_instruction(t.op, t.dtype) for t in terms)


def _tile(extents: Sequence[float], most: int) -> list[int]:
    """The points of a block along dims of such extents: a warp along the innermost ones, the rest along the others."""
    sizes: list[int] = []
    for k, extent in reversed([*enumerate(extents)]):
        count = math.prod(sizes)
        room = most // count
        if k and count < WARP_SIZE:
            room = min(room, WARP_SIZE // count)
        sizes.append(max(1, int(min(extent, power_of_two(room)))))
    return sizes[::-1]


@dataclass(frozen=True, eq=False)
class _Blocks:
    """A stage in blocks of so many points along each of some dims, `cells`."""

    stage: Stage
    cells: Sequence[str]
    tile: Sequence[int]
    taken: Collection[str]

    def schedules(self, dims: Sequence[str]) -> tuple[StageSchedule, ...]:
        """The schedules of the stage and of its bins, which are padded along `dims`."""
        name = fresh(f"{self.stage.name.replace('.', '_')}_bins", self.taken.__contains__)
        whole, block = self._whole(name)
        bins = padded(on(name).compute_at(whole.name, block).store_in("shared"), dims).thread(*self.stage.dims)
        for k in range(len(self.stage.updates)):
            bins = self._updated(bins, k)
        return whole, bins

    @cached_property
    def _threads(self) -> int:
        has_lanes = any(_is_shared(self.stage, u) for u in self.stage.updates)
        return math.prod(self.tile) * (WARP_SIZE if has_lanes else 1)

    def _whole(self, bins: str) -> tuple[StageSchedule, str]:
        """The stage itself, a copy of its bins in shared memory, and its innermost block loop."""
        schedule = on(self.stage.name).compute_root().copy_out(bins)
        taken, inside, blocks = {*self.stage.dims}, {d: d for d in self.stage.dims}, list[str]()
        for d, size in zip(self.cells, self.tile, strict=True):
            blocks.append(d)
            if size == 1:
                del inside[d]
                continue
            blocks[-1], inside[d] = (fresh(f"{d}_{word}", taken.__contains__) for word in ("block", "thread"))
            taken |= {blocks[-1], inside[d]}
            schedule = schedule.split(d, blocks[-1], inside[d], size)
        threads = [*inside.values()]
        schedule = schedule.reorder(*blocks, *threads).block(*blocks).thread(*threads)
        return schedule.threads(whole_warps(self._threads)), blocks[-1]

    def _updated(self, schedule: StageSchedule, k: int) -> StageSchedule:
        """An update of the bins of a block."""
        update = self.stage.updates[k]
        own, schedule = pure_dims(self.stage, update), schedule.update(k)
        together = [d for d in own if is_independent(self.stage, update, d)]
        carried = [d for d in own if d not in together]
        loops = {r.name: constant(r.extent) for r in update.domain}
        if _is_shared(self.stage, update):
            schedule, lane, loops = self._shared(schedule, loops)
            together.append(lane)
        schedule = schedule.reorder(*together, *carried, *loops).thread(*together)
        last = [*loops][-1:]
        if last and loops[last[0]] is None:
            return schedule.unroll(last[0], IN_FLIGHT)
        return written_out(schedule, loops)

    def _shared(
        self, schedule: StageSchedule, loops: Mapping[str, int | None]
    ) -> tuple[StageSchedule, str, dict[str, int | None]]:
        """An update with its innermost loop that is long enough shared among lanes: the loop over lanes, and those of
        each."""
        long = [name for name, n in loops.items() if n is None or n >= WARP_SIZE]
        along = long[-1] if long else max(loops, key=lambda name: loops[name] or 0)
        taken = {*self.stage.dims, *loops}
        steps, lane = (fresh(word, taken.__contains__) for word in ("steps", "lanes"))
        count = loops[along]
        of_each = {along: (steps, None if count is None else -(-count // WARP_SIZE))}
        schedule = schedule.atomic().split(along, steps, lane, WARP_SIZE)
        return schedule, lane, dict(of_each.get(name, (name, n)) for name, n in loops.items())
