"""Facts about one definition that the cost model needs and that do not depend on its schedule. All pipelines that have
the definition share them, such as those that remain when other stages are inlined.

Stages have equal costs if they are equal except for the names of what they read, such as the levels of the pyramids of
two pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from math import prod
from typing import Any, NamedTuple

from ..analysis.interval import Interval, Scope
from ..analysis.loop_bounds import bounding, ragged
from ..analysis.regions import definition_scope
from ..dataclass import cached_property, memoized
from ..expr.nodes import Const, Expr, Load, Number, Op, Var
from ..expr.visit import each_once, names
from ..graph.nodes import Definition, Stage
from .branches import Branches, Conditions
from .copies import Copies
from .operations import InstructionCounts, StartCounts, Tally, depth, live_bytes, roots, start_counts
from .reads import Box, Reads
from .triangles import Triangle

UNLIMITED = 1 << 24  # the extent of an unbounded box


class DefinitionFacts:
    """A definition of a stage, at the sizes of a call."""

    def __init__(
        self,
        stage: Stage,
        index: int,
        source: Callable[[str], str],
        whole: Mapping[str, Box],
        scalars: Mapping[str, Number],
        conditions: Conditions,
    ) -> None:
        self.stage, self.definition = stage, stage.definitions[index]
        self._source, self._whole, self._scalars, self._conditions = source, whole, scalars, conditions
        self._boxes: dict[tuple[tuple[str, int], ...], dict[str, Box]] = {}
        self._filled: dict[tuple[tuple[str, int], ...], dict[str, float]] = {}
        self.answers: dict[Hashable, Any] = {}  # memoized, by what they depend on in the schedule

    @cached_property
    def reads(self) -> Reads:
        """The loads and stores of the definition."""
        return Reads(self.stage, self.definition, self._source, self.variables, self._scalars, self._conditions)

    def boxes(self, extents: Mapping[str, int]) -> dict[str, Box]:
        """The box of each source that the definition touches while its loops run over these extents."""
        key = tuple(extents.items())
        if key not in self._boxes:
            self._boxes[key] = self.reads.boxes(extents, self._whole)
        return self._boxes[key]

    def filled(self, extents: Mapping[str, int]) -> dict[str, float]:
        """The fraction of that box that is touched, for sources of which only a part is."""
        if not self.reads.stars:
            return {}
        key = tuple(extents.items())
        if key not in self._filled:
            self._filled[key] = {source: s.filled(extents) for source, s in self.reads.stars.items()}
        return self._filled[key]

    @cached_property
    def variables(self) -> dict[str, int]:
        """The extents of all loops."""
        return {**dict(zip(self.stage.dims, self._whole[self.stage.name], strict=True)), **self._ranges}

    @memoized
    def tallies(self, copies: Copies) -> tuple[Tally, ...]:
        """The instructions of evaluating the definition once in each copy."""
        return self._instructions.tallies(copies)

    @cached_property
    def _instructions(self) -> InstructionCounts:
        return InstructionCounts(self.branches, self.variables, self.reads.form)

    @cached_property
    def branches(self) -> Branches:
        """How often parts of the definition are evaluated."""
        return Branches(self._roots, self.variables, self._conditions)

    @cached_property
    def _roots(self) -> list[Expr]:
        return roots(self.definition)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The bytes per lane of live values at each step of evaluating the definition, most first."""
        return live_bytes(self._roots)

    @cached_property
    def depth(self) -> float:
        """The cycles of the critical path of the definition."""
        return depth(self._roots)

    @cached_property
    def start_counts(self) -> tuple[StartCounts, ...]:
        """The earliest start of each part of the definition."""
        return start_counts(self._roots, self.variables)

    @cached_property
    def triangle(self) -> Triangle:
        """The points at which its condition holds, as far as it bounds loops. The stage is taken to begin at 0."""
        ranges = {v: (self._first.get(v, 0), n) for v, n in self.variables.items() if n != UNLIMITED}
        known = ranges.keys() | self._scalars.keys()
        return Triangle([c for c in bounding(self.definition.condition) if names(c) <= known], ranges, self._scalars)

    @cached_property
    def part(self) -> float:
        """The fraction of its points at which the definition is computed."""
        return self.triangle.part() if self.triangle.conditions else 1.0

    def domain(self, vectors: Collection[str] = ()) -> dict[str, int]:
        """The extents of its reduction loops. One that depends on coordinates has its mean extent, unless vectors go
        along these."""
        extents = {name: self._expected_extent(name) if n == UNLIMITED else n for name, n in self._ranges.items()}
        for name, dims in self._ragged.items():
            if dims.isdisjoint(vectors):
                extents[name] = max(1, extents[name] // prod(self.variables.get(d, 1) for d in dims))
        return extents

    @cached_property
    def _ragged(self) -> dict[str, frozenset[str]]:
        return ragged(self.definition)

    @cached_property
    def _ranges(self) -> dict[str, int]:
        """The extent of each reduction loop, ignoring conditions."""
        return {r.name: extent(self._scope[r.name]) for r in self.definition.domain}

    @property
    def _first(self) -> dict[str, int]:
        """The first values of reduction loops, as far as they follow from sizes."""
        lows = {r.name: self._scope[r.name].low for r in self.definition.domain}
        return {name: int(low) for name, low in lows.items() if low is not None}

    @cached_property
    def _scope(self) -> Scope:
        """The ranges of reduction loops, in the middle of the stage."""
        box = tuple(Interval(n // 2, n // 2) for n in self._whole[self.stage.name])
        known = {name: Interval.point(value) for name, value in self._scalars.items()}
        return definition_scope(self.stage, self.definition, box, known) if self.definition.domain else {}

    def _expected_extent(self, loop: str) -> int:
        """The extent of a reduction loop that depends on data, such as the row of a sparse matrix: all rows together
        read all elements once."""
        lengths = [
            n
            for a in self.reads.loads
            for f, n in zip(a.forms, self._whole[a.source], strict=True)
            if f.slope(loop) or f.decided and loop in f.decided
        ]
        return max(1, max(lengths, default=1) // prod(self._whole[self.stage.name]))


def extent(r: Interval) -> int:
    """The number of values in an interval, at least 1 and at most UNLIMITED."""
    if not r.bounded:
        return UNLIMITED
    return max(1, min(UNLIMITED, int(r.high) - int(r.low) + 1))


class Signature(NamedTuple):
    """What the cost of a stage depends on. `form` is equal for equivalent stages. `sources` are the stages and inputs
    that the stage reads, itself included, ordered so that those of equivalent stages correspond to each other."""

    form: Hashable
    sources: tuple[str, ...]


def signature(stage: Stage, source: Callable[[str], str], scalars: Mapping[str, Number]) -> Signature:
    """The signature of a stage at the sizes of a call: names of buffers and scalars are replaced by numbers."""
    writer = _Writer(stage, source, scalars)
    definitions = tuple([writer.definition(d) for d in stage.definitions])
    form = (stage.dims, stage.dtypes, definitions, tuple(writer.lines), tuple(map(scalars.get, writer.scalars)))
    return Signature(_HashedTuple(form), tuple(writer.sources))


class _HashedTuple:
    """A long tuple that is hashed once."""

    def __init__(self, form: tuple[object, ...]) -> None:
        self._form, self._hash = form, hash(form)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            self is other or isinstance(other, _HashedTuple) and self._hash == other._hash and self._form == other._form
        )


class _Writer:
    """Writes expressions as numbered lines; equal expressions share one."""

    def __init__(self, stage: Stage, source: Callable[[str], str], scalars: Mapping[str, Number]) -> None:
        self.lines: dict[tuple[object, ...], int] = {}
        self.sources: dict[str, int] = {stage.name: 0}
        self.scalars: dict[str, int] = {}
        self._source, self._values = source, scalars
        self._known: dict[int, int] = {}

    def definition(self, d: Definition) -> tuple[object, ...]:
        of = tuple([each_once(e, self._known, self._line) for e in d.expressions])
        return len(d.indices), len(d.values), tuple([r.name for r in d.domain]), of

    def _line(self, e: Expr) -> int:
        line = (type(e), e.dtype, self._attribute(e), *[self._known[id(c)] for c in e.operands])
        return self.lines.setdefault(line, len(self.lines))

    def _attribute(self, e: Expr) -> object:
        """The attributes of a node besides its type and operands. Loads of a graph have no masks."""
        if isinstance(e, Const):
            return repr(e.value)
        if isinstance(e, Op):
            return e.op
        if isinstance(e, Var):
            return self.scalars.setdefault(e.name, len(self.scalars)) if e.name in self._values else e.name
        if isinstance(e, Load):
            source = self._source(e.buffer)
            return self.sources.setdefault(source, len(self.sources)), e.buffer.removeprefix(source)
        return None
