"""How often branches are evaluated that depend on coordinates, such as the red pixels of every second row, or the one
channel that is brightness.

    select(y % 2 == 0, select(x % 2 == 0, a, b), c)   ->   a and b at a quarter of the points, c at half

Unrolled loops have copies for each outcome of such conditions, and so do lanes that read half as many elements.
Elsewhere, both branches are evaluated. The sample points are in the middle, as many as remainders have values: points
at edges are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import product
from math import lcm

from ..analysis.point import OrderedExpression
from ..analysis.work import evaluated
from ..expr.nodes import Const, Expr, Number, Op
from ..expr.visit import Key, key, loaded, names, walk

FEW = 4  # values of a variable, all of which are sampled
MOST_PERIOD, MOST_POINTS = 12, 64
Point = tuple[tuple[str, int], ...]  # the values of some variables, by their names


class Conditions:
    """Memoizes the values of conditions at points, for all expressions that share conditions."""

    def __init__(self, scalars: Mapping[str, Number]) -> None:
        self._scalars = scalars
        self._prepared: dict[Key, OrderedExpression] = {}
        self._known: dict[tuple[Key, Point], Number | None] = {}

    def value(self, condition: Expr, at: Point) -> Number | None:
        """The value of a condition at a point; None if it depends on anything else than the point and scalars."""
        question = (key(condition), at)
        if question not in self._known:
            if question[0] not in self._prepared:
                self._prepared[question[0]] = OrderedExpression(condition)
            point: dict[str | int, Number] = {**self._scalars, **dict(at)}  # type: ignore[dict-item]
            self._known[question] = self._prepared[question[0]].value(point)
        return self._known[question]


class Branches:
    """The sample points at which each node of some expressions is evaluated, as bits of a number."""

    def __init__(self, roots: list[Expr], extents: Mapping[str, int], known: Conditions) -> None:
        every = list(evaluated(roots))
        conditions = [e.args[0] for e in every if isinstance(e, Op) and e.op == "select" and not loaded(e.args[0])]
        self.variables = _sample_points(conditions, extents)
        self.points = list(product(*self.variables.values()))[:MOST_POINTS]
        self.whole = (1 << len(self.points)) - 1
        self._where: dict[int, int] = {}
        if len(self.points) > 1:
            for decided, where in self._ways(conditions, known).items():
                for e in evaluated(roots, dict(zip(map(id, conditions), decided, strict=True))):
                    self._where[id(e)] = self._where.get(id(e), 0) | where
            every = [e for e in every if id(e) in self._where]
        self.evaluated = every

    def _ways(self, conditions: list[Expr], known: Conditions) -> dict[tuple[Number | None, ...], int]:
        ways: dict[tuple[Number | None, ...], int] = {}
        variables_of = [(c, sorted(names(c) & self.variables.keys())) for c in conditions]
        for k, values in enumerate(self.points):
            point = dict(zip(self.variables, values, strict=True))
            decided = tuple([known.value(c, tuple([(v, point[v]) for v in own])) for c, own in variables_of])
            ways[decided] = ways.get(decided, 0) | 1 << k
        return ways

    def where(self, e: Expr) -> int:
        """The points at which a node is evaluated, as bits of a number."""
        return self._where.get(id(e), 0) if self._where else self.whole

    def share(self, where: int, decided: frozenset[str]) -> float:
        """The fraction of all points that `where` has, if loops over the `decided` variables are unrolled or lanes are
        selected, for each value of these; for other variables, both branches are evaluated everywhere."""
        if where == self.whole:
            return 1.0
        kept = [k for k, v in enumerate(self.variables) if v in decided]
        if len(kept) == len(self.variables):
            return where.bit_count() / len(self.points)
        every = [tuple([p[k] for k in kept]) for p in self.points]
        return len({p for k, p in enumerate(every) if where >> k & 1}) / len(set(every))


def _sample_points(conditions: Iterable[Expr], extents: Mapping[str, int]) -> dict[str, range]:
    """The sampled values of each variable on which a condition depends."""
    tried: dict[str, range] = {}
    for c in conditions:
        period = reduce(lcm, (_divisor(e) for e in walk(c)), 1)
        for v in sorted(names(c) & extents.keys()):
            n = extents[v]
            step = min(MOST_PERIOD, lcm(period, len(tried.get(v, range(1)))))
            start = n // 2 // step * step
            tried[v] = range(n) if n <= FEW else range(start, start + step)
    return tried


def _divisor(e: Expr) -> int:
    by = e.args[1] if isinstance(e, Op) and e.op in ("mod", "floordiv") else None
    return max(1, int(by.value)) if isinstance(by, Const) and float(by.value).is_integer() else 1
