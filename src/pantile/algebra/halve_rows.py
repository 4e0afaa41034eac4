"""A weighted sum over many rows of pixels becomes sums over parts of the rows, of three products for every four.

before:  out[y, x] = 0
         out[y, x] = out[y, x] + img[y + r.y, x + r.x]*k[r.y, r.x]           over r.y in 0 .. 31, r.x in 0 .. 31

after:   out_rows[plane, group, x] = rows of img, and differences of such
         out_weights[plane, row, r_x] = rows of k, and sums of such
         out_planes[plane, group, x] = 0
         out_planes[plane, group, x] = out_planes[plane, group, x]
             + out_rows[plane, group + r.y, x + r.x]*out_weights[plane, r.y, r.x]    over r.y in 0 .. 4, r.x in 0 .. 31
         out[y, x] = out_planes[.., y//8, x] + ... + out_planes[26, y//8, x]         8 of the 27 planes

This is Winograd's fast FIR, nested. Two rows of the sum, with k in pairs of rows a, b (all that follows is summed over
pairs and columns), have a sum in common:

         out[2*m]     = img[2*m]*a + img[2*m + 1]*b     = (img[2*m] - img[2*m + 1])*a     + img[2*m + 1]*(a + b)
         out[2*m + 1] = img[2*m + 1]*a + img[2*m + 2]*b = (img[2*m + 2] - img[2*m + 1])*b + img[2*m + 1]*(a + b)

Each of the three is a sum over half of the rows, which is halved again. A plane is one of the three for each halving:
the digits of its number.

Differences must neither overflow to infinity nor propagate NaN: the pixels are computed from integers of a few bits, so
that a difference is exact, too. The error of a sum is bounded by terms*epsilon*(largest pixel)*(sum of |weights|). A
plane with d differences has products up to 2**d times as large, 3**n in all planes of a value together if there are n
halvings, and each sums up a part of 2**n of the terms: the bound becomes 1.5**n times as large.

Groups are whole, and weights are padded with zeros, so that some rows beyond the required region are read: the pixels
must be those of a boundary condition, or of another stage that is computable there (`overcompute`).
"""

from __future__ import annotations

import math

from ..analysis.interval import interval
from ..analysis.windows import ShiftedTerm, without_loop
from ..expr.linear import linear
from ..expr.nodes import Cast, Const, Expr, Load, Op, Var, const, coordinate
from ..expr.types import FLOAT32, FLOAT64, INDEX
from ..expr.visit import names, substitute, walk
from ..graph.nodes import ReductionDim, Stage
from ..schedule.updates import accumulation
from .change import Change, RewriteContext, extent, low, only_update
from .halved_stages import HalvedWindow, RowWindow
from .weighted_sums import factors

MOST_HALVINGS = 3  # 27 planes, all of which are written out where they are computed
FEWEST_ROWS = 5
SMALL = 16  # the most bits of the integers that pixels are computed from
LARGEST = 2.0**64  # the largest number that is computed from them
# Products that take as long as a value of a plane of pixels and one of a plane of sums, stored and loaded again.
STORED_PLANE = 36
WORTH = 0.85  # of the cost of the sum as written: smaller savings are not worth the memory and the code
_TIMES = ("", "once", "twice", "three times")
_FINITE = frozenset({"add", "sub", "mul", "div", "neg", "abs", "min", "max"})  # of finite numbers, where they fit


def halve_rows(stage: Stage, context: RewriteContext) -> Change | None:
    """The stages of pixels, weights and products, and the sum of some; None if that is not cheaper, or not accurate."""
    window = _window(stage, context)
    if window is None:
        return None
    costs = [_cost(window, n) for n in range(MOST_HALVINGS + 1)]
    best = costs.index(min(costs))
    if costs[best] >= WORTH * costs[0]:
        return None
    terms = " x ".join(str(extent(r)) for r in stage.updates[0].domain)
    what = f"a sum of {terms} products, its rows halved {_TIMES[best]}"
    return Change(HalvedWindow(window, best, context).stages(), what, round(costs[0]), round(costs[best]))


def _cost(window: RowWindow, halvings: int) -> float:
    """The cost per value: products, and the planes in memory. Without halvings, pixels are converted and stored."""
    rows = -(-extent(window.rows) // (1 << halvings))
    planes = math.pow(1.5, halvings)
    return planes * (rows * math.prod(map(extent, window.others)) + STORED_PLANE)


# ---- what can be halved


def _window(stage: Stage, context: RewriteContext) -> RowWindow | None:
    update = only_update(stage)
    if update is None or context.strict or stage.dtypes[0] not in (FLOAT32, FLOAT64):
        return None
    sums = accumulation(stage, update)
    if sums is None or sums[0].op != "add" or not any(extent(r) >= FEWEST_ROWS for r in update.domain):
        return None
    window = _moving(stage, update.domain, _forwards(sums[0].term, update.domain, stage))
    return window if window is not None and context.reaches_beyond(window.pixel, window.dim) else None


def _forwards(term: Expr, loops: tuple[ReductionDim, ...], stage: Stage) -> Expr:
    """The term with loops that run backwards over the pixels, as those of a convolution do, reversed."""
    places = [linear(i) for e in walk(term) if isinstance(e, Load) for i in e.indices if names(i) & {*stage.dims}]
    backwards = [r for r in loops if any(p.coefficient(r.name) == -1 for p in places)]
    return substitute(term, {r.name: const(2 * low(r) + extent(r) - 1, INDEX) - coordinate(r.name) for r in backwards})


def _moving(stage: Stage, loops: tuple[ReductionDim, ...], term: Expr) -> RowWindow | None:
    moving = _moving_dims(term, stage, {r.name for r in loops})
    weight, pixel = factors(term, lambda e: names(e).isdisjoint(moving))
    if pixel is None or weight is None or not _is_small(pixel):
        return None
    moved: dict[str, tuple[ShiftedTerm, ReductionDim]] = {}
    for r in loops:
        step = without_loop(pixel, r.name, stage.dims, {other.name for other in loops} - {r.name})
        if step is None or step.dim in moved:
            return None
        pixel, moved[step.dim] = step.term, (step, r)
    dim = min(moved, key=stage.dims.index)
    step, rows = moved[dim]
    is_row = isinstance(step.base, Var) and dim != stage.dims[-1] and extent(rows) >= FEWEST_ROWS
    return RowWindow(stage, rows, pixel, moved, dim, weight) if is_row and rows.name in names(weight) else None


def _moving_dims(term: Expr, stage: Stage, loops: set[str]) -> frozenset[str]:
    """The dims along which a window moves: some index depends on both the dim and a loop."""
    indices = [names(i) for e in walk(term) if isinstance(e, Load) for i in e.indices]
    return frozenset(d for d in stage.dims if any(d in index and index & loops for index in indices))


def _is_small(pixel: Expr) -> bool:
    """Whether a pixel is computed from small integers, so that it and differences of such are finite."""
    pending = [pixel]
    while pending:
        e = pending.pop()
        if e.dtype.is_int and e.dtype.bits <= SMALL:
            continue
        if not (isinstance(e, (Cast, Const)) or isinstance(e, Op) and e.op in _FINITE):
            return False
        ends = interval(e, {})
        if not all(isinstance(end, (int, float)) and abs(end) <= LARGEST for end in (ends.low, ends.high)):
            return False
        pending += e.operands
    return True
