"""Updates at places that data decides, on GPUs: those of neighbouring points in shared memory of a block, if that has
room.

    h[y, z] = 0                          block for y in blocks of 128:
    h[y, level[y, r]] += 1    ->             thread for y, z: h_bins[y, z] = 0             in shared memory
                                             thread for y: for r: h_bins[y, level[y, r]] += 1
                                             thread for y, z: h[y, z] = h_bins[y, z]

One thread updates all bins of a point, one after the other, as the update says; in global memory each would be a load
and a store of a sector, far from those of other threads. Bins are stored once, by adjacent threads. The number of
bins of each point must be odd in memory, so that threads at the same bin of their points access different banks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from ..dataclass import dataclass
from ..expr.visit import loaded
from ..graph.nodes import Definition, Graph, Stage
from ..target.gpu import WARP_SIZE, whole_warps
from .directives import StageSchedule, on
from .gpu_updates import written_out
from .names import fresh
from .sums import power_of_two
from .updates import is_independent, keeps_to, pure_dims

MOST_POINTS, FEWEST_POINTS = 128, 16  # of a block
MOST_SHARED = 16 << 10  # bytes of their bins


@dataclass(frozen=True, eq=False)
class BinsOfBlocks:
    """The stages of one pipeline whose bins fit in shared memory. `taken` are names that new stages must not have,
    `points` tells how many points a stage has along some dims."""

    graph: Graph
    taken: Collection[str]
    points: Callable[[Stage, Sequence[str]], float]

    def of_stage(self, stage: Stage, extents: Mapping[str, float]) -> tuple[StageSchedule, ...]:
        """The schedules of a stage and of its bins in shared memory; () for other stages."""
        if not any(map(is_scattered, stage.updates)):
            return ()
        cells, bins = cells_of(stage), {d: self.points(stage, [d]) for d in bins_of(stage)}
        if not cells or not all(0 < n < math.inf for n in bins.values()):
            return ()
        padded = evenly_many(stage, bins)
        size = math.prod(n + (d in padded) for d, n in bins.items()) * sum(t.bytes for t in stage.dtypes)
        most = min(MOST_POINTS, power_of_two(max(1, int(MOST_SHARED // size))))
        if most < FEWEST_POINTS:
            return ()
        return _Blocks(stage, cells, _tile([extents[d] for d in cells], most), self.taken).schedules(padded)


def is_scattered(update: Definition) -> bool:
    """Whether data decide the places of an update that has several terms for each point."""
    return bool(update.domain) and any(loaded(i) for i in update.indices)


def cells_of(stage: Stage) -> list[str]:
    """The dims along which updates keep to their own points."""
    return [d for d in stage.dims if all(keeps_to(stage, u, [d]) for u in stage.updates)]


def bins_of(stage: Stage) -> list[str]:
    """The other dims: those of the bins of each point."""
    cells = cells_of(stage)
    return [d for d in stage.dims if d not in cells]


def evenly_many(stage: Stage, extents: Mapping[str, float]) -> list[str]:
    """The dims of bins to pad by one, because their extents are even: threads at the same bin of adjacent points then
    access different banks. Where points lie inside of bins, they do so in any case."""
    cells = cells_of(stage)
    bins = [d for d in stage.dims if d not in cells and cells and stage.dims.index(cells[0]) < stage.dims.index(d)]
    return [d for d in bins if extents[d] % 2 == 0]


def padded(schedule: StageSchedule, dims: Sequence[str]) -> StageSchedule:
    for d in dims:
        schedule = schedule.pad_storage(d, 1)
    return schedule


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
        name = fresh(f"{self.stage.name.replace('.', '_')}_bins", self.taken.__contains__)
        whole, block = self._whole(name)
        return whole, self._bins(on(name).compute_at(whole.name, block).store_in("shared"), dims)

    def _whole(self, bins: str) -> tuple[StageSchedule, str]:
        """The stage itself, a copy of its bins in shared memory, and its innermost block loop."""
        schedule = on(self.stage.name).compute_root().copy_out(bins)
        taken, inside, blocks = {*self.stage.dims}, {d: d for d in self.stage.dims}, list[str]()
        for d, size in zip(self.cells, self.tile, strict=True):
            if size == 1:
                blocks.append(d)
                del inside[d]
                continue
            block, inside[d] = (fresh(f"{d}_{word}", taken.__contains__) for word in ("block", "thread"))
            taken |= {block, inside[d]}
            schedule = schedule.split(d, block, inside[d], size)
            blocks.append(block)
        threads = [*inside.values()]
        schedule = schedule.reorder(*blocks, *threads).block(*blocks).thread(*threads)
        return schedule.threads(whole_warps(math.prod(self.tile))), blocks[-1]

    def _bins(self, schedule: StageSchedule, dims: Sequence[str]) -> StageSchedule:
        """The bins of a block, padded along some dims, each point of which one thread updates."""
        schedule = padded(schedule, dims).thread(*self.stage.dims)
        for k, update in enumerate(self.stage.updates):
            own = pure_dims(self.stage, update)
            together = [d for d in own if is_independent(self.stage, update, d)]
            rest = [*(d for d in own if d not in together), *(r.name for r in update.domain)]
            schedule = written_out(schedule.update(k).reorder(*together, *rest).thread(*together), update)
        return schedule
