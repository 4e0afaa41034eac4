"""By default, scans on GPUs run in strips: one thread per strip of a column, instead of one thread per column.

    f[y, x] = img[y, x]                        thread for s, x: f_forward_ends[s, x] = the end of strip s from 0
    f[r, x] = a*f[r - 1, x] + b*f[r, x]   ->   thread for x: for s: f_forward_starts[s, x] = the start of strip s
                                               thread for s, x: f[32*s.., x] = strip s, scanned from there

A thread holds its strip in registers: the inputs of a scan are read twice, and only results are written. A scan back
along the same strips takes the values of the previous scan from registers, after scanning each strip again. Strips have
32 iterations; strips of short scans have about the square root of the number of iterations.

A scan stays whole if it is short, if one thread per column is known to fill a GPU, or if `strips` cannot cut it (as in
strict pipelines with scans of floats). It also stays whole if it is a scan of floats that restarts under a condition:
in strips, an infinity before the restart would be multiplied by 0. Finally, it stays whole if it covers less than the
required region of its stage. In a small picture, such a scan may be empty, and the region that threads need for no
strip at all has no constant size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

from ..dataclass import cached_property, dataclass
from ..errors import UserError
from ..expr import build
from ..expr.linear import simplify
from ..expr.nodes import Op
from ..expr.types import INDEX
from ..expr.visit import key, loaded, names, walk
from ..graph.nodes import Definition, Graph, Stage
from ..target.gpu import WARP_SIZE
from .directives import Directive, StageSchedule, on
from .gpu_blocks import in_blocks
from .names import fresh
from .strips import Scan, required_along, scans_of
from .sums import power_of_two
from .updates import constant

LONGEST_STRIP = 32  # iterations, each of which takes a register
SHORTEST = 64  # least number of values of a scan in strips
LONGEST_ROW = 1024  # most values of a row that one block scans
MOST_SCANS = 1 << 17  # if there are known to be at least this many independent scans, they fill a GPU
THREADS = 128  # threads of a block
UNROLLED, FEWEST_STEPS = 16, 4  # most and fewest iterations whose loads are in flight together
MOST_IN_FLIGHT = 128  # most loads in flight

Points = Callable[[Stage, Sequence[str]], float]


@dataclass(frozen=True, eq=False)
class StripScans:
    """The scans of the stages of one pipeline. `taken` has the names that new stages must not have; `points` returns
    the number of points of a stage along some dims."""

    graph: Graph
    strict: bool
    taken: Collection[str]
    points: Points

    def of_stage(self, stage: Stage, channel: str | None) -> CutScans | None:
        """The scans of a stage that run in strips, or None if there are none. One thread computes all values of
        `channel`."""
        strips = dict[int, Directive]()
        taken = {*self.taken, *stage.dims, *(r.name for u in stage.updates for r in u.domain)}
        for k, update in enumerate(stage.updates):
            steps = constant(update.domain[0].extent) if len(update.domain) == 1 else 0
            if steps is not None and steps + 1 < SHORTEST:
                continue
            length = LONGEST_STRIP if steps is None else min(LONGEST_STRIP, power_of_two(math.isqrt(steps + 1)))
            whole = on(stage.name).update(k)
            asked = whole.strips(update.domain[0].name, fresh("strips", taken.__contains__), length).directives[-1]
            scan = Scan(self.graph, stage, k + 1, asked, self.strict, None, k)
            if _is_linear(scan) and not self._fills(scan) and scan.is_all:
                name = "forward" if scan.step > 0 else "backward"
                name = fresh(name, lambda n: n in taken or any(t.startswith(f"{stage.name}_{n}") for t in taken))
                taken.add(name)
                strips[k + 1] = whole.strips(scan.loop.name, name, length).directives[-1]
        if not strips:
            return None
        scans = tuple(scans_of(self.graph, stage.name, strips, self.strict))
        has_channel = all(channel != scan.dim for scan in scans)
        return CutScans(stage, scans, channel if has_channel else None, self.points(stage, [scans[-1].dim]))

    def _fills(self, scan: Scan) -> bool:
        """Whether one thread per whole scan is known to give enough threads."""
        return MOST_SCANS <= self.points(scan.stage, [d for d in scan.stage.dims if d != scan.dim]) < math.inf


def in_steps(update: Definition, schedule: StageSchedule) -> StageSchedule:
    """Unroll the loop of a scan that stays whole. The loads of several iterations, except for values that the scan
    itself has just computed, are then in flight at the same time."""
    loop = update.domain[-1] if update.domain else None
    if loop is None or not any(loop.name in names(i) and not loaded(i) for i in update.indices):
        return schedule
    loads, extent = len({key(e) for e in update.loads}), constant(loop.extent)
    count = min(UNROLLED, power_of_two(max(MOST_IN_FLIGHT // max(loads, 1), FEWEST_STEPS)))
    return schedule.unroll(loop.name, count if extent is None or extent > count else None)


def _is_linear(scan: Scan) -> bool:
    """Whether a scan can be cut and gives the same results as a whole scan, up to rounding."""
    try:
        scan.check()
    except UserError:
        return False
    begins_anew = any(isinstance(e, Op) and e.op == "select" for e in walk(scan.linear[0]))
    return not (begins_anew and scan.stage.dtypes[0].is_float)


@dataclass(frozen=True, eq=False)
class CutScans:
    """The scans of a stage that are cut into strips, in order, and the dim whose points one thread computes."""

    stage: Stage
    scans: tuple[Scan, ...]
    channel: str | None
    extent: float  # extent of the stage along the last scan, infinite if not known

    @property
    def last(self) -> int:
        """The number of the last scan among the updates of the stage."""
        return self.scans[-1].number

    @cached_property
    def is_aligned(self) -> bool:
        """Whether the required region of the stage begins at the start of a strip."""
        last = self.scans[-1]
        needed = required_along(last.in_strips, self.stage, last.axis)
        if needed is None or needed.low is None:
            return False
        return constant(simplify(build.expr(needed.low, INDEX))) == 0

    @cached_property
    def held(self) -> list[bool]:
        """For each scan, whether threads hold its strips in registers where these are read, and scan them again for
        each reader. At most every other scan is held, since strips would otherwise be scanned again and again."""
        held = list[bool]()
        for before, scan in pairwise(self.scans):
            held.append(scan.goes_along(before) and not (held and held[-1]))
        return [*held, self.is_aligned]

    @cached_property
    def in_one_block(self) -> bool:
        """Whether a block computes all strips of a row. One kernel is enough for rows that are not long."""
        along = {scan.axis for scan in self.scans} == {self.stage.ndim - 1}
        return along and all(self.held) and self.extent <= LONGEST_ROW

    def whole(self, otherwise: StageSchedule) -> StageSchedule:
        """The schedule of the stage itself. Its pure definition is the result of the last scan, or else a copy of it,
        for which `otherwise` is the schedule."""
        schedule = self._last_rows if self.held[-1] else otherwise
        for scan in self.scans:
            schedule = schedule.update(scan.number).strips(scan.loop.name, scan.strip, scan.length)
        return schedule

    def parts(self) -> list[StageSchedule]:
        """The schedules of the stages that make up the scans."""
        return [part for k in range(len(self.scans)) for part in self._of_scan(k)]

    def _of_scan(self, k: int) -> Iterator[StageSchedule]:
        scan, is_last = self.scans[k], k == len(self.scans) - 1
        yield from self._per_strip(scan, scan.ends, "end")
        yield from self._per_strip(scan, scan.gains, "gain")
        yield self._starts(scan)
        if not self.held[k]:
            yield self._rows(k)
            yield self._scanned(scan, f"{scan.name}_part", self._rows(k))
        elif is_last:
            yield self._scanned(scan, scan.name, self._last_rows)
        else:
            after = self.scans[k + 1]
            ends, *_ = self._per_strip(after, after.ends, "end")
            rows = self._last_rows if k + 2 == len(self.scans) and self.held[-1] else self._rows(k + 1)
            yield self._scanned(scan, scan.name, rows).pure().clone_in(f"{after.name}_end", f"{scan.name}_first")
            yield self._scanned(scan, f"{scan.name}_first", ends)

    @cached_property
    def _last_rows(self) -> StageSchedule:
        """The stage itself, each of whose threads has a strip."""
        scan = self.scans[-1]
        row = fresh(f"{scan.dim}_row", {*self.stage.dims, *(s.strip for s in self.scans)}.__contains__)
        start = on(self.stage.name).compute_root().split(scan.dim, scan.strip, row, scan.length, tail="guard")
        threads = -(-int(self.extent) // scan.length) if self.in_one_block else THREADS
        return self._in_threads(start, scan, scan.dims, [row], threads).unroll(row)

    def _rows(self, k: int) -> StageSchedule:
        """The stored result of a scan: each thread stores a strip."""
        scan = self.scans[k]
        start = on(scan.name).copy_out(f"{scan.name}_part")
        return self._in_threads(start, scan, scan.dims, [scan.dim]).unroll(scan.dim, scan.length)

    def _per_strip(self, scan: Scan, stage: Stage, what: str) -> tuple[StageSchedule, StageSchedule]:
        """A stage with one value per strip, and the register that holds this value."""
        value = f"{scan.name}_{what}"
        start = on(stage.name).copy_out(value)
        whole = self._in_block(start, scan) if self.in_one_block else self._in_threads(start, scan, stage.dims)
        return whole, on(value).compute_at(whole.name, self._innermost(whole)).update().unroll(scan.loop.name)

    def _scanned(self, scan: Scan, name: str, rows: StageSchedule) -> StageSchedule:
        """A strip in registers of the thread that reads it."""
        start = on(name).compute_at(rows.name, self._innermost(rows)).unroll(scan.dim)
        return start.update().unroll(scan.loop.name)

    def _starts(self, scan: Scan) -> StageSchedule:
        """The start values of strips, computed sequentially. There are few threads, all of which wait for memory, so
        blocks are small."""
        if self.in_one_block:
            return self._in_block(on(scan.starts.name), scan).update().unroll(scan.loop.name, UNROLLED)
        free = [d for d in scan.dims if d not in (scan.strip, self.channel)]
        rest, used = [d for d in scan.dims if d == self.channel], {*scan.dims, scan.loop.name}
        start = in_blocks(on(scan.starts.name).compute_root(), free, [*rest, scan.strip], used, (WARP_SIZE,)).update()
        again = in_blocks(start, free, [*rest, scan.loop.name], used, (WARP_SIZE,)).unroll(scan.loop.name, UNROLLED)
        return again.compute_with(again.name, self._innermost(start)) if free else again

    def _in_block(self, schedule: StageSchedule, scan: Scan) -> StageSchedule:
        """Compute values for the strips of a row in the row's block, one per thread."""
        block = next(d for d in self._last_rows.directives if d.verb == "block").args[-1]
        return schedule.compute_at(self.stage.name, str(block)).store_in("shared").thread(scan.strip)

    def _in_threads(
        self,
        schedule: StageSchedule,
        scan: Scan,
        dims: Sequence[str],
        rest: Sequence[str] = (),
        threads: int = THREADS,
    ) -> StageSchedule:
        """Map each point of some dims to a thread, which runs the other loops. The threads of a block have the same
        strip, unless a block must have all strips of a row. Only blocks at the ends of scans then have to test where
        these end."""
        free = [d for d in dims if d not in (scan.strip, self.channel)]
        free.insert(len(free) - (not self.in_one_block), scan.strip)
        rest = [*(d for d in dims if d == self.channel), *rest]
        return in_blocks(schedule, free, rest, {*dims, *rest}, (threads,))

    def _innermost(self, schedule: StageSchedule) -> str:
        """A thread's loop over channels, or else the last thread loop."""
        thread = next(d for d in reversed(schedule.directives) if d.verb == "thread")
        has_channel = any(d.verb == "reorder" and self.channel in d.args for d in schedule.directives)
        return str(self.channel if has_channel else thread.args[-1])
