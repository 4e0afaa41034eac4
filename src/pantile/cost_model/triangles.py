"""Definitions whose condition bounds their loops: the fraction of their points that runs, the blocks that the condition
cuts through, and how long tasks take.

    for p in parallel 0..2:                            half of the n*n points, and
        for i in 0..n:                                 the first task has three
            for j in p*n/2..min((p + 1)*n/2, i + 1)    quarters of them
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heapreplace
from math import floor, gcd
from typing import Any

import numpy as np

from ..dataclass import cached_property, dataclass
from ..errors import InternalError
from ..expr.linear import linear
from ..expr.nodes import Number, Op, Var

TRIED = 16  # values tried of each variable
OF_A_TASK = 4  # values tried of the variable that is shared among tasks
_Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Slope:
    """The condition constant + the sum of times * variable > 0."""

    constant: float
    times: Mapping[str, int]

    def reach(self, box: Mapping[str, int]) -> float:
        """The greatest distance from 0 in the middle of a box of these extents that the condition cuts through. Boxes
        lie side by side, so that a diagonal cuts only through the squares along it."""
        step = gcd(*(n * box.get(v, 1) for v, n in self.times.items()))
        below, above = (sum(max(0, way * n) * (box.get(v, 1) - 1) for v, n in self.times.items()) for way in (-1, 1))
        return step * (floor((below - self.constant) / step) - floor((-above - self.constant) / step)) / 2


@dataclass(frozen=True, eq=False)
class Triangle:
    """The points at which all of some linear conditions hold. `ranges` has the first value of each loop variable, and
    the number of its values; other variables are `scalars`."""

    conditions: Sequence[Op]
    ranges: Mapping[str, tuple[int, int]]
    scalars: Mapping[str, Number]

    @cached_property
    def slopes(self) -> list[Slope]:
        """The conditions as slopes of the loop variables."""
        return [self._slope(c) for c in self.conditions]

    def part(self) -> float:
        """The fraction of all points at which the conditions hold."""
        return float(self._fraction({}).mean())

    def cut(self, box: Mapping[str, int], names: Collection[str]) -> float:
        """The fraction of boxes of these extents that are cut by a condition on some of these variables."""
        reach = [s.reach(box) if not s.times.keys().isdisjoint(names) else 0.0 for s in self.slopes]
        some, every = (self._fraction({}, [way * r for r in reach]) for way in (1, -1))
        return float((some - every).mean())

    def tasks(self, variable: str, count: int, each: int) -> list[float]:
        """The fraction of the work that each of `count` tasks does. Each task has `each` consecutive values of a
        variable."""
        first, n = self.ranges[variable]
        at = (np.arange(count * OF_A_TASK) + 0.5) * each / OF_A_TASK
        held = self._fraction({variable: first + np.floor(at)}).reshape(len(at), -1).mean(axis=1) * (at < n)
        of_each = held.reshape(count, -1).sum(axis=1)
        parts: list[float] = (of_each / max(1e-9, of_each.sum())).tolist()
        return parts

    def decides(self, variable: str) -> bool:
        """Whether some condition depends on a variable."""
        return any(variable in s.times for s in self.slopes)

    def _slope(self, c: Op) -> Slope:
        low, high = map(linear, c.args if c.op in ("lt", "le") else c.args[::-1])
        constant = high.constant - low.constant + (-0.5 if c.op in ("lt", "gt") else 0.5)
        times: dict[str, int] = {}
        for form, sign in ((high, 1), (low, -1)):
            for atom, n in form.terms.values():
                if not isinstance(atom, Var):
                    raise InternalError(f"the condition {c} bounds a loop and is not linear in variables")
                if atom.name in self.ranges:
                    times[atom.name] = times.get(atom.name, 0) + sign * n
                else:
                    constant += sign * n * self.scalars[atom.name]
        return Slope(constant, {v: n for v, n in times.items() if n})

    def _fraction(self, tried: Mapping[str, _Values], add: Sequence[float] = ()) -> _Values:
        """The fraction of the longest loop in which the conditions hold, for values of all other variables, one axis
        for each, those with given values first. `add` is added to each condition."""
        lengths = {v: n for v, (_, n) in self.ranges.items() if v not in tried and self.decides(v)}
        along = max(lengths, key=lengths.__getitem__, default=None)
        values = dict(tried) | {v: _middles(*self.ranges[v]) for v in lengths if v != along}
        grid = dict(zip(values, np.meshgrid(*values.values(), indexing="ij", sparse=True), strict=True))
        first, n = (0, 1) if along is None else self.ranges[along]
        low, high = (np.full([len(of) for of in values.values()], end) for end in (first - 0.5, first + n - 0.5))
        for s, more in zip(self.slopes, add or [0.0] * len(self.slopes), strict=True):
            rest = s.constant + more + sum(k * grid[v] for v, k in s.times.items() if v != along)
            step = s.times.get(along, 0) if along is not None else 0
            if step > 0:
                low = np.maximum(low, -rest / step)
            elif step < 0:
                high = np.minimum(high, -rest / step)
            else:
                high = np.where(rest > 0, high, low)
        held: _Values = np.maximum(high - low, 0.0) / n
        return held


def makespan(tasks: Sequence[float], cores: int) -> float:
    """The time at which the last of some tasks ends, if cores run them one after the other."""
    busy = [0.0] * cores
    for seconds in tasks:
        heapreplace(busy, busy[0] + seconds)
    return max(busy)


def _middles(first: int, n: int) -> _Values:
    """Evenly spaced values of a variable."""
    count = min(n, TRIED)
    return first + np.floor((np.arange(count) + 0.5) * n / count)
