"""Facts about single stages, computed once for the many sets of stages that are considered.

To a scheduler, a stage that only shifts or crops another one is one stage with it:

out[y, x] = ...;  inner[y, x] = out[y + 2, x + 2]        out is inlined into inner

Tiles gain nothing for stages that read all their inputs along their own rows, and read no value again much later:

    out[y, x, c] = 255 - img[y, x, c]              streams
    out[y, x] = img[y - 1, x] + img[y + 1, x]      streams: the rows between are still in a cache
    out[y, x] = img[x, y]                          does not: the lines that a row touches serve the next rows
    out[c, y, x] = gray[y, x] * gain[c]            does not: a tile of gray serves all c

Computed by whole rows, such stages leave memory to the prefetchers, and rows start less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from ...analysis.access import Access, Index, accesses
from ...dataclass import cached_property, memoized
from ...expr.nodes import Load
from ...graph.nodes import Definition, Stage
from ..strategy import Problem


class SingleStages:
    """The stages of a problem, each by itself."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.facts = problem.facts
        self.names = tuple(s.name for s in problem.graph.stages)

    @memoized
    def reads(self, stage: Stage, definition: Definition) -> Sequence[Access]:
        """The reads of a definition, with reads of the same kind merged."""
        hulls: dict[object, Access] = {}
        for access in accesses(stage, definition):
            kind = (access.buffer, *(None if i is None else (i.dim, i.scale) for i in access.indices))
            hulls[kind] = _hull(hulls[kind], access) if kind in hulls else access
        return list(hulls.values())

    @cached_property
    def extents(self) -> dict[str, tuple[int, ...]]:
        return {name: self.facts.extents(name) for name in self.names}

    @cached_property
    def inlinable(self) -> frozenset[str]:
        return frozenset(filter(self.facts.can_be_inlined, self.names))

    @cached_property
    def size(self) -> dict[str, int]:
        """The bytes of stages and inputs."""
        return {name: self.facts.size(name) for name in (*self.names, *self.problem.graph.input)}

    @cached_property
    def bytes_per_point(self) -> dict[str, int]:
        return {name: self.facts.bytes_per_point(name) for name in self.names}

    @cached_property
    def pointwise(self) -> frozenset[str]:
        """Stages that read others at their own coordinates, all shifted alike, or at constants such as a channel."""
        return frozenset(s.name for s in self.problem.graph.stages if self._is_pointwise(s))

    def _is_pointwise(self, stage: Stage) -> bool:
        indices = [i for d in stage.definitions for a in self.reads(stage, d) for i in a.indices]
        shifts: dict[str | None, set[Fraction]] = {}
        for i in indices:
            if i is None or (i.dim is not None and i.scale != 1):
                return False
            if i.dim is not None:
                shifts.setdefault(i.dim, set()).update((i.low, i.high))
        return not stage.updates and all(len(shift) == 1 for shift in shifts.values())

    @cached_property
    def operations(self) -> dict[str, float]:
        """The operations of one point of each stage."""
        definitions = {s.name: range(len(s.definitions)) for s in self.problem.graph.stages}
        return {name: sum(self.facts.arithmetic(name, k) for k in ks) for name, ks in definitions.items()}

    @cached_property
    def loads(self) -> dict[tuple[str, str], int]:
        """The values that one point of the consumer reads, for each pair (producer, consumer)."""
        counts: dict[tuple[str, str], int] = {}
        for s in self.problem.graph.stages:
            for k in range(len(s.definitions)):
                for source, count in self.facts.reads(s.name, k).items():
                    counts[source, s.name] = counts.get((source, s.name), 0) + count
        return counts

    @cached_property
    def reuse(self) -> dict[str, dict[str, int]]:
        """For each stage and dim, the number of values that two consecutive iterations both read."""
        return {s.name: {d: dimensional_reuse(s, d) for d in s.dims} for s in self.problem.graph.stages}


def _hull(a: Access, b: Access) -> Access:
    pairs = zip(a.indices, b.indices, strict=True)
    return replace(a, indices=tuple(None if i is None or j is None else _wider(i, j) for i, j in pairs))


def _wider(a: Index, b: Index) -> Index:
    return Index(a.dim, a.scale, min(a.low, b.low), max(a.high, b.high))


def dimensional_reuse(stage: Stage, dim: str) -> int:
    """Group-temporal reuse along a dim: the reads whose values the next iteration reads as well (Wolf and Lam)."""
    reused = 0
    for d in stage.definitions:
        read = {a for a in accesses(stage, d) if None not in a.indices}
        reused += sum(_points(a) for a in read if _shifted(a, dim) in read)
        reused += sum(_overlap(a, dim) for a in read if _shifted(a, dim) not in read)
    return reused


def _shifted(a: Access, dim: str) -> Access:
    moved = (
        i if i is None or i.dim != dim else Index(dim, i.scale, i.low + i.scale, i.high + i.scale) for i in a.indices
    )
    return replace(a, indices=tuple(moved))


def _points(a: Access) -> int:
    return prod(int(i.high - i.low) + 1 for i in a.indices if i is not None)


def _overlap(a: Access, dim: str) -> int:
    """The points that a read of a whole range, as in a reduction, shares with itself one iteration later."""
    sizes = [(i.high - i.low + 1 - (i.scale if i.dim == dim else 0)) for i in a.indices if i is not None]
    return prod(max(0, int(n)) for n in sizes)


def cropped(problem: Problem) -> tuple[str, ...]:
    """The stages that are read only by a crop of them."""
    return tuple(s.name for s in problem.graph.stages if _is_only_cropped(problem, s))


def _is_only_cropped(problem: Problem, stage: Stage) -> bool:
    consumers = problem.graph.consumers[stage.name]
    if stage.updates or stage.name in problem.graph.output or len(consumers) != 1 or len(stage.buffers) != 1:
        return False
    crop = problem.graph.stage[consumers[0]]
    return not crop.updates and isinstance(crop.pure.values[0], Load) and _shifts(crop)


def _shifts(crop: Stage) -> bool:
    """Whether a stage reads one value, at its own coordinates or at a constant distance from them."""
    if len(crop.buffers) != 1 or crop.domain is not None:
        return False
    indices = [i for access in accesses(crop, crop.pure) for i in access.indices]
    dims = [i.dim for i in indices if i is not None and i.scale == 1 and i.low == i.high]
    return len(dims) == len(indices) and tuple(dims) == crop.dims


def streams(problem: Problem, name: str) -> bool:
    """Whether a stage, computed by itself, reads all its inputs in the order of memory."""
    stage = problem.graph.stage[name]
    reads = accesses(stage, stage.pure)
    return bool(stage.dims) and not stage.updates and all(_follows(problem, name, a) for a in reads)


def _follows(problem: Problem, name: str, read: Access) -> bool:
    """Whether a read moves with every dim of the stage but its channels, and along its rows as the stage does."""
    if any(i is None for i in read.indices):
        return False
    dims = [None if i is None else i.dim for i in read.indices]
    stage = problem.graph.stage[name]
    row = stage.dims[problem.row(name)]
    along = dims[problem.row(problem.facts.source(read.buffer)) :]
    around = stage.dims[: stage.dims.index(row) + 1]
    moving = [d for d, n in zip(around, problem.facts.extents(name), strict=False) if n > 1]
    return row in along and row not in dims[: -len(along)] and set(moving) <= set(dims)
