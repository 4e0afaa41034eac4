"""Slide: a stage stored outside of the loop that computes it need not recompute what earlier iterations have computed.

before:  for y in 0..h:                        after:   for y in 0 - 2..h:
             produce f over y-1 .. y+1                      produce f over y+1 .. y+1
             out[y] = f[y-1] + f[y] + f[y+1]                if y >= 0: out[y] = f[y-1] + f[y] + f[y+1]

The loop starts early enough that every row is computed exactly once, with the same number of rows in each iteration and
no special first iteration (Halide computes the whole window in the first one instead). At most `window` rows are live
at a time; `fold_storage` makes the buffer circular with that number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial, reduce
from math import ceil

from ...analysis.interval import Interval, LazyInterval, interval
from ...analysis.regions import Box
from ...dataclass import dataclass
from ...expr.build import expr, maximum, minimum
from ...expr.linear import Facts, linear, simplify
from ...expr.nodes import Const, Expr, Op, Var
from ...expr.types import INDEX
from ...expr.visit import depends, substitute
from ...graph.nodes import Stage
from ...ir.nodes import Stmt
from ..footprint import LoopRanges, read_by
from .early import OpenLoop

# The most iterations by which a loop may start early if their number is not constant. More would cost more than they
# save.
_MOST_EARLY = 4096


@dataclass
class Sliding:
    """A stage that slides: the box that is still to be computed, the number of live rows, and how early it must start.

    In the dims in `swept`, everything that the loops inside of `loop` have covered stays live until the next iteration
    of `loop`.
    """

    loop: OpenLoop
    dim: int
    box: Box
    window: int
    start: int
    never_negative: bool  # whether the extent along `dim` is not negative in any iteration
    swept: frozenset[int]


@dataclass(frozen=True)
class SlideRequest:
    """Stages that are computed together, the box of them that is required, and the statements after them."""

    members: list[Stage]
    box: Box
    rest: Stmt
    lets: Mapping[str, Expr]  # the names defined in between, in terms of loop variables
    ranges: LoopRanges
    facts: Facts
    is_computable: Callable[[int], bool]  # whether the stages can be computed at any position along a dim


def slide(request: SlideRequest, between: list[OpenLoop]) -> Sliding | None:
    """Decide how the stages slide along one of the loops between their storage and their computation; None if they do
    not.

    The innermost loop whose iterations overlap is chosen. Loops inside of it may move the other dims, since all of
    their iterations have run before its next one.
    """
    for depth in range(len(between) - 1, -1, -1):
        sliding = _slide_along(request, between[depth], between[depth + 1 :])
        if sliding is not None:
            return sliding
    return None


def _slide_along(request: SlideRequest, loop: OpenLoop, inner: list[OpenLoop]) -> Sliding | None:
    v, members, box, facts = loop.var, request.members, request.box, request.facts
    moving = [k for k, side in enumerate(box) if _moves(side, [loop])]
    if not loop.is_in_order or loop.parts or len(moving) != 1 or _moves(box[moving[0]], inner):
        return None
    k = moving[0]
    low, high = _late(box[k].low, v), box[k].high
    unclipped = _unclipped(high, v)
    rate, low_rate = _rate(unclipped, v), _rate(_unclipped(low, v), v)
    window = _window(low, high, v, facts)
    if rate is None or low_rate is None or rate == 0 or window is None or _updates_along(members, k):
        return None
    before = substitute(high, {v.name: v - 1})
    advance = simplify(unclipped - substitute(unclipped, {v.name: v - 1}), facts)
    if isinstance(advance, Const) and int(advance.value) >= window:
        return None
    rest_start = loop.start(request.rest)
    iterations = {v.name: Interval(loop.first - rest_start, loop.last)}
    scope = iterations | {
        name: LazyInterval(partial(interval, value, iterations)) for name, value in request.lets.items()
    }
    reads = (read_by(request.rest, m.buffers, scope, request.ranges, m.name) for m in members)
    lows = [b[k].low for b in reads if b is not None]
    first = simplify(reduce(minimum, lows[1:], expr(lows[0], INDEX)), facts)
    gap = simplify(substitute(unclipped, {v.name: loop.first}) - first + 1, facts)  # rows of the first iteration
    plan = _start(gap, advance, rate, facts, lambda: request.is_computable(k))
    if plan is None:
        return None
    start, exact = plan
    begins = substitute(first, {loop.first.name: loop.low})
    if start == 0:  # a loop that does not start early does not define its early start
        first = begins
    fresh = simplify(before + 1, facts)
    sides = [Interval(fresh if exact else maximum(fresh, first), high) if j == k else s for j, s in enumerate(box)]
    # The number of rows is constant, except that the first iteration, which begins at `first`, and the last may have
    # fewer.
    even = isinstance(gap, Const) and isinstance(advance, Const) and int(gap.value) >= 0
    never_negative = even and facts.ge(_at_the_end(high, v), begins - 1)
    swept = frozenset(j for j, side in enumerate(box) if _moves(side, inner))
    return Sliding(loop, k, tuple(sides), max(window, _most_at_once(unclipped, v)), start, never_negative, swept)


def _moves(side: Interval, loops: list[OpenLoop]) -> bool:
    names = [n for loop in loops for n in (loop.var.name, *loop.parts)]
    return depends(side.low, names) or depends(side.high, names)


def _start(
    gap: Expr, advance: Expr, rate: Fraction, facts: Facts, is_computable: Callable[[], bool]
) -> tuple[int, bool] | None:
    """The number of iterations by which to start early so that `gap` rows exist after iteration 0, and whether this is
    exact.

    It is exact if the first iteration may also compute all of its rows, because they are required or because the stage
    can be computed anywhere.
    """
    if isinstance(gap, Const) and isinstance(advance, Const):
        iterations, left = divmod(int(gap.value), int(advance.value))
        exact = iterations >= 1 if left == 0 else iterations >= 0 and is_computable()
        return (iterations - (left == 0), True) if exact else (max(iterations, 0), False)
    most = facts.upper(gap)
    start = None if most is None else max(ceil((most + 1) / rate), 0)
    return None if start is None or start > _MOST_EARLY else (start, False)


def _updates_along(members: list[Stage], k: int) -> bool:
    """Whether an update runs along the dim itself (a scan or a scatter), so that its rows depend on each other."""
    indices = ((m.dims[k], d.indices[k]) for m in members for d in m.updates)
    return any(not (isinstance(i, Var) and i.name == dim) for dim, i in indices)


def _late(low: Expr, v: Var) -> Expr:
    """The first live row once all readers have started: `a` if `low` is max(a, b) with b invariant in `v`.

    It is no later than `low`, so windows counted from it are large enough.
    """
    return _replaced("max", low, v, lambda moving, _: moving)


def _unclipped(e: Expr, v: Var) -> Expr:
    """`e` without the clamp that keeps a partial last tile inside of its domain: `a` in place of min(a, b) with b
    invariant in `v`.

    Neither expression ever decreases. They are equal until b is reached, which is not before the first live row.
    """
    return _replaced("min", e, v, lambda moving, _: _unclipped(moving, v))


def _at_the_end(e: Expr, v: Var) -> Expr:
    """`e` where the last tile ends: `b` in place of min(a, b) with b invariant in `v`."""
    return _replaced("min", e, v, lambda _, end: end)


def _replaced(op: str, e: Expr, v: Var, chosen: Callable[[Expr, Expr], Expr]) -> Expr:
    """`e` with each positive term op(a, b), in which only a depends on `v`, replaced by chosen(a, b)."""
    result = e
    for atom, c in linear(e).terms.values():
        if c > 0 and isinstance(atom, Op) and atom.op == op:
            moving, others = [[a for a in atom.args if depends(a, [v.name]) is m] for m in (True, False)]
            if len(moving) == len(others) == 1:
                result = result + (chosen(moving[0], others[0]) - atom) * c
    return result


def _window(low: Expr, high: Expr, v: Var, facts: Facts) -> int | None:
    """The maximum number of live rows. min(a, c) - min(b, d) is at most the maximum of a - b and c - d."""
    ends = ((low, high), (_unclipped(low, v), _unclipped(high, v)), (_at_the_end(low, v), _at_the_end(high, v)))
    whole, *parts = (facts.upper(simplify(b - a + 1, facts)) for a, b in ends)
    if whole is not None:
        return whole
    return max((p for p in parts if p is not None), default=None) if None not in parts else None


def _most_at_once(e: Expr, v: Var) -> int:
    """The largest increase of an expression in one step of `v`. `_rate` has shown that it never decreases.

    It may exceed the number of live rows: v//2*2 is one row, and moves by two. The rows in between are computed as
    well, and updates that follow need memory for each of them.
    """
    total = 0
    for atom, c in linear(e).terms.values():
        if isinstance(atom, Var) and atom.name == v.name:
            total += c
        elif isinstance(atom, Op) and isinstance(atom.args[1], Const) and depends(atom, [v.name]):
            total += c * ceil(Fraction(_most_at_once(atom.args[0], v), int(atom.args[1].value)))
    return total


def _rate(e: Expr, v: Var) -> Fraction | None:
    """The average increase of `e` per step of `v` if it never decreases, else None."""
    total = Fraction(0)
    for atom, c in linear(e).terms.values():
        if isinstance(atom, Var) and atom.name == v.name:
            total += c
        elif depends(atom, [v.name]):
            if not (isinstance(atom, Op) and atom.op == "floordiv" and isinstance(atom.args[1], Const) and c > 0):
                return None
            inner = _rate(atom.args[0], v)
            if inner is None or int(atom.args[1].value) <= 0:
                return None
            total += c * inner / int(atom.args[1].value)
    return total if total >= 0 else None


class LiveRows:
    """Collects notes on live rows, by buffer and dim, while the loop nest is built."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._slid: dict[str, dict[int, int]] = {}
        self._whole: dict[str, dict[int, int | None]] = {}  # extents computed without sliding
        self._in_lanes: set[tuple[str, int]] = set()

    def computed(self, members: list[Stage], box: Box, sliding: Sliding | None) -> None:
        """Note that the stages compute a box inside of the loop that stores them.

        A part that does not slide (a peeled tail) needs all of its rows. A part that slides along another dim needs all
        rows that it sweeps meanwhile.
        """
        for buffer in (b for m in members for b in m.buffers):
            if sliding is not None:
                slid = self._slid.setdefault(buffer, {})
                slid[sliding.dim] = max(sliding.window, slid.get(sliding.dim, 0))
            for k, side in enumerate(box):
                if sliding is None or k != sliding.dim:
                    swept = sliding is not None and k in sliding.swept
                    needed = None if swept else self.facts.upper(simplify(side.high - side.low + 1, self.facts))
                    whole = self._whole.setdefault(buffer, {})
                    known = whole.get(k, 0)
                    whole[k] = None if needed is None or known is None else max(known, needed)

    def in_lanes(self, stage: Stage, k: int) -> None:
        """Note that vectors of the stage are stored along dim k. A circular buffer may be too short for a vector."""
        self._in_lanes.update((buffer, k) for buffer in stage.buffers)

    def folds(self) -> dict[str, dict[int, int]]:
        """For each buffer, the circular extent of each dim along which its stage slides."""
        result: dict[str, dict[int, int]] = {}
        for buffer, dims in self._slid.items():
            for k, window in dims.items():
                whole = self._whole.get(buffer, {}).get(k, 0)
                if whole is not None and (buffer, k) not in self._in_lanes:
                    result.setdefault(buffer, {})[k] = max(window, whole)
        return result
