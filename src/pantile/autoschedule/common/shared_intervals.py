"""Intervals that many stages have in common: equal indices over the same ranges are evaluated once.

    two hundred filters that read img[y - 1, x] of a tile  ->  one interval along y, the same object for all

Intervals are compared by identity, so equal ones are made only once here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any, TypeVar

import numpy as np

from ...analysis.interval import Interval, IntervalProgram, Scope, values_of
from ...analysis.regions import Box
from ...dataclass import cached_property, dataclass
from ...expr.nodes import Const, Expr, Op, Var
from ...expr.types import INDEX
from ...expr.visit import key, loaded, names

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class IntervalEnds:
    """Indices along one dim of a buffer, among which are the least and the greatest."""

    indices: tuple[Expr, ...]

    @cached_property
    def key(self) -> bytes:
        return b"".join(map(key, self.indices))

    @cached_property
    def depends_on(self) -> tuple[str, ...]:
        """The names in a scope that the indices depend on."""
        own = {name for e in self.indices for name in (*names(e), *map(values_of, loaded(e)))}
        return tuple(sorted(own))

    @cached_property
    def steps(self) -> tuple[str, int, int] | None:
        """The variable that all indices differ from by constants, with the least and the greatest difference; None if
        there is none."""
        steps = [_steps(e) for e in self.indices]
        known = [f for f in steps if f is not None]
        if len(known) < len(steps) or len({name for name, _ in known}) > 1:
            return None
        return known[0][0], min(n for _, n in known), max(n for _, n in known)

    def interval(self, scope: Scope) -> Interval:
        if self.steps is not None and (around := scope.get(self.steps[0])) is not None and around.bounded:
            return Interval(around.low + self.steps[1], around.high + self.steps[2])
        return reduce(Interval.hull, (e.interval(scope) for e in self._each))

    @cached_property
    def _each(self) -> list[IntervalProgram]:
        return list(map(IntervalProgram, self.indices))


def _steps(e: Expr) -> tuple[str, int] | None:
    """The variable x and the offset n of an index x + n or x - n."""
    if isinstance(e, Var):
        return e.name, 0
    if isinstance(e, Op) and e.op in ("add", "sub") and e.dtype is INDEX:
        x, n = e.args
        if isinstance(x, Var) and isinstance(n, Const):
            return x.name, int(n.value) if e.op == "add" else -int(n.value)
    return None


class SharedIntervals:
    """The intervals of one set of tiles, for all groups of stages whose cost is predicted with these tiles."""

    def __init__(self) -> None:
        # Each entry keeps its operands alive: ids are those of live objects.
        self._memo: dict[object, tuple[Any, tuple[Interval | None, ...]]] = {}

    def tile(self, loop: str, find: Callable[[], Interval]) -> Interval:
        """The tiles along a loop of their output."""
        return self._once(("tile", loop), (), find)

    def counted(self, box: Box, count: Callable[[Box], Any]) -> Any:
        """The count of a box, memoized."""
        return self._once(("counted", *map(id, box)), box, lambda: count(box))

    def points(self, box: Box) -> Any:
        """The number of points of a box, in each tile."""
        return self._once(("points", *map(id, box)), box, lambda: prod(map(self.extent, box)))

    def extent(self, r: Interval) -> Any:
        """The number of values of a range."""
        return self._once(("extent", id(r)), (r,), lambda: np.maximum(r.high - r.low + 1, 0))

    def index(self, ends: IntervalEnds, scope: Scope) -> Interval:
        """The range of the values of indices."""
        ranges = tuple([scope.get(name) for name in ends.depends_on])
        name = (ends.key, *map(id, ranges))
        entry = self._memo.get(name)
        if entry is None:
            entry = self._memo[name] = ends.interval(scope), ranges
        result: Interval = entry[0]
        return result

    def moved(self, r: Interval, fewest: int, most: int) -> Interval:
        """The values that are `fewest` to `most` steps from a range whose ends are both known."""
        return self._once(("moved", id(r), fewest, most), (r,), lambda: Interval(r.low + fewest, r.high + most))

    def hull(self, a: Box, b: Box) -> Box:
        """The smallest box that holds both."""
        return tuple([self._hull(x, y) for x, y in zip(a, b, strict=True)])

    def _hull(self, a: Interval, b: Interval) -> Interval:
        return a if a is b else self._once(("hull", id(a), id(b)), (a, b), lambda: a.hull(b))

    def within(self, box: Box, limits: Box) -> Box:
        """The part of a box that is inside limits, which are numbers."""
        return tuple([self._meet(a, b) for a, b in zip(box, limits, strict=True)])

    def _meet(self, a: Interval, limit: Interval) -> Interval:
        name = ("within", id(a), limit.low, limit.high)
        entry = self._memo.get(name)
        if entry is None:
            entry = self._memo[name] = _intersection(a, limit), (a,)
        result: Interval = entry[0]
        return result

    def last(self, r: Interval, count: int) -> Interval:
        """The last `count` values of a range."""
        return self._once(("last", id(r), count), (r,), lambda: Interval(np.maximum(r.low, r.high - count + 1), r.high))

    def _once(self, name: object, operands: tuple[Interval | None, ...], find: Callable[[], T]) -> T:
        entry = self._memo.get(name)
        if entry is None:
            entry = self._memo[name] = find(), operands
        result: T = entry[0]
        return result


def _intersection(a: Interval, limit: Interval) -> Interval:
    """`Interval.meet` with numbers, in one step for the ends of many tiles."""
    if type(a.low) is type(a.high) is np.ndarray and limit.bounded:
        return Interval(np.maximum(a.low, limit.low), np.minimum(a.high, limit.high))
    return a.meet(limit)
