"""What prices need of a pipeline and do not find anew for each schedule: at sizes of a call, with some stages inlined.

Kept with the graph, so that a search which prices hundreds of schedules counts operations once per definition.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

from ..analysis.conversions import conversions
from ..analysis.interval import Interval
from ..analysis.regions import definition_scope, required
from ..analysis.substituted import closed_form, substituted
from ..expr.nodes import Expr, Number
from ..graph.nodes import Graph, Stage
from .branches import Branches
from .copies import Copies
from .operations import Tally, depth, live_bytes, roots, tallies
from .reads import Box, Reads

Leaf = tuple[str, int]  # a stage and which of its definitions
Shapes = Mapping[str, tuple[int, ...]]
UNLIMITED = 1 << 24  # what counts as the extent of a box that nothing limits

_KNOWN: WeakKeyDictionary[Graph, dict[object, Sized]] = WeakKeyDictionary()
_MOST_KNOWN = 512  # per graph


class Sized:
    """A pipeline with concrete extents. `inlined` stages are written into what reads them, sums `written_out` are
    expressions."""

    def __init__(
        self, graph: Graph, whole: Mapping[str, Box], scalars: Mapping[str, Number],
    ) -> None:  # fmt: skip
        self.graph, self.whole, self.scalars = graph, whole, scalars
        self._scope = {name: Interval.point(value) for name, value in scalars.items()}
        self._source = {b: s.name for s in graph.stages for b in s.buffers}
        self._reads: dict[Leaf, Reads] = {}
        self._tallies: dict[tuple[Leaf, Copies], tuple[Tally, ...]] = {}
        self._evaluated: dict[Leaf, list[Expr]] = {}
        self._branches: dict[Leaf, Branches] = {}
        self._domains: dict[Leaf, dict[str, int]] = {}
        self._live: dict[Leaf, tuple[int, ...]] = {}
        self._depth: dict[Leaf, float] = {}
        self.answers: dict[Hashable, Any] = {}  # to what was asked before, of a schedule for a part of the pipeline
        wider = conversions(graph)
        self.dtypes = {s.name: tuple(wider.get(s.name, t) for t in s.dtypes) for s in graph.stages}
        self.dtypes |= {i.name: (i.dtype,) for i in graph.inputs}
        self.readers: dict[str, list[Leaf]] = {name: [] for name in self.dtypes}
        for s in graph.stages:
            for k, d in enumerate(s.definitions):
                for name in {self.source(e.buffer) for e in d.loads} - {s.name}:
                    self.readers[name].append((s.name, k))

    def source(self, buffer: str) -> str:
        """The stage or input that a buffer belongs to."""
        return self._source.get(buffer, buffer)

    def bytes_per_point(self, name: str) -> int:
        return sum(t.bytes for t in self.dtypes[name])

    def reads(self, leaf: Leaf) -> Reads:
        """What a definition reads and writes."""
        if leaf not in self._reads:
            stage = self.graph.stage[leaf[0]]
            definition = stage.definitions[leaf[1]]
            self._reads[leaf] = Reads(stage, definition, self.source, self.variables(leaf), self.scalars)
        return self._reads[leaf]

    def variables(self, leaf: Leaf) -> dict[str, int]:
        """The extents of all loops of a definition."""
        dims = dict(zip(self.graph.stage[leaf[0]].dims, self.whole[leaf[0]], strict=True))
        return {**dims, **self._ranges(leaf)}

    def tallies(self, leaf: Leaf, copies: Copies) -> tuple[Tally, ...]:
        """What evaluating a definition once in each copy executes."""
        if (leaf, copies) not in self._tallies:
            form = self.reads(leaf).form
            self._tallies[leaf, copies] = tallies(self.branches(leaf), self.variables(leaf), copies, form)
        return self._tallies[leaf, copies]

    def branches(self, leaf: Leaf) -> Branches:
        """How often parts of a definition are evaluated."""
        if leaf not in self._branches:
            self._branches[leaf] = Branches(self._roots(leaf), self.variables(leaf), self.scalars)
        return self._branches[leaf]

    def _roots(self, leaf: Leaf) -> list[Expr]:
        if leaf not in self._evaluated:
            self._evaluated[leaf] = roots(self.graph.stage[leaf[0]].definitions[leaf[1]])
        return self._evaluated[leaf]

    def live(self, leaf: Leaf) -> tuple[int, ...]:
        """Bytes per lane that wait in registers at each step of evaluating a definition, most first."""
        if leaf not in self._live:
            self._live[leaf] = live_bytes(self._roots(leaf))
        return self._live[leaf]

    def depth(self, leaf: Leaf) -> float:
        """Cycles of the longest chain of operations of a definition."""
        if leaf not in self._depth:
            self._depth[leaf] = depth(self._roots(leaf))
        return self._depth[leaf]

    def domain(self, leaf: Leaf) -> dict[str, int]:
        """The extents of the reduction loops of a definition; of one that depends on coordinates, the mean."""
        if leaf not in self._domains:
            found = self._ranges(leaf)
            self._domains[leaf] = {name: self._likely(leaf, name) if n == UNLIMITED else n for name, n in found.items()}
        return self._domains[leaf]

    def _ranges(self, leaf: Leaf) -> dict[str, int]:
        """The same as far as sizes tell."""
        stage = self.graph.stage[leaf[0]]
        d = stage.definitions[leaf[1]]
        if not d.domain:
            return {}
        box = tuple(Interval(n // 2, n // 2) for n in self.whole[stage.name])
        scope = definition_scope(stage, d, box, self._scope)
        return {r.name: _extent(scope[r.name]) for r in d.domain}

    def _likely(self, leaf: Leaf, loop: str) -> int:
        """The extent of a reduction loop that data decide, as of the row of a sparse matrix: all rows together read
        as much as there is."""
        lengths = [
            n for a in self.reads(leaf).loads for f, n in zip(a.forms, self.whole[a.source], strict=True)
            if f.slope(loop) or f.decided and loop in f.decided
        ]  # fmt: skip
        return max(1, max(lengths, default=1) // prod(self.whole[leaf[0]]))


def sized(
    graph: Graph, shapes: Shapes, scalars: Mapping[str, Number], inlined: frozenset[str], written_out: frozenset[str]
) -> Sized:
    """The pipeline at these sizes, found once."""
    known = _KNOWN.setdefault(graph, {})
    sizes = (tuple(sorted(shapes.items())), tuple(sorted(scalars.items())))
    key = (*sizes, inlined, written_out)
    if key not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        if sizes not in known:
            known[sizes] = Sized(graph, _whole(graph, shapes, scalars), scalars)
        left = substituted(graph, inlined) if inlined else graph
        stages = tuple(_written_out(s) if s.name in written_out else s for s in left.stages)
        known[key] = Sized(replace(left, stages=stages), known[sizes].whole, scalars)
    return known[key]


def _written_out(stage: Stage) -> Stage:
    return replace(stage, pure=replace(stage.pure, values=closed_form(stage)), updates=())


def _whole(graph: Graph, shapes: Shapes, scalars: Mapping[str, Number]) -> dict[str, Box]:
    """The extents of all that is needed of each stage and input, at least 1 each."""
    outputs = {name: tuple(Interval(0, n - 1) for n in shape) for name, shape in shapes.items()}
    boxes = required(graph, outputs, {name: Interval.point(value) for name, value in scalars.items()})
    found = {s.name: (1,) * s.ndim for s in graph.stages}
    found |= {name: tuple(map(_extent, box)) for name, box in boxes.items()}
    return found | {i.name: tuple(max(1, int(scalars[i.extent(k)])) for k in range(i.ndim)) for i in graph.inputs}


def _extent(r: Interval) -> int:
    if not r.bounded:
        return UNLIMITED
    return max(1, min(UNLIMITED, int(r.high) - int(r.low) + 1))
