"""A point at which an index leaves its limits: found by trying the ends of what its variables range over.

Interval analysis says that an index may be too large; a message should say where it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from ..dataclass import dataclass
from ..expr.nodes import Expr, Load, Number, Op, Var
from ..expr.visit import children, walk
from .interval import Interval, Scope, type_range
from .point import Point, value_at

# (lowest, highest) allowed along each axis
Limits = Sequence[tuple[int, int]]
_MOST_POINTS = 1 << 14
_ALL_UP_TO = 16  # values of a range that are all tried


@dataclass(frozen=True)
class Witness:
    """A point, its indices, and the values of loads on which the indices depend."""

    point: Point
    indices: tuple[int, ...]
    data: tuple[tuple[Load, Number], ...]

    def value(self, e: Expr) -> Number | None:
        """The value of another expression there, if it is known."""
        return value_at(e, self.point)


def find_witness(indices: Sequence[Expr], limits: Limits, scope: Scope, guards: Sequence[Expr]) -> Witness | None:
    """A point of the scope where all guards hold (as far as they are known) and some index is outside its limits."""
    loads = {id(e): e for e in outside_loads(indices) if isinstance(e, Load)}
    ranges = _ranges([*indices, *guards], scope)
    start: dict[str | int, Number] = {name: i.low for name, i in scope.items() if i.low is not None}
    for values in itertools.islice(_corners_first(ranges), _MOST_POINTS):
        point = {**start, **values}
        if any(value_at(g, point) is False for g in guards):
            continue
        places = [value_at(i, point) for i in indices]
        if None not in places and any(_outside(p, limit) for p, limit in zip(places, limits, strict=True)):
            data = tuple((load, point[k]) for k, load in loads.items())
            return Witness(point, tuple(int(p) for p in places if p is not None), data)
    return None


def _outside(place: Number | None, limit: tuple[int, int]) -> bool:
    return place is not None and not limit[0] <= place <= limit[1]


def _ranges(exprs: Sequence[Expr], scope: Scope) -> dict[str | int, list[int]]:
    """The values to try for each variable, and for each load as if it were one."""
    ranges: dict[str | int, list[int]] = {}
    for e in outside_loads(exprs):
        if isinstance(e, Load):
            ranges[id(e)] = _values(type_range(e.dtype)) if e.dtype.bits <= 32 else []
        elif isinstance(e, Var) and e.name in scope and not scope[e.name].is_point:
            ranges[e.name] = _values(scope[e.name])
    return ranges


def outside_loads(exprs: Sequence[Expr], is_whole: Callable[[Expr], bool] = lambda _: False) -> Iterator[Expr]:
    """Every node that is not inside a load, or inside a node that counts as a whole."""
    stack = list(exprs)
    seen: set[int] = set()
    while stack:
        e = stack.pop()
        if id(e) not in seen:
            seen.add(id(e))
            yield e
            if not isinstance(e, Load) and not is_whole(e):
                stack.extend(children(e))


def _values(r: Interval) -> list[int]:
    if not (isinstance(r.low, int) and isinstance(r.high, int)):
        return []
    if r.high - r.low < _ALL_UP_TO:
        return list(range(r.low, r.high + 1))
    half = _ALL_UP_TO // 4
    return [*range(r.low, r.low + half), *range(r.high, r.high - half, -1)]


def _corners_first(ranges: dict[str | int, list[int]]) -> Iterator[dict[str | int, int]]:
    """All points, those at the ends of the ranges before the others."""
    ends = [[v[0], v[-1]] if v else [] for v in (sorted(v) for v in ranges.values())]
    for values in itertools.chain(itertools.product(*ends), itertools.product(*ranges.values())):
        yield dict(zip(ranges, values, strict=True))


def guards_of(roots: Sequence[Expr], load: Load) -> list[Expr]:
    """The conditions of the selects around a load, as they must hold for it to be read."""
    above: dict[int, tuple[Expr, Expr | None] | None] = {}  # node -> its parent, and the condition of the branch
    stack: list[tuple[Expr, tuple[Expr, Expr | None] | None]] = [(r, None) for r in reversed(roots)]
    while stack:
        e, parent = stack.pop()
        if id(e) in above:
            continue
        above[id(e)] = parent
        if e is load:
            break
        stack += [(child, (e, guard)) for child, guard in reversed(_branches(e))]
    return _guards_above(load, above)


def _guards_above(load: Load, above: dict[int, tuple[Expr, Expr | None] | None]) -> list[Expr]:
    guards: list[Expr] = []
    link = above.get(id(load))
    while link is not None:
        parent, guard = link
        guards += [] if guard is None else [guard]
        link = above[id(parent)]
    return guards[::-1]


def _branches(e: Expr) -> list[tuple[Expr, Expr | None]]:
    """The children of a node, with the conditions under which they are evaluated."""
    if isinstance(e, Op) and e.op == "select":
        condition, then, otherwise = e.args
        return [(condition, None), (then, condition), (otherwise, ~condition)]
    return [(c, None) for c in children(e)]


def depends_on_data(e: Expr) -> bool:
    """Whether the value depends on a load."""
    return any(isinstance(n, Load) for n in walk(e))
