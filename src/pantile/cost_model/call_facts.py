"""Facts about a pipeline that the cost model needs and that do not depend on a schedule: at the sizes of a call, with
some stages inlined.

These facts are memoized with the graph, so that a search that predicts the cost of hundreds of schedules counts the
operations of each definition once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from ..analysis.conversions import conversions
from ..analysis.inlining import as_expression, rewritten
from ..analysis.interval import Interval, Scope
from ..analysis.regions import Box as Region
from ..analysis.regions import Rules, required, stage_reads
from ..dataclass import cached_property, memoized
from ..expr.nodes import Number
from ..graph.nodes import Graph, Stage
from ..schedule.loop_tree import Leaf
from .branches import Branches, Conditions
from .copies import Copies
from .definition_costs import DefinitionFacts, Signature, extent, signature
from .operations import StartCounts, Tally
from .reads import Box, Reads
from .triangles import Triangle

Shapes = Mapping[str, tuple[int, ...]]

_KNOWN: WeakKeyDictionary[Graph, dict[object, _SizedPipeline]] = WeakKeyDictionary()
_READS: WeakKeyDictionary[Stage, dict[Hashable, dict[str, Region]]] = WeakKeyDictionary()
_MOST_KNOWN = 512  # sets of inlined stages per graph and sizes


class CallFacts:
    """A pipeline with concrete extents, without the stages that are inlined."""

    def __init__(self, graph: Graph, at: _SizedPipeline) -> None:
        self.graph, self.whole, self.answers = graph, at.whole, at.answers
        self._at = at
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
        return self._at.source(buffer)

    def bytes_per_point(self, name: str) -> int:
        return sum(t.bytes for t in self.dtypes[name])

    @memoized
    def definition(self, leaf: Leaf) -> DefinitionFacts:
        """The facts about a definition."""
        return self._at.definition(self.graph.stage[leaf[0]], leaf[1])

    def reads(self, leaf: Leaf) -> Reads:
        """The reads and writes of a definition."""
        return self.definition(leaf).reads

    def tallies(self, leaf: Leaf, copies: Copies) -> tuple[Tally, ...]:
        """The instructions of evaluating a definition once in each copy."""
        return self.definition(leaf).tallies(copies)

    def branches(self, leaf: Leaf) -> Branches:
        """How often parts of a definition are evaluated."""
        return self.definition(leaf).branches

    def live(self, leaf: Leaf) -> tuple[int, ...]:
        """The bytes per lane of live values at each step of evaluating a definition, most first."""
        return self.definition(leaf).live

    def depth(self, leaf: Leaf) -> float:
        """The cycles of the critical path of a definition."""
        return self.definition(leaf).depth

    def start_counts(self, leaf: Leaf) -> tuple[StartCounts, ...]:
        """The earliest start of each part of a definition."""
        return self.definition(leaf).start_counts

    def triangle(self, leaf: Leaf) -> Triangle:
        """The points at which the condition of a definition holds, as far as it bounds loops."""
        return self.definition(leaf).triangle

    def part(self, leaf: Leaf) -> float:
        """The fraction of the points of a definition at which it is computed."""
        return self.definition(leaf).part

    def signature(self, name: str) -> Signature:
        """All that the cost of a stage depends on, without the names of stages."""
        return self._at.signature(self.graph.stage[name])

    def domain(self, leaf: Leaf, vectors: Collection[str] = ()) -> dict[str, int]:
        """The extents of the reduction loops of a definition. One that depends on coordinates has its mean extent,
        unless vectors go along these."""
        return self.definition(leaf).domain(vectors)


def call_facts(
    graph: Graph, shapes: Shapes, scalars: Mapping[str, Number], inlined: frozenset[str], written_out: frozenset[str]
) -> CallFacts:
    """Return the memoized facts about a pipeline at these sizes. `inlined` stages are substituted into their consumers,
    and `written_out` sums are expressions."""
    return _at_sizes(graph, shapes, scalars).without(inlined, written_out)


def regions(graph: Graph, shapes: Shapes, scalars: Mapping[str, Number]) -> dict[str, Region]:
    """The required region of every stage and input, memoized."""
    return _at_sizes(graph, shapes, scalars).regions


def _at_sizes(graph: Graph, shapes: Shapes, scalars: Mapping[str, Number]) -> _SizedPipeline:
    known = _KNOWN.setdefault(graph, {})
    sizes = (tuple(sorted(shapes.items())), tuple(sorted(scalars.items())))
    if sizes not in known:
        known[sizes] = _SizedPipeline(graph, shapes, scalars)
    return known[sizes]


def _reads_once(sizes: Hashable, stage: Stage, box: Region, scope: Scope, rules: Rules) -> dict[str, Region]:
    """`stage_reads` at the sizes of a call, memoized for all pipelines that have this stage: strategies consider
    pipelines in which other stages are inlined."""
    known = _READS.setdefault(stage, {})
    key = (sizes, *[(side.low, side.high) for side in box])
    if key not in known:
        known[key] = stage_reads(stage, box, scope, rules)
    return known[key]


class _SizedPipeline:
    """A pipeline at the sizes of a call, and its remainders when stages are inlined."""

    def __init__(self, graph: Graph, shapes: Shapes, scalars: Mapping[str, Number]) -> None:
        self._graph, self.scalars = replace(graph), scalars  # a copy, since this dies with the original
        self._conditions = Conditions(scalars)
        outputs = {name: tuple(Interval(0, n - 1) for n in shape) for name, shape in shapes.items()}
        scope = {name: Interval.point(value) for name, value in scalars.items()}
        self.regions = required(graph, outputs, scope, reads=partial(_reads_once, tuple(sorted(scalars.items()))))
        self.whole = _extents(graph, self.regions, scalars) | {
            name: tuple([max(1, n) for n in shape]) for name, shape in shapes.items()
        }
        self.answers: dict[Hashable, dict[Hashable, Any]] = {}  # costs of groups of stages, by their keys
        self._source = {b: s.name for s in graph.stages for b in s.buffers}
        self._left: dict[tuple[frozenset[str], frozenset[str]], CallFacts] = {}
        self._rewritten: dict[tuple[str, frozenset[str]], Stage] = {}

    def source(self, buffer: str) -> str:
        return self._source.get(buffer, buffer)

    @memoized
    def definition(self, stage: Stage, index: int) -> DefinitionFacts:
        return DefinitionFacts(stage, index, self.source, self.whole, self.scalars, self._conditions)

    @memoized
    def signature(self, stage: Stage) -> Signature:
        return signature(stage, self.source, self.scalars)

    @cached_property
    def _read(self) -> dict[str, frozenset[str]]:
        """The other stages that each stage reads."""
        buffers = {s.name: {e.buffer for d in s.definitions for e in d.loads} for s in self._graph.stages}
        return {
            name: frozenset(self._source[b] for b in of if b in self._source) - {name} for name, of in buffers.items()
        }

    def without(self, inlined: frozenset[str], written_out: frozenset[str]) -> CallFacts:
        """Return the pipeline with some stages inlined into their consumers, and some sums as expressions."""
        if (inlined, written_out) not in self._left:
            if len(self._left) >= _MOST_KNOWN:
                self._left.clear()
            stages = tuple(
                self._as_expression(s) if s.name in written_out else s for s in self._remaining_stages(inlined)
            )
            self._left[inlined, written_out] = CallFacts(replace(self._graph, stages=stages), self)
        return self._left[inlined, written_out]

    def _remaining_stages(self, inlined: frozenset[str]) -> list[Stage]:
        """The stages that are not inlined, memoized by what is inlined into them."""
        taken: dict[str, frozenset[str]] = {}
        for s in self._graph.stages:
            of = self._read[s.name] & inlined
            taken[s.name] = of.union(*(taken[name] for name in of))
        kept = [s for s in self._graph.stages if s.name not in inlined]
        new = {s.name for s in kept if taken[s.name] and (s.name, taken[s.name]) not in self._rewritten}
        if new:
            needed = frozenset().union(*(taken[name] for name in new))
            for name, stage in rewritten(self._graph, needed, new).items():
                self._rewritten[name, taken[name]] = stage
        return [self._rewritten[s.name, taken[s.name]] if taken[s.name] else s for s in kept]

    @memoized
    def _as_expression(self, stage: Stage) -> Stage:
        return as_expression(stage)


def _extents(graph: Graph, regions: Mapping[str, Region], scalars: Mapping[str, Number]) -> dict[str, Box]:
    """The extents of the required region of each stage and input, at least 1 each."""
    extents = {s.name: (1,) * s.ndim for s in graph.stages}
    extents |= {name: tuple(map(extent, region)) for name, region in regions.items()}
    return extents | {i.name: tuple(max(1, int(scalars[i.extent(k)])) for k in range(i.ndim)) for i in graph.inputs}
