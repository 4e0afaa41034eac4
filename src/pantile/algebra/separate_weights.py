"""A window whose weights are a column times a row becomes two weighted sums, written out.

before:  smooth[y, x] = 0
         smooth[y, x] = smooth[y, x] + img[y + r.y, x + r.x]*gauss[r.y, r.x]    over r.y in 0 .. 5, r.x in 0 .. 5

after:   smooth_rows[y, x] = img[y, x]*0.06 + img[y, x + 1]*0.24 + ... + img[y, x + 4]*0.06
         smooth[y, x] = 0 + smooth_rows[y, x]*0.06 + ... + smooth_rows[y + 4, x]*0.06

The weights are elements of tables, which are known; those of an input are not.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.point import value_at
from ..analysis.windows import ShiftedTerm, without_loop
from ..dataclass import dataclass
from ..expr.build import binary
from ..expr.nodes import Const, Expr, Load, Number, const
from ..expr.types import INDEX
from ..expr.visit import loaded, names, substitute, walk_loads
from ..graph.nodes import ReductionDim, Stage
from ..schedule.updates import accumulation
from .change import STORED, Change, RewriteContext, extent, low, only_update
from .weighted_sums import MOST_TAPS, SeparatedSum, cost, factors, rank_one, unit


def separate_weights(stage: Stage, context: RewriteContext) -> Change | None:
    """The stage of the rows and the stage of the columns; None if that is not cheaper, or not equivalent."""
    kernel = _weighted_window(stage, context)
    if kernel is None:
        return None
    down, across = kernel.loops
    for first, other in ((across, down), (down, across)):
        moved = without_loop(kernel.value, other.name, stage.dims, {first.name})
        if moved is not None:
            return _change(stage, kernel, first, other, moved, context)
    return None


@dataclass(frozen=True, eq=False)
class _WeightedWindow:
    """A weighted sum over two loops: sum of weights[i][k] * value."""

    loops: tuple[ReductionDim, ReductionDim]
    value: Expr
    weights: list[list[Number]]


def _weighted_window(stage: Stage, context: RewriteContext) -> _WeightedWindow | None:
    update = only_update(stage)
    if update is None or len(update.domain) != 2:
        return None
    if any(not 1 < len(_values(r)) <= MOST_TAPS for r in update.domain):
        return None
    sums = accumulation(stage, update)
    if sums is None or sums[0].op != "add" or (context.strict and not sums[0].is_exact):
        return None
    down, across = update.domain
    loops = {down.name, across.name}
    weight, value = factors(sums[0].term, lambda e: _is_weight(e, loops, context))
    if weight is None or value is None:
        return None
    weights = _evaluated(weight, down, across, context)
    return None if weights is None else _WeightedWindow((down, across), value, weights)


def _is_weight(e: Expr, loops: set[str], context: RewriteContext) -> bool:
    """Whether an expression depends on the loops and on constant tables alone."""
    return bool(names(e)) and names(e) <= loops and all(context.table(b) is not None for b in loaded(e))


def _evaluated(
    weight: Expr, down: ReductionDim, across: ReductionDim, context: RewriteContext
) -> list[list[Number]] | None:
    loads = list(walk_loads(weight))
    rows: list[list[Number]] = []
    for i in _values(down):
        rows.append([])
        for k in _values(across):
            point: dict[str | int, Number] = {down.name: i, across.name: k}
            for e in loads:
                element = _element(e, point, context)
                if element is None:
                    return None
                point[id(e)] = element
            value = value_at(weight, point)
            if value is None:
                return None
            rows[-1].append(value)
    return rows


def _element(e: Load, point: dict[str | int, Number], context: RewriteContext) -> Number | None:
    """The element of a table that a load reads at a point; None if it is not a number, or outside of the table."""
    table = context.table(e.buffer)
    place = [p for p in (value_at(i, point) for i in e.indices) if isinstance(p, int)]
    if table is None or table.dtype.kind not in "iuf" or e.dtype.kind == "bfloat" or len(place) < table.ndim:
        return None
    if not all(0 <= p < n for p, n in zip(place, table.shape, strict=True)):
        return None
    number: Number = table[tuple(place)].item()
    return number


def _change(
    stage: Stage,
    kernel: _WeightedWindow,
    first: ReductionDim,
    other: ReductionDim,
    moved: ShiftedTerm,
    context: RewriteContext,
) -> Change | None:
    is_transposed = first is kernel.loops[0]
    weights = [list(column) for column in zip(*kernel.weights, strict=True)] if is_transposed else kernel.weights
    factors = rank_one(weights, unit(stage.dtypes[0]))
    if factors is None:
        return None
    down, across = factors
    before = cost([w for row in weights for w in row], kernel.value)
    after = moved.scale * cost(across, moved.term) + 2 * sum(w != 0 for w in down)
    if after + STORED >= before:
        return None
    rows, total = SeparatedSum(
        context.fresh(stage.name, "rows"),
        stage,
        stage.dtypes[0],
        across,
        [substitute(moved.term, {first.name: const(k, INDEX)}) for k in _values(first)],
        down,
        moved.dim,
        [binary("add", moved.base, const(k, INDEX)) for k in _values(other)],
    ).stages()
    (start,) = stage.pure.values
    value = total if isinstance(start, Const) and start.value == 0 else binary("add", start, total)
    new = replace(stage, pure=replace(stage.pure, values=(value,)), updates=())
    what = f"a sum of {len(down)} x {len(across)} terms, its weights a column times a row"
    return Change((rows, new), what, before, after)


def _values(r: ReductionDim) -> range:
    return range(low(r), low(r) + extent(r))
