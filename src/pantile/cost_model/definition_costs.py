"""What prices need of one definition, whatever its schedule: found once, and shared by all pipelines that have it, such
as those that are left when other stages are inlined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from math import prod
from typing import Any

from ..analysis.interval import Interval, Scope
from ..analysis.loop_bounds import bounding
from ..analysis.ragged import ragged
from ..analysis.regions import definition_scope
from ..cached import cached_property
from ..expr.nodes import Expr, Number
from ..expr.visit import names
from ..graph.nodes import Stage
from .branches import Branches, Conditions
from .copies import Copies
from .operations import Begun, Executed, Tally, beginnings, depth, live_bytes, roots
from .reads import Box, Reads
from .triangles import Triangle

UNLIMITED = 1 << 24  # what counts as the extent of a box that nothing limits


class Defined:
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
        self._tallies: dict[Copies, tuple[Tally, ...]] = {}
        self._boxes: dict[tuple[tuple[str, int], ...], dict[str, Box]] = {}
        self._filled: dict[tuple[tuple[str, int], ...], dict[str, float]] = {}
        self.answers: dict[Hashable, Any] = {}  # to what was asked before, of a schedule for it

    @cached_property
    def reads(self) -> Reads:
        """What it reads and writes."""
        return Reads(self.stage, self.definition, self._source, self.variables, self._scalars, self._conditions)

    def boxes(self, extents: Mapping[str, int]) -> dict[str, Box]:
        """What it touches of each source while its loops run over such extents."""
        question = tuple(extents.items())
        if question not in self._boxes:
            self._boxes[question] = self.reads.boxes(extents, self._whole)
        return self._boxes[question]

    def filled(self, extents: Mapping[str, int]) -> dict[str, float]:
        """Of which sources it touches a part of that box, and which part."""
        if not self.reads.stars:
            return {}
        question = tuple(extents.items())
        if question not in self._filled:
            self._filled[question] = {source: s.filled(extents) for source, s in self.reads.stars.items()}
        return self._filled[question]

    @cached_property
    def variables(self) -> dict[str, int]:
        """The extents of all loops."""
        return {**dict(zip(self.stage.dims, self._whole[self.stage.name], strict=True)), **self._ranges}

    def tallies(self, copies: Copies) -> tuple[Tally, ...]:
        """What evaluating it once in each copy executes."""
        if copies not in self._tallies:
            self._tallies[copies] = self._executed.tallies(copies)
        return self._tallies[copies]

    @cached_property
    def _executed(self) -> Executed:
        return Executed(self.branches, self.variables, self.reads.form)

    @cached_property
    def branches(self) -> Branches:
        """How often parts of it are evaluated."""
        return Branches(self._roots, self.variables, self._conditions)

    @cached_property
    def _roots(self) -> list[Expr]:
        return roots(self.definition)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Bytes per lane that wait in registers at each step of evaluating it, most first."""
        return live_bytes(self._roots)

    @cached_property
    def depth(self) -> float:
        """Cycles of its longest chain of operations."""
        return depth(self._roots)

    @cached_property
    def beginnings(self) -> tuple[Begun, ...]:
        """When parts of it begin, at best."""
        return beginnings(self._roots, self.variables)

    @cached_property
    def triangle(self) -> Triangle:
        """Where its condition holds, as far as that bounds loops. The stage begins at 0, as far as is known here."""
        ranges = {v: (self._first.get(v, 0), n) for v, n in self.variables.items() if n != UNLIMITED}
        known = ranges.keys() | self._scalars.keys()
        return Triangle([c for c in bounding(self.definition.condition) if names(c) <= known], ranges, self._scalars)

    @cached_property
    def part(self) -> float:
        """Of its points, at which it is computed."""
        return self.triangle.part() if self.triangle.conditions else 1.0

    def domain(self, vectors: Collection[str] = ()) -> dict[str, int]:
        """The extents of its reduction loops; of one that depends on coordinates, the mean, unless it runs for vectors
        along these."""
        found = {name: self._likely(name) if n == UNLIMITED else n for name, n in self._ranges.items()}
        for name, dims in self._ragged.items():
            if dims.isdisjoint(vectors):
                found[name] = max(1, found[name] // prod(self.variables.get(d, 1) for d in dims))
        return found

    @cached_property
    def _ragged(self) -> dict[str, frozenset[str]]:
        return ragged(self.definition)

    @cached_property
    def _ranges(self) -> dict[str, int]:
        """The extent of each reduction loop, ignoring conditions."""
        return {r.name: extent(self._scope[r.name]) for r in self.definition.domain}

    @property
    def _first(self) -> dict[str, int]:
        """Where reduction loops begin, as far as sizes tell."""
        lows = {r.name: self._scope[r.name].low for r in self.definition.domain}
        return {name: int(low) for name, low in lows.items() if low is not None}

    @cached_property
    def _scope(self) -> Scope:
        """The reduction loops, in the middle of the stage."""
        box = tuple(Interval(n // 2, n // 2) for n in self._whole[self.stage.name])
        known = {name: Interval.point(value) for name, value in self._scalars.items()}
        return definition_scope(self.stage, self.definition, box, known) if self.definition.domain else {}

    def _likely(self, loop: str) -> int:
        """The extent of a reduction loop that data decide, as of the row of a sparse matrix: all rows together read
        as much as there is."""
        lengths = [
            n
            for a in self.reads.loads
            for f, n in zip(a.forms, self._whole[a.source], strict=True)
            if f.slope(loop) or f.decided and loop in f.decided
        ]
        return max(1, max(lengths, default=1) // prod(self._whole[self.stage.name]))


def extent(r: Interval) -> int:
    """How many values a range has, as far as it is limited, and at least 1."""
    if not r.bounded:
        return UNLIMITED
    return max(1, min(UNLIMITED, int(r.high) - int(r.low) + 1))
