"""Bounds inference: the required region of a stage is the box that the statements after it read, over the loops
between.

    out[y, x] = f[y - 1, x] + f[y + 1, x], inside the loop over out.y, requires f: [out.y - 1..out.y + 1, 0..w - 1]

In a tile at an edge, conditions may leave less than this box, or nothing. The box is then clipped to the region of the
stage that the whole call requires (`required`), since there may be no input for more.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...analysis.interval import Interval
from ...analysis.regions import Box, definition_scope, where_it_holds, with_own_updates
from ...dataclass import dataclass
from ...expr.build import expr, maximum, minimum
from ...expr.linear import simplify
from ...expr.nodes import Expr, Load, const
from ...expr.types import INDEX
from ...expr.visit import depends, loaded, names, same
from ...graph.nodes import Graph, Stage
from ...ir.nodes import Stmt
from ...schedule.updates import pure_dims
from ..contents import Contents
from ..coverage import Coverage
from ..footprint import LoopRanges, computed_box, read_by, read_if, read_when
from ..names import region_names
from ..refuse import different_regions, unbounded
from .context import BuildContext
from .required import few_places, output_box

_FARTHEST = 1 << 40  # coordinates beyond this are treated as unknown
_LONGEST_TILE = 1 << 13  # longer constant extents come from a type rather than from a tile


@dataclass(frozen=True)
class Region:
    """The region of a stage that is computed. `clipped` maps clipped dims to their extents before clipping, if
    constant."""

    box: Box
    clipped: dict[int, int | None]


class Regions:
    """Queries about the regions that statements read and compute in a context."""

    def __init__(self, graph: Graph, context: BuildContext, coverage: Coverage, contents: Contents) -> None:
        self._graph, self._context, self._required = graph, context, context.required
        self._coverage, self._contents = coverage, contents

    def loop_ranges(self) -> LoopRanges:
        """The full ranges of loops for footprints. Open loops are not seen as wholes."""
        return LoopRanges(self._coverage, self._context.variables, self._contents)

    # Footprints

    def required_box(self, members: Sequence[Stage], rest: Stmt) -> Box | None:
        """The region of the stages that `rest` (or the caller) requires, or None if inlining left no reads."""
        boxes: list[tuple[Stage, Box]] = []
        loop_ranges = self.loop_ranges()
        for m in members:
            is_output = m.name in self._graph.output
            box = output_box(self._graph, m) if is_output else read_by(rest, m.buffers, {}, loop_ranges, m.name)
            if box is not None:
                grown = m.updates and not is_output
                boxes.append((m, with_own_updates(m, box, {}, self._required.running) if grown else box))
        if not boxes:
            return None
        tidied = [(m, self.tidy(m, box)) for m, box in boxes]
        first = tidied[0][1]
        for m, box in tidied[1:]:
            if not self._same(box, first):
                raise different_regions(m, members[0])
        return tuple(self._few_places(members, k, side) for k, side in enumerate(first))

    def _few_places(self, members: Sequence[Stage], k: int, side: Interval) -> Interval:
        """Widen a side whose position floats decide to all of its few possible positions, if the stages can be computed
        there. Computing the exact ends would save too little.
        """
        all_of_them = few_places(side, self._context.facts)
        if (
            all_of_them is None
            or any(m.name in self._graph.output for m in members)
            or not self.is_computable(members, k)
        ):
            return side
        return all_of_them

    def computed_box(self, stage: Stage, body: Stmt) -> Box | None:
        """The box of a stage that a statement computes."""
        box = computed_box(body, stage, {}, self.loop_ranges())
        return None if box is None else self.tidy(stage, box)

    def read(self, reader: Stage, buffer: str, body: Stmt) -> Box | None:
        """The box of a buffer that the innermost body of a stage reads."""
        box = read_by(body, (buffer,), {}, self.loop_ranges())
        return None if box is None else self.tidy(reader, box)

    def tidy(self, stage: Stage, box: Box) -> Box:
        """The box in terms of loop variables."""
        return tuple(self._tidy_side(stage, k, side) for k, side in enumerate(box))

    def _tidy_side(self, stage: Stage, k: int, side: Interval) -> Interval:
        if not side.bounded or any(isinstance(e, int) and abs(e) > _FARTHEST for e in (side.low, side.high)):
            raise unbounded(stage, k)
        return Interval(*(self._context.in_loop_variables(expr(e, INDEX)) for e in (side.low, side.high)))

    def _same(self, a: Box, b: Box) -> bool:
        """Whether two boxes are certainly equal."""
        facts = self._context.facts
        ends = [(x, y) for s, t in zip(a, b, strict=False) for x, y in ((s.low, t.low), (s.high, t.high))]
        return len(a) == len(b) and all(facts.ge(x, y) and facts.ge(y, x) for x, y in ends)

    # Conditions

    def conditions(self, members: Sequence[Stage], rest: Stmt) -> list[Expr]:
        """The conditions under which `rest` reads the stages, apart from those on where a loop around it starts."""
        conditions = read_when(rest, tuple(b for m in members for b in m.buffers), self._contents) or []
        return [c for c in conditions if not depends(c, [loop.first.name for loop in self._context.open])]

    def pixel_conditions(self, stage: Stage) -> list[Expr]:
        """The conditions under which an input has the pixels that a stage copies.

        Readers require no pixel that does not exist, except that a clamped index requires a pixel even of an empty
        input.
        """
        if stage.updates or not self._required.is_conditional:
            return []
        inputs = self._graph.input
        read = [e for e in stage.pure.values if isinstance(e, Load) and all(map(same, e.indices, stage.pure.indices))]
        sources = {e.buffer for e in read} & inputs.keys()
        sizes = (inputs[i].size(axis) for i in sorted(sources) for axis in range(inputs[i].ndim))
        return [size >= 1 for size in sizes if not self._context.facts.ge(size, const(1, INDEX))]

    def needed_when(self, stage: Stage, index: int) -> list[Expr] | None:
        """The conditions under which a definition's loops run, or None if they never do.

        The loops of an update run over its domain even where nothing of the stage is required, but then there is no
        memory for its stores.
        """
        along = pure_dims(stage, stage.definitions[index])
        ends = [region_names(stage, dim) for dim in stage.dims if dim not in along]
        some = [low <= high for low, high in ends if not self._context.has_values(low, high)]
        missing = self._never_runs(stage, index) if len(along) < len(stage.dims) else 0
        if isinstance(missing, Expr):
            some.append(missing < 1)
        return None if not isinstance(missing, Expr) and missing else some

    def _never_runs(self, stage: Stage, index: int) -> Expr | int:
        """1 if a definition's domain has no points, else 0.

        In that case, there may be no memory for the elements to which it scatters or for accumulators that are held in
        registers around its loops.
        """
        d = stage.definitions[index]
        box = tuple(Interval(*region_names(stage, dim)) for dim in stage.dims)
        scope = where_it_holds(d, definition_scope(stage, d, box, {}))
        return self._required.missing(scope[r.name] for r in d.domain)

    def is_missing(self, buffer: str) -> bool:
        """Whether a call may compute nothing of a stage that others read under conditions."""
        stage = self._graph.producer.get(buffer)
        return stage is not None and (self._required.is_limited(stage) or bool(self.pixel_conditions(stage)))

    def is_computable(self, members: Sequence[Stage], k: int) -> bool:
        """Whether the stages can be computed at any position along dim k."""
        return all(self._required.is_computable(m, k) for m in members)

    # Clipping

    def clipped(self, members: Sequence[Stage], box: Box, rest: Stmt, granted: Sequence[Expr]) -> dict[str, Region]:
        """The box of each stage, without the part that is read only by iterations whose condition fails, for which
        there may be no input.

        The conditions `granted` and those on where a loop starts do not count.
        """
        reduced = self._is_reduced(members, rest, granted)
        sides: list[Interval] = []
        clipped: dict[str, dict[int, int | None]] = {m.name: {} for m in members}
        for k, side in enumerate(box):
            needed = None
            if (
                reduced or self._may_be_empty(side) or self._may_be_too_much(members, k, side)
            ) and not self.is_computable(members, k):
                needed = self._needed_by_call(members, k)
            if needed is not None:
                for m in members:
                    clipped[m.name][k] = self._most(m, side)
                side = self._within(side, needed)
            sides.append(self._not_negative(side))
        return {m.name: Region(tuple(sides), clipped[m.name]) for m in members}

    def _is_reduced(self, members: Sequence[Stage], rest: Stmt, granted: Sequence[Expr]) -> bool:
        """Whether some iterations may require less of the stages than the ends of the footprints suggest."""
        if self._required.is_loose or any(map(self._required.is_limited, members)):
            return True
        starts, moves = {loop.first.name for loop in self._context.open}, self._context.moving()

        def counts(c: Expr) -> bool:
            is_decided = loaded(c) or depends(c, starts) or any(same(c, g) for g in granted)
            return any(map(moves, names(c))) and not is_decided

        return read_if(rest, tuple(b for m in members for b in m.buffers), counts, self._contents)

    def _may_be_empty(self, side: Interval) -> bool:
        """Whether conditions may leave the side empty. Its ends, and what is read for it, may then be anywhere."""
        extent = side.high - side.low + 1
        return self._required.is_conditional and not self._context.never_negative(simplify(extent, self._context.facts))

    def _may_be_too_much(self, members: Sequence[Stage], k: int, side: Interval) -> bool:
        """Whether a side, outside of all loops, may exceed what is required.

        For nested blocks of varying length, the last block is assumed to be as far out and as long as any block can be.
        Outputs do not count: all of the caller's room is computed.
        """
        if self._context.open or all(m.name in self._graph.output for m in members):
            return False
        needed, facts = self._needed_by_call(members, k), self._context.facts
        return needed is not None and not (facts.ge(side.low, needed.low) and facts.ge(needed.high, side.high))

    def _needed_by_call(self, members: Sequence[Stage], k: int) -> Interval | None:
        """The range of a dim of the stages that a call requires, if it is known."""
        if not all(self._required.of(m)[k].bounded for m in members):
            return None
        wholes = [self._tidy_side(m, k, self._required.of(m)[k]) for m in members]
        return Interval(
            functools.reduce(minimum, (w.low for w in wholes)), functools.reduce(maximum, (w.high for w in wholes))
        )

    def _most(self, stage: Stage, side: Interval) -> int | None:
        """The extent of a side before it is clipped, or None if it is not a constant worth keeping."""
        most = None if self._required.is_limited(stage) else self._context.facts.upper(side.high - side.low + 1)
        return None if most is None or most > _LONGEST_TILE else most

    def _within(self, side: Interval, needed: Interval) -> Interval:
        """Clip both ends, so that an empty range has extent 0."""
        first = minimum(maximum(side.low, needed.low), needed.high + 1)
        last = minimum(maximum(side.high, needed.low - 1), needed.high)
        return Interval(simplify(first, self._context.facts), simplify(last, self._context.facts))

    def _not_negative(self, side: Interval) -> Interval:
        """Return the side with an extent that is not negative.

        Conditions, and inner loops without iterations, may leave nothing to compute. The extent is then 0, on which
        loops and their splits rely. A read at 2*x over no values of x would otherwise have an extent of -1.
        """
        extent = simplify(side.high - side.low + 1, self._context.facts)
        if self._context.never_negative(extent):
            return side
        return Interval(side.low, maximum(side.high, side.low - 1))
