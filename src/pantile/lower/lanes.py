"""Lanes of vector expressions: their values if the compiler knows them, and vectors of only some of them.

A select whose condition is known for each lane, such as x % 2 == 0, need not compute both sides for all lanes:

before:  select(ramp(8, 1, 8) % 2 == 0, shuffle(f[ramp(4, 1, 4)], [0, 0, 1, 1, ...]), shuffle(g[ramp(4, 1, 4)], ...))
after:   shuffle(f[ramp(4, 1, 4)], g[ramp(4, 1, 4)], [0, 4, 1, 5, 2, 6, 3, 7])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..dataclass import memoized
from ..expr.build import broadcast, ramp
from ..expr.linear import simplify
from ..expr.nodes import Broadcast, Const, Expr, Load, Op, Ramp, Shuffle, const
from ..expr.types import INDEX
from ..expr.visit import children, loaded, names, rebuild, rebuild_op, same, walk

Order = tuple[int, ...]


def first_lane(index: Expr) -> Expr:
    """The index of the first lane of a ramp, or the single index of all lanes."""
    return index.base if isinstance(index, Ramp) else index


def constant_stride(index: Expr) -> int | None:
    """The stride of a ramp, if it is constant."""
    return int(index.stride.value) if isinstance(index, Ramp) and isinstance(index.stride, Const) else None


def known_lanes(e: Expr) -> tuple[Const, ...] | None:
    """One constant per lane, if all of them are known."""
    if isinstance(e, Const):
        return (Const(e.dtype, 1, e.value),) * e.lanes
    if isinstance(e, Ramp) and isinstance(e.base, Const) and isinstance(e.stride, Const):
        return tuple(const(int(e.base.value) + k * int(e.stride.value), e.dtype) for k in range(e.lanes))
    if not isinstance(e, (Op, Shuffle)) or names(e) or loaded(e):
        return None
    parts = [known_lanes(c) for c in children(e)]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    if isinstance(e, Shuffle):
        joined = [lane for p in known for lane in p]
        return tuple(joined[i] for i in e.order)
    results = [rebuild_op(e.op, lane) for lane in zip(*known, strict=True)]
    constants = tuple(r for r in results if isinstance(r, Const))
    return constants if len(constants) == e.lanes else None


def split_select(e: Op) -> Expr | None:
    """A select between vectors that repeat lanes, as a shuffle of only the chosen lanes, or None."""
    condition, then, otherwise = e.args
    chosen = known_lanes(condition)
    if chosen is None or not (_repeats_lanes(then) or _repeats_lanes(otherwise)):
        return None
    sides = [tuple(lane for lane, c in enumerate(chosen) if bool(c.value) is side) for side in (True, False)]
    if min(map(len, sides)) < 2:
        return None
    place = {lane: k for k, lane in enumerate(sides[0] + sides[1])}
    parts = (lanes_of(then, sides[0]), lanes_of(otherwise, sides[1]))
    return Shuffle(e.dtype, e.lanes, parts, tuple(place[lane] for lane in range(e.lanes)))


def _repeats_lanes(e: Expr) -> bool:
    return any(isinstance(part, Shuffle) and len(set(part.order)) < part.lanes for part in walk(e))


def lanes_of(e: Expr, order: Order) -> Expr:
    """The lanes `order` (two or more) of a vector, computed without the others."""
    return _Choice(order).visit(e)


class _Choice:
    def __init__(self, order: Order) -> None:
        self.order = order

    @memoized
    def visit(self, e: Expr) -> Expr:
        lanes = len(self.order)
        if e.lanes == 1:
            return e
        if isinstance(e, Const):
            return Const(e.dtype, lanes, e.value)
        if isinstance(e, Broadcast):
            return broadcast(e.value, lanes)
        if isinstance(e, Ramp):
            return chosen_ramp(e, self.order)
        if isinstance(e, Shuffle):
            return chosen_shuffle(e, self.order)
        if isinstance(e, Load) and not any(isinstance(i, Shuffle) for i in e.indices):  # dense loads stay whole
            return Shuffle(e.dtype, lanes, (e,), self.order)
        old = children(e)
        return rebuild(e, tuple([self.visit(c) for c in old])) if old else Shuffle(e.dtype, lanes, (e,), self.order)


def chosen_ramp(e: Ramp, order: Order) -> Expr:
    """The chosen lanes of a ramp: a ramp if they are evenly spaced, otherwise a shuffle."""
    step = order[1] - order[0]
    if all(b - a == step for a, b in pairwise(order)):
        return ramp(e.base + e.stride * order[0], e.stride * step, len(order))
    return Shuffle(e.dtype, len(order), (e,), order)


def chosen_shuffle(e: Shuffle, order: Order) -> Expr:
    """The chosen lanes of a shuffle; a part of one vector if they are consecutive in it."""
    places = tuple(e.order[i] for i in order)
    source = e.vectors[0]
    if len(e.vectors) == 1 and places == tuple(range(places[0], places[0] + len(places))):
        if len(places) == source.lanes:
            return source
        if isinstance(source, Ramp):
            return chosen_ramp(source, places)
        if isinstance(source, Load) and source.mask is None and _is_dense(source):
            return rebuild(source, tuple(chosen_ramp(i, places) if isinstance(i, Ramp) else i for i in source.indices))
    return Shuffle(e.dtype, len(order), e.vectors, places)


def _is_dense(e: Load) -> bool:
    return all(i.lanes == 1 or isinstance(i, Ramp) for i in e.indices)


def joined_loads(parts: Sequence[Expr]) -> Expr | None:
    """One load of elements that are adjacent along one dim of a buffer, or None if they are not."""
    loads = [p for p in parts if isinstance(p, Load) and p.buffer == getattr(parts[0], "buffer", None)]
    if len(loads) < len(parts) or any(e.mask is not None for e in loads):
        return None
    indices = list[Expr]()
    for along in zip(*(e.indices for e in loads), strict=True):
        is_next = all(same(i, simplify(along[0] + n)) for n, i in enumerate(along))
        if not is_next and not all(same(i, along[0]) for i in along):
            return None
        indices.append(Ramp(INDEX, len(parts), along[0], const(1, INDEX)) if is_next else along[0])
    ramps = sum(isinstance(i, Ramp) for i in indices)
    return Load(loads[0].dtype, len(parts), loads[0].buffer, tuple(indices)) if ramps == 1 else None
