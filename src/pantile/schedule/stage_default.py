"""The default loops of a single stage: the outermost loop is parallel, the innermost one (the contiguous dim)
vectorized.

If pixels have a few channels, vectors run along rows of pixels, and the channels are unrolled: a loop over three
channels never becomes a vector. Likewise, a loop over a few planes is never the only loop that threads share.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from functools import partial

from ..analysis.channels import MOST_CHANNELS, MOST_NUMBERED, PLANE, channels, numbered, planes
from ..analysis.loop_bounds import ragged
from ..analysis.shared_work import SHARING_ROWS, SharedWork, rows_read
from ..analysis.windows import overlaps
from ..dataclass import cached_property, dataclass
from ..expr.types import DType
from ..expr.visit import names
from ..graph.nodes import Definition, Graph, Stage
from ..target.description import Target
from .blocks import RegisterBlocks
from .directives import SUFFIX, StageSchedule, on
from .updates import constant, is_independent, pure_dims

FEWEST_LANES = 4
# Elements per parallel task if the contiguous dim is the only one to share: for plain loops, and for reductions.
BLOCK, REDUCTION_BLOCK = 4096, 256
# Rows of pixels per parallel task.
ROWS = 16
POINTS = 64  # points per parallel task, if each has a loop of its own length
MOST_COPIED = 64  # most operations of a plane if all planes are unrolled


@dataclass(frozen=True)
class StageDefaults:
    """The default directives for the stages of a graph, given the stages that are inlined."""

    graph: Graph
    target: Target
    inlined: Collection[str] = ()
    strict: bool = False

    @cached_property
    def channels(self) -> dict[str, int]:
        """The stages whose last dim is the few channels of their pixels, with the number of channels."""
        return channels(self.graph)

    @cached_property
    def planes(self) -> dict[str, int]:
        """The stages that consist of a few planes of pictures, with the number of planes."""
        return planes(self.graph, self.channels)

    @cached_property
    def numbered(self) -> dict[str, int]:
        """The stages of planes that are distinguished by their numbers, with the number of planes."""
        return numbered(self.graph)

    @cached_property
    def shared_work(self) -> SharedWork:
        """The analysis of the work that planes and rows have in common."""
        return SharedWork(self.graph, self.inlined)

    @cached_property
    def _loaded(self) -> dict[int, frozenset[DType]]:
        """The types that each definition loads from memory, including through inlined stages, by the definition's
        id."""
        types_of: dict[int, frozenset[DType]] = {}
        instead: dict[str, frozenset[DType]] = {}  # buffer of an inlined stage -> the types loaded in its place
        for s in self.graph.stages:
            for d in s.definitions:
                types_of[id(d)] = frozenset().union(*(instead.get(e.buffer, {e.dtype}) for e in d.loads))
            if s.name in self.inlined:
                others = [e for d in s.definitions for e in d.loads if e.buffer not in s.buffers]
                types = frozenset[DType]().union(*(instead.get(e.buffer, {e.dtype}) for e in others))
                instead |= dict.fromkeys(s.buffers, types)
        return types_of

    def at_root(self, stage: Stage) -> StageSchedule:
        """All directives of a stage."""
        schedule = self.stored(stage, on(stage.name).compute_root())
        if _is_named_like_a_part(stage):
            return schedule.parallel(stage.dims[0])
        if self.is_written_out(stage):
            return self._side_by_side(stage, schedule)
        block = None if any(map(ragged, stage.updates)) else self._block(stage)
        blocked = None if block is None else block.shared(schedule) if stage.updates else block.pure(schedule)
        if blocked is not None:
            return blocked
        schedule = self.marked(stage, stage.pure, schedule)
        for k, update in enumerate(stage.updates):
            start = schedule.update(k)
            marked = self.marked(stage, update, start)
            schedule = schedule if marked == start else marked
        return schedule

    def is_written_out(self, stage: Stage) -> bool:
        """Whether a stage consists of numbered planes, all of which are computed in one unrolled loop body."""
        return stage.name in self.numbered and not stage.updates

    @cached_property
    def _rows(self) -> dict[str, dict[str, int]]:
        return rows_read(self.graph, self.inlined)

    @cached_property
    def _overlaps(self) -> dict[str, dict[str, int]]:
        return overlaps(self.graph, self.inlined)

    def _block(self, stage: Stage) -> RegisterBlocks | None:
        """The block for a stage that may read much per value, or None if the stage is too small for a vector or has no
        rows."""
        across = -2 if stage.name in self.channels else -1
        width = self._width(stage, stage.definitions[-1])
        if len(stage.updates) > 1 or stage.ndim < 1 - across or not self._may_hold(stage, width, across):
            return None
        return RegisterBlocks(
            stage=stage,
            across=stage.dims[across],
            width=width,
            channel=stage.dims[-1] if stage.name in self.channels else None,
            channels=self.channels.get(stage.name, 1),
            target=self.target,
            rows=self._rows[stage.name][stage.dims[across - 1]],
            overlap=self._overlaps[stage.name],
            may_hold=partial(self._may_hold, stage),
            strict=self.strict,
            has_planes=stage.name in self.planes,
            is_numbered=stage.name in self.numbered,
        )

    def _width(self, stage: Stage, definition: Definition) -> int:
        return max(lanes(stage, definition, self.target), self._lanes(stage, definition))

    def _lanes(self, stage: Stage, definition: Definition) -> int:
        """The lanes of a vector according to the types that are really loaded: an inlined sum of bytes does not load 32
        bits."""
        return max(FEWEST_LANES, _fitting(stage, self._loaded[id(definition)], self.target))

    def stored(self, stage: Stage, schedule: StageSchedule) -> StageSchedule:
        """Store channels as planes, row by row, if consumers mix them. Otherwise interleaved channels are as good."""
        if self.channels.get(stage.name, 1) == 1 or stage.name in self.graph.output or not self._is_mixed(stage):
            return schedule
        *others, across, channel = stage.dims
        return schedule.reorder_storage(*others, channel, across)

    def _is_mixed(self, stage: Stage) -> bool:
        """Whether a consumer reads channels of the stage other than the one that it computes."""
        readers = (self.graph.stage[name] for name in self.graph.consumers[stage.name])
        return any(
            not c.dims or c.dims[-1] not in names(e.indices[-1])
            for c in readers
            for d in c.definitions
            for e in d.loads
            if e.buffer in stage.buffers
        )

    def marked(self, stage: Stage, definition: Definition, schedule: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition."""
        free = [d for d in pure_dims(stage, definition) if is_independent(stage, definition, d)]
        if not free:
            return schedule
        if ragged(definition):
            return self._one_by_one(stage, definition, schedule, free)
        width = self._width(stage, definition)
        if stage.name in self.channels:
            return self._pixels(stage, definition, schedule, free, width)
        if stage.name in self.planes and free[:1] == [stage.dims[PLANE]] and stage.dims[PLANE + 1] in free:
            return self._of_planes(stage, definition, schedule, free, width)
        return self._columns(stage, definition, schedule, free, width)

    def _one_by_one(
        self, stage: Stage, definition: Definition, schedule: StageSchedule, free: list[str]
    ) -> StageSchedule:
        """Compute points one at a time, since their loops have trip counts that depend on data. A few channels are
        unrolled."""
        if stage.name in self.channels and stage.dims[-1] in free:
            channel = stage.dims[-1]
            schedule = schedule.unroll(channel, self.channels[stage.name])
            domain = [r.name for r in definition.domain]
            schedule = schedule.reorder(*free[:-1], channel, *domain, channel + SUFFIX["unroll"])
        return schedule.parallel(free[0], POINTS) if free[0] != stage.dims[-1] or len(stage.dims) == 1 else schedule

    def _pixels(
        self, stage: Stage, definition: Definition, schedule: StageSchedule, free: list[str], width: int
    ) -> StageSchedule:
        """Outer pure dims (the first parallel), then reduction loops, then vectors of pixels, and inside of these their
        channels."""
        *_, across, channel = stage.dims
        is_vector = across in free and self._may_hold(stage, width, -2)
        several = not definition.domain and self._may_hold(stage, 2 * ROWS, stage.dims.index(free[0]))
        rows = [free[0]] if is_vector and several and self._shares_rows(stage, free[0], across) else []
        order = [r.name for r in definition.domain]
        if is_vector:
            schedule = schedule.vectorize(across, width)
            order += [across, *(r + SUFFIX["unroll"] for r in rows), across + SUFFIX["vectorize"]]
        is_sharing = channel in free and (is_vector or bool(definition.domain))
        if is_sharing:
            schedule = schedule.unroll(channel, self.channels[stage.name])
            order = [channel, *order, channel + SUFFIX["unroll"]]
        for row in rows:
            schedule = schedule.unroll(row, SHARING_ROWS)
        if is_sharing or rows or (is_vector and definition.domain):
            schedule = schedule.reorder(*rows, *order)
        if free[0] in (across, channel):
            return schedule
        each = ROWS // SHARING_ROWS if rows else ROWS
        return schedule.parallel(free[0], each) if several else schedule.parallel(free[0])

    def _shares_rows(self, stage: Stage, row: str, across: str) -> bool:
        axis = stage.dims.index(row)
        is_next = axis + 1 == stage.dims.index(across) and self._may_hold(stage, 2 * SHARING_ROWS, axis)
        return is_next and self.shared_work.is_worth_sharing_rows(stage, row, across, self.channels.get(stage.name, 1))

    def _of_planes(
        self, stage: Stage, definition: Definition, schedule: StageSchedule, free: list[str], width: int
    ) -> StageSchedule:
        """Let threads share the rows of one plane after the other: sharing a few planes among threads would leave some
        threads idle. Planes with much work in common are unrolled around a vector, so that this work is done once."""
        plane, row, last = stage.dims[PLANE:]
        is_vector = last in free and self._may_hold(stage, width)
        if not is_vector or definition.domain:
            schedule = self._columns(stage, definition, schedule, free, width)
        elif self.planes[stage.name] == 1 or not self._is_sharing(stage):
            schedule = schedule.vectorize(last, width)
        else:
            schedule = schedule.vectorize(last, width).unroll(plane, self.planes[stage.name])
            schedule = schedule.reorder(row, plane, last, plane + SUFFIX["unroll"], last + SUFFIX["vectorize"])
        several = not definition.domain and self._may_hold(stage, 2 * ROWS, PLANE + 1)
        return schedule.parallel(row, ROWS) if several else schedule.parallel(row)

    def _side_by_side(self, stage: Stage, schedule: StageSchedule) -> StageSchedule:
        """Unroll all numbered planes around a vector, with its channels unless this is too much code. Threads share
        rows."""
        plane, *others, across = stage.dims if stage.name not in self.channels else stage.dims[:-1]
        copies = {plane: self.numbered[stage.name]}
        pixel = {stage.dims[-1]: self.channels[stage.name]} if stage.name in self.channels else {}
        if pixel and math.prod([*pixel.values(), *copies.values()]) <= MOST_NUMBERED:
            copies = {**pixel, **copies}
        order = [others.pop(), *others, *{**pixel, **copies}, across, *(dim + SUFFIX["unroll"] for dim in copies)]
        if self._may_hold(stage, width := self._width(stage, stage.pure), stage.dims.index(across)):
            schedule = schedule.vectorize(across, width)
            order.append(across + SUFFIX["vectorize"])
        for dim, count in copies.items():
            schedule = schedule.unroll(dim, count)
        each = max(1, ROWS * MOST_CHANNELS // math.prod([*pixel.values(), self.numbered[stage.name]]))
        several = each > 1 and self._may_hold(stage, 2 * each, stage.dims.index(order[0]))
        schedule = schedule.reorder(*order)
        return schedule.parallel(order[0], each) if several else schedule.parallel(order[0])

    def _is_sharing(self, stage: Stage) -> bool:
        return self.shared_work.is_worth_sharing(stage, stage.dims[PLANE], MOST_COPIED)

    def _columns(
        self, stage: Stage, definition: Definition, schedule: StageSchedule, free: list[str], width: int
    ) -> StageSchedule:
        """Outer pure dims (the first parallel), then reduction loops, then the vectorized contiguous dim."""
        last = free[-1] if free[-1] == stage.dims[-1] and self._may_hold(stage, width) else None
        if last is not None and not definition.domain and self._shares_rows(stage, free[0], last):
            rows = free[0] + SUFFIX["unroll"]
            schedule = schedule.unroll(free[0], SHARING_ROWS).vectorize(last, width)
            return schedule.reorder(free[0], last, rows, last + SUFFIX["vectorize"]).parallel(free[0])
        block = REDUCTION_BLOCK if definition.domain else BLOCK
        if free[0] != stage.dims[-1]:
            schedule = schedule.parallel(free[0])
        elif self._may_hold(stage, block + 1):
            schedule = schedule.parallel(free[0], block)
            last = free[0] + "_p"
        if last is None:
            return schedule
        if definition.domain:
            schedule = schedule.reorder(*(r.name for r in definition.domain), last)
        return schedule.vectorize(last, width)

    def _may_hold(self, stage: Stage, count: int, axis: int = -1) -> bool:
        """Whether an axis may have at least `count` points. The extents of outputs may be constant."""
        shape = self.graph.output[stage.name].shape if stage.name in self.graph.output else ()
        extent = constant(shape[axis]) if shape else None
        return extent is None or extent >= count


def lanes(stage: Stage, definition: Definition, target: Target) -> int:
    """The lanes of a vector of the widest type that the definition stores or loads: one register, or more if it has few
    lanes."""
    return max(FEWEST_LANES, register_lanes(stage, definition, target))


def register_lanes(stage: Stage, definition: Definition, target: Target) -> int:
    """The number of values of the widest type that the definition stores or loads that fit in a vector register."""
    return _fitting(stage, (e.dtype for e in definition.loads), target)


def _fitting(stage: Stage, loaded: Iterable[DType], target: Target) -> int:
    return target.lanes(8 * max(t.bytes for t in (*stage.dtypes, *loaded)))


def _is_named_like_a_part(stage: Stage) -> bool:
    """Whether a loop has the name that the vectors, copies or tasks of another loop would have: x_v next to x."""
    loops = {*stage.dims, *(r.name for d in stage.definitions for r in d.domain)}
    return bool(stage.dims) and any(name + suffix in loops for name in loops for suffix in SUFFIX.values())
