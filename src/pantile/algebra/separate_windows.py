"""A reduction over a window of several loops becomes a reduction over one loop, and one over the others of its results.

before:  box[y, x] = 0
         box[y, x] = box[y, x] + img[y + r.y, x + r.x]        over r.y in 0 .. 17, r.x in 0 .. 17

after:   box_rows[y, x] = 0
         box_rows[y, x] = box_rows[y, x] + img[y, x + r.x]    over r.x in 0 .. 17
         box[y, x] = 0
         box[y, x] = box[y, x] + box_rows[y + r.y, x]         over r.y in 0 .. 17

All terms have equal weights: sums, minima, maxima, any and all. Integers that fit are stored in 16 bits.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..analysis.windows import ShiftedTerm, without_loop
from ..dataclass import cached_property, dataclass
from ..expr.build import binary, cast
from ..expr.nodes import Expr, Load, coordinate, neutral
from ..expr.visit import names
from ..graph.nodes import Definition, ReductionDim, Stage
from ..schedule.updates import Accumulation, accumulation
from .change import STORED, Change, RewriteContext, extent, only_update, operations
from .weighted_sums import Range, as_type, integers, stored_type

_WORDS = {"add": "a sum", "or": "a disjunction", "and": "a conjunction", "max": "a maximum", "min": "a minimum"}


def separate_windows(stage: Stage, context: RewriteContext) -> Change | None:
    """The stage of one loop, and the stage over the others; None if that is not cheaper, or not equivalent."""
    window = _window(stage, context)
    if window is None:
        return None
    firsts = [r for r in window.loops if 1 < extent(r) < window.points]
    splits = [s for r in firsts if (s := _split(stage, window, r)) is not None]
    best = min(reversed(splits), key=lambda s: s.cost, default=None)  # the innermost loop if costs are equal
    before = _cost(window.points, window.term)
    return best.change(before, context) if best is not None and best.cost + STORED < before else None


@dataclass(frozen=True, eq=False)
class _UniformWindow:
    """One accumulation per point over loops with constant bounds."""

    sum: Accumulation
    loops: tuple[ReductionDim, ...]

    @property
    def term(self) -> Expr:
        return self.sum.term

    @property
    def points(self) -> int:
        return prod(map(extent, self.loops))


def _window(stage: Stage, context: RewriteContext) -> _UniformWindow | None:
    update = only_update(stage)
    if update is None or len(update.domain) < 2:
        return None
    sums = accumulation(stage, update)
    if sums is None:
        return None
    is_allowed = sums[0].op in _WORDS and (sums[0].is_exact or not context.strict)
    window = _UniformWindow(sums[0], update.domain)
    return window if is_allowed and all(extent(r) > 0 for r in update.domain) else None


@dataclass(frozen=True, eq=False)
class _WindowSplit:
    """A window split into the loop that is reduced first and the others, which were eliminated from the term."""

    stage: Stage
    window: _UniformWindow
    first: ReductionDim
    term: Expr
    moved: dict[str, tuple[ShiftedTerm, ReductionDim]]  # by dim

    @property
    def cost(self) -> int:
        """The cost of both stages per value of the second."""
        scale = prod(m.scale for m, _ in self.moved.values())
        others = self.window.points // extent(self.first)
        own = self.window.sum.dtype
        again = 2 if stored_type(own, self._values) is own else 3
        return scale * _cost(extent(self.first), self.term) + again * others

    def change(self, before: int, context: RewriteContext) -> Change:
        rows = self._rows(context.fresh(self.stage.name, "rows"))
        terms = " x ".join(str(extent(r)) for r in self.window.loops)
        what = f"{_WORDS[self.window.sum.op]} of {terms} terms, those of {self.first.name} first"
        return Change((rows, self._rest(rows)), what, before, self.cost)

    def _rows(self, name: str) -> Stage:
        dims = tuple(d for d in self.stage.dims if d in names(self.term))
        t, point = stored_type(self.window.sum.dtype, self._values), tuple(map(coordinate, dims))
        where = self.stage.where
        term, combine = cast(t, self.term), self.window.sum.op
        pure = Definition(point, (neutral(combine, t),), (), None, where)
        update = Definition(point, (binary(combine, Load(t, 1, name, point), term),), (self.first,), None, where)
        return Stage(name, dims, (t,), pure, (update,), where)

    def _rest(self, rows: Stage) -> Stage:
        (update,) = self.stage.updates
        others = tuple(r for r in self.window.loops if r is not self.first)
        read = Load(rows.dtypes[0], 1, rows.name, tuple(map(self._place, rows.dims)))
        own = Load(self.stage.dtypes[0], 1, self.stage.name, update.indices)
        value = binary(self.window.sum.op, own, as_type(own.dtype, read, self._values))
        return replace(self.stage, updates=(replace(update, values=(value,), domain=others),))

    def _place(self, dim: str) -> Expr:
        if dim not in self.moved:
            return coordinate(dim)
        moved, loop = self.moved[dim]
        return binary("add", moved.base, coordinate(loop.name))

    @cached_property
    def _values(self) -> Range | None:
        """The range of the integers that are stored, if they do not wrap."""
        term = integers(self.term) if self.window.sum.dtype.is_int else None
        if term is None or self.window.sum.op != "add":
            return term
        return extent(self.first) * min(term[0], 0), extent(self.first) * max(term[1], 0)


def _split(stage: Stage, window: _UniformWindow, first: ReductionDim) -> _WindowSplit | None:
    term, moved = window.term, dict[str, tuple[ShiftedTerm, ReductionDim]]()
    loops = {r.name for r in window.loops}
    for r in window.loops:
        if r is not first:
            step = without_loop(term, r.name, stage.dims, loops - {r.name})
            if step is None or step.dim in moved:
                return None
            term, moved[step.dim] = step.term, (step, r)
    return _WindowSplit(stage, window, first, term, moved)


def _cost(terms: int, term: Expr) -> int:
    return terms * (operations(term) + 1)
