"""Loops for stages that read much per pixel: reductions, and windows of many rows.

A reduction runs in blocks of vectors that stay in registers, with its pure definition in the same blocks. A reduction
of few terms is unrolled, as if it were pure:

    for y:                                    for y in blocks of some rows:
        for r:                         ->         for x in blocks of some vectors:
            for x: f[y, x] += img[y + r, x]           for r: f[y.., x..] += img[y.. + r, x..]

A stage that reads more rows at a time than the hardware prefetcher can follow is computed in narrow strips, in which
the rows stay in the cache. If the windows of neighbours overlap and all terms have the same weight, several rows or
vectors are unrolled together, and their common terms are summed only once (`lower.reassociate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ..analysis.conversions import terms
from ..dataclass import cached_property, dataclass
from ..expr.visit import names
from ..graph.nodes import Definition, Stage
from ..target.description import Target
from .directives import SUFFIX, StageSchedule
from .limits import MOST_COPIES, MOST_VALUES
from .names import fresh
from .sums import MOST_WRITTEN, shared_terms, side_by_side, size, sums_at_a_time
from .updates import accumulation, constant, is_small_reduction, keeps_to

# Most terms per value: for a window, not a whole picture, whose rows are better read from one end to the other.
MOST_TERMS = 4096
MOST_STREAMS = 12  # most rows read at the same time that the hardware prefetches
STRIP_ROWS, STRIP_BYTES = 64, 1 << 15  # rows of a task; bytes of all rows that a strip reads at a time
# Windows of at least this many rows overlap enough to be unrolled together; the number of them; and their most terms.
SHARED_ROWS, SIDE_BY_SIDE, SIDE_BY_SIDE_TERMS = 7, 4, 256

Terms = Mapping[str, int | None]  # reduction loop -> how many of its terms are unrolled; None: all


@dataclass(frozen=True)
class LoopShape:
    """A chain of directives that has split and marked some loops, with the names of the loops that are outside of the
    loops of a reduction and of the loops that are inside."""

    chain: StageSchedule
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    is_parallel: bool = False

    def with_terms(self, written: Terms) -> LoopShape:
        """Unroll terms. Partly unrolled loops become the innermost ones; fully unrolled loops stay where they are."""
        chain, inner = self.chain, list(self.inner)
        for r, count in written.items():
            chain = chain.unroll(r) if count is None else chain.unroll(r, count)
            inner = inner if count is None else [r + SUFFIX["unroll"], *inner]
        return replace(self, chain=chain, inner=tuple(inner))


@dataclass(frozen=True)
class RegisterBlocks:
    """A block of vectors of `width` lanes along the dim `across`, with the channels inside if pixels have channels."""

    stage: Stage
    across: str
    width: int
    channel: str | None
    channels: int
    target: Target
    rows: int  # number of rows of one buffer that are read for a value
    overlap: Mapping[str, int]  # dim -> number of terms of a window along it, all with the same weight
    may_hold: Callable[[int, int], bool]  # whether an axis may have at least this many points
    strict: bool  # whether the order of terms is fixed
    has_planes: bool  # whether there is a dim of a few planes before the rows
    is_numbered: bool  # whether its first dim counts planes

    def pure(self, chain: StageSchedule) -> StageSchedule | None:
        """The loops of a pure definition, or None if only the width of its vectors has to be chosen."""
        if self._has_strips():
            return self._ordered(self._in_strips(chain))
        vectors = self._shared_vectors()
        return self._ordered(self._in_registers(chain, vectors)) if vectors > 1 else None

    def shared(self, chain: StageSchedule) -> StageSchedule | None:
        """The loops of a reduction per point, in which its pure definition runs as well. None if they are better
        separate."""
        if not is_per_point(self.stage):
            return None
        update = self.stage.updates[0]
        shape, written = self._shape(update)
        if shape is None:
            return None
        updated = shape(self._ordered(shape(chain)).update(0)).with_terms(written)
        domain = tuple(r.name for r in update.domain)
        return self._ordered(updated, domain).compute_with(self.stage.name, updated.outer[-1])

    def _shape(self, update: Definition) -> tuple[Callable[[StageSchedule], LoopShape] | None, Terms]:
        """The shape of the loops of both definitions (None if they are better separate), and the terms to unroll."""
        streams, is_window = self._streams(update)
        count = terms(update, MOST_TERMS + 1)
        shared = self._shared_terms(update) if is_window and count <= MOST_TERMS else {}
        is_short = is_small_reduction(self.stage) and self._may_be_written(count, size(update))
        is_better_written = self._is_alike or not shared  # with weights, there are no common sums
        if is_short and is_better_written and (is_window or streams <= MOST_STREAMS):
            several = partial(self._in_registers, vectors=self._shared_vectors())
            plain = several if self._shared_vectors() > 1 else self._in_vectors
            return (self._in_strips if self._has_strips() else plain), {r.name: None for r in update.domain}
        if not is_window or count > MOST_TERMS:
            return None, {}
        return (self._in_rows if shared else self._in_registers), shared

    def _ordered(self, shape: LoopShape, domain: tuple[str, ...] = ()) -> StageSchedule:
        """Unroll channels, place a reduction's loops between the outer and the inner loops, and let threads share the
        first loop."""
        chain, outer, inner = shape.chain, list(shape.outer), list(shape.inner)
        if self.channel is not None:
            chain = chain.unroll(self.channel, self.channels)
            outer.insert(outer.index(self.across), self.channel)
            inner.append(self.channel + SUFFIX["unroll"])
        first = self.stage.dims[0]
        if self.has_planes:  # threads share the rows of all planes
            plane = self.stage.dims[self.stage.dims.index(self._row) - 1]
            first = self._row if plane == first else first
            outer = [self._row, plane, *(n for n in outer if n != self._row)]
        if self.is_numbered and first != self._row:
            first, outer = self._row, [self._row, first, *(n for n in outer if n not in (first, self._row))]
        if len(outer) > 1 or domain:
            chain = chain.reorder(*outer, *domain, *inner)
        return chain if shape.is_parallel or first in (self.across, self.channel) else chain.parallel(first)

    # ---- shapes

    def _in_vectors(self, chain: StageSchedule) -> LoopShape:
        return LoopShape(chain.vectorize(self.across, self.width), (self.across,), (self.across + SUFFIX["vectorize"],))

    def _in_registers(self, chain: StageSchedule, vectors: int | None = None) -> LoopShape:
        """A register tile of several adjacent vectors."""
        block = self._new_name("_b")
        chain = chain.split(self.across, self.across, block, (vectors or self._vectors) * self.width)
        chain = chain.vectorize(block, self.width).unroll(block)
        return LoopShape(chain, (self.across,), (block, block + SUFFIX["vectorize"]))

    def _in_rows(self, chain: StageSchedule) -> LoopShape:
        """A register tile of several vectors, with about as many vectors per row as it has rows."""
        chain = chain.vectorize(self.across, side_by_side(self._vectors) * self.width).unroll(self._row, self._rows)
        inner = (self._row + SUFFIX["unroll"], self.across + SUFFIX["vectorize"])
        return LoopShape(chain, (self._row, self.across), inner)

    def _in_strips(self, chain: StageSchedule) -> LoopShape:
        """Strips of some columns, traversed row by row. Consecutive rows share nearly all elements that they read."""
        block, row = self._new_name("_b"), self._row
        inside = row + SUFFIX["parallel"]
        chain = chain.split(self.across, self.across, block, self._strip()).vectorize(block, self.width)
        outer, vector = (row, self.across, inside, block), block + SUFFIX["vectorize"]
        chain, rows = chain.parallel(row, STRIP_ROWS), self._shared_rows()
        if rows == 1:
            return LoopShape(chain, outer, (vector,), is_parallel=True)
        return LoopShape(chain.unroll(inside, rows), outer, (inside + SUFFIX["unroll"], vector), is_parallel=True)

    # ---- sizes

    def _has_strips(self) -> bool:
        place = self.stage.dims.index(self.across)
        axis = place - self.stage.ndim
        large = self.may_hold(2 * STRIP_ROWS, axis - 1) and self.may_hold(2 * self._strip(), axis)
        return self._is_along_rows and (self.rows > MOST_STREAMS or self._shared_rows() > 1) and large

    @property
    def _is_along_rows(self) -> bool:
        """Whether vectors run along the rows of a picture."""
        return self.stage.dims.index(self.across) == (2 if self.has_planes else 1)

    @property
    def _is_alike(self) -> bool:
        """Whether the windows of neighbours have terms in common, as they do without weights."""
        return any(n > 1 for n in self.overlap.values())

    def _shared_rows(self) -> int:
        """The number of rows that are unrolled together because their windows overlap."""
        much = self._is_along_rows and self.overlap.get(self._row, 1) >= SHARED_ROWS
        return self._written(self._row) if much else 1

    def _shared_vectors(self) -> int:
        """The number of vectors that are unrolled together because their windows overlap."""
        axis = self.stage.dims.index(self.across) - self.stage.ndim
        much = self.overlap.get(self.across, 1) >= 2 * self.width
        return self._written(self.across) if much and self.may_hold(2 * SIDE_BY_SIDE * self.width, axis) else 1

    def _may_be_written(self, count: int, size: int) -> bool:
        """Whether all terms of all channels may be unrolled."""
        copies = self.channels * count
        return copies * size <= MOST_WRITTEN and copies <= MOST_COPIES and copies * self.width <= MOST_VALUES

    def _written(self, dim: str) -> int:
        """The number of windows whose terms may all be unrolled together."""
        count = terms(self.stage.updates[0], MOST_TERMS) if self.stage.updates else self.overlap[dim]
        most = min(SIDE_BY_SIDE_TERMS, MOST_COPIES, MOST_VALUES // self.width)
        fitting = (n for n in (SIDE_BY_SIDE, SIDE_BY_SIDE // 2) if n * self.channels * count <= most)
        return next(fitting, 1)

    def _strip(self) -> int:
        """The width of strips: a power of two of vectors."""
        row = max(1, self.rows) * self.channels * self.width * max(t.bytes for t in self.stage.dtypes)
        return self.width << max(1, (STRIP_BYTES // row).bit_length() - 1)

    @property
    def _row(self) -> str:
        return self.stage.dims[self.stage.dims.index(self.across) - 1]

    @cached_property
    def _vectors(self) -> int:
        """The number of vectors that are accumulated at a time, each with all channels."""
        registers = max(1, self.width * sum(t.bytes for t in self.stage.dtypes) * 8 // self.target.vector_bits)
        n = max(1, round(sums_at_a_time(1) / (registers * self.channels)))
        axis = self.stage.dims.index(self.across) - self.stage.ndim
        while n > 1 and not self.may_hold(n * self.width, axis):
            n //= 2
        return n

    @property
    def _rows(self) -> int:
        return self._vectors // side_by_side(self._vectors)

    def _shared_terms(self, update: Definition) -> dict[str, int]:
        """The terms that the rows of a register tile share."""
        if not self.may_hold(self._rows, self.stage.dims.index(self._row) - self.stage.ndim):
            return {}
        block = self._vectors * self.channels
        return shared_terms(self.stage, update, self._row, self.across, block, self._rows, self.strict)

    def _streams(self, update: Definition) -> tuple[int, bool]:
        """The number of rows of all buffers from which the vectors of one value are read, and whether neighbouring
        values share these rows, as they do for a window, so that the rows stay in the cache."""
        extents = {r.name: constant(r.extent) or MOST_TERMS for r in update.domain}
        count, is_window = 0, True
        for e in update.loads:
            if e.buffer in self.stage.buffers or not any(self.across in names(i) for i in e.indices):
                continue
            rows = [names(i) for i in e.indices if self.across not in names(i) and self.channel not in names(i)]
            count += math.prod(n for r, n in extents.items() if any(r in index for index in rows))
            is_window = is_window and all(index & {*self.stage.dims} for index in rows if index & extents.keys())
        return count, is_window

    def _new_name(self, ending: str) -> str:
        """A name that no loop has. No loop has this name with the suffix of vector loops, either."""
        taken = {*self.stage.dims, *(r.name for d in self.stage.updates for r in d.domain)}
        return fresh(self.across + ending, lambda n: n in taken or n + SUFFIX["vectorize"] in taken)


def is_per_point(stage: Stage) -> bool:
    """Whether a stage is one reduction per point that reads nothing of other points."""
    if len(stage.updates) != 1 or stage.ndim < 2:
        return False
    update = stage.updates[0]
    return bool(update.domain) and accumulation(stage, update) is not None and keeps_to(stage, update, stage.dims)
