"""The messages of the check of regions: stages, elements and limits in words, and the errors themselves.

Interval analysis shows that an index may be out of bounds, but a message should name a point where it is. Such a point
is found by trying the ends of the ranges of its variables.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from math import prod

from ..dataclass import dataclass
from ..errors import UserError
from ..expr.nodes import Expr, Load, Number, Op, Var
from ..expr.show import as_written
from ..expr.visit import children, walk
from ..graph.nodes import Definition, Stage
from .interval import Interval, Scope, type_range
from .point import Point, value_at
from .regions import Box

MOST = (1 << 31) - 1  # indices of an axis; coordinates are int32
# (lowest, highest) index allowed along each axis
Limits = Sequence[tuple[int, int]]
_MOST_POINTS = 1 << 14
_ALL_UP_TO = 16  # ranges of up to this many values are tried completely


@dataclass(frozen=True)
class BufferLimits:
    """The limits within which a buffer may be read, per axis; their owner, and the remedies for reads outside of them
    and for empty limits.
    """

    buffer: str
    owner: str
    limits: tuple[tuple[int, int], ...]
    remedy: str
    when_empty: str = "pass an array that is not empty"

    @property
    def size(self) -> int:
        """The number of indices."""
        return prod(max(0, high - low + 1) for low, high in self.limits)

    def holds(self, box: Box) -> bool:
        """Whether a box lies inside the limits."""
        return all(self.holds_axis(k, r) for k, r in enumerate(box))

    def holds_axis(self, axis: int, r: Interval) -> bool:
        low, high = self.limits[axis]
        return r.bounded and bool(low <= r.low and r.high <= high)


@dataclass(frozen=True)
class UnboundedRead:
    """A read of a stage whose index along an axis is unbounded."""

    stage: Stage
    definition: Definition
    load: Load
    axis: int
    box: Box


def describe(stage: Stage) -> str:
    """A stage in words, with the user's line that defines it."""
    kind = "stage" if stage.helper else "Func"
    return f"{kind} {stage.name!r} (defined at {stage.where})"


def readable(text: object) -> str:
    """An expression or listing as users would write it."""
    plain = as_written(text) if isinstance(text, Expr) else str(text)
    return re.sub(r"\.shape\.(\d+)", r".shape[\1]", plain)


def place(name: str, indices: Sequence[object]) -> str:
    """An element of a buffer as messages write it: name[i, j]."""
    return f"{name}[{', '.join(map(readable, indices))}]"


def limits_text(limits: Limits) -> str:
    """The limits of several axes as text."""
    return " x ".join(map(_indices, limits))


def read_outside(
    stage: Stage, d: Definition, load: Load, box: Box, room: BufferLimits, witness: Witness | None
) -> UserError:
    """The error for a read whose box is not inside the limits `room`."""
    start = f"{describe(stage)} reads {readable(load)}"
    if witness is None and not room.size:
        empty = next(k for k, (low, high) in enumerate(room.limits) if low > high)
        return UserError(f"{start}, which leaves {room.owner}: axis {empty} has no indices; {room.when_empty}")
    axis = next((k for k, r in enumerate(box) if not room.holds_axis(k, r)), 0)
    if witness is not None:
        wrong = next(k for k, i in enumerate(witness.indices) if not _in(i, room.limits[k]))
        low, high = room.limits[wrong]
        remedy = room.remedy if low <= high else room.when_empty
        return UserError(
            f"{start}, which leaves {room.owner}: {_pixel(stage, d, witness)} needs "
            f"{place(room.buffer, witness.indices)}, but axis {wrong} has {_indices((low, high))}; {remedy}"
        )
    if _is_unbounded(box[axis]) and depends_on_data(load.indices[axis]):
        return UserError(
            f"{start}, where {readable(load.indices[axis])} depends on data and may be anything; limit it with "
            f"pt.clamp, or promise its range with pt.within, to stay inside {room.owner}, {limits_text(room.limits)}"
        )
    return UserError(
        f"{start} at an index that is only known to be in {range_text(box[axis])} along axis {axis}, outside of "
        f"{room.owner}, {limits_text(room.limits)}; limit it with pt.clamp, or promise its range with pt.within"
    )


class OutOfRangeWrite(UserError):
    """An update may write outside the array of its output, which is only a part of the Func."""


def written_outside(stage: Stage, d: Definition, shape: tuple[int, ...], witness: Witness | None) -> OutOfRangeWrite:
    """The error for an update that may write outside of the output's array."""
    example = f": {_pixel(stage, d, witness)} would be written" if witness is not None else ""
    return OutOfRangeWrite(
        f"{describe(stage)} is an output of shape {shape}, but its update {place(stage.name, d.indices)} at {d.where} "
        f"may write outside of it{example}; pass a larger shape=, limit the index with pt.clamp, or make another "
        f"Func that reads {stage.name} the output"
    )


def output_outside(stage: Stage, shape: tuple[int, ...], room: BufferLimits) -> UserError:
    """The error for a shape that is larger than the stated domain."""
    return UserError(
        f"{describe(stage)} is requested over the shape {shape}, which leaves its stated domain, "
        f"{limits_text(room.limits)}; pass a smaller shape=, or state a larger domain"
    )


def stored_without_limits(stage: Stage, box: Box, read: UnboundedRead | None = None) -> UserError:
    """The error for storing a stage whose required region is unbounded, with the read itself if it is known."""
    if read is None:
        return UserError(
            f"{describe(stage)} is computed before it is read, but what is read of it has no known limits: "
            f"{place(stage.name, [range_text(r) for r in box])}; limit the indices with pt.clamp, promise their range "
            "with pt.within, or schedule it with compute_inline"
        )
    index, d = readable(read.load.indices[read.axis]), read.definition
    return UserError(
        f"{describe(stage)} is computed before it is read, but what is read of it at {d.where}, "
        f"{readable(read.load)}, has no known limits: {index} may be in {range_text(box[read.axis])}; limit it with "
        f"pt.clamp, promise its range with pt.within, or schedule {stage.name} with compute_inline"
    )


def stored_beyond(stage: Stage, refusal: UserError) -> UserError:
    """The error for storing a stage that cannot be computed everywhere where it may be read."""
    return UserError(
        f"{describe(stage)} is computed before it is read, at all places that calls of any size may read it at, and "
        f"not all of these can be computed in this one: {refusal.reason}; or schedule {stage.name} with compute_inline"
    )


def too_large(stage: Stage, extents: Sequence[int]) -> UserError:
    """The error for storing more than memory can hold."""
    size = " x ".join(map(str, extents))
    return UserError(f"{describe(stage)} would hold {size} values, more than memory can; pass a smaller shape=")


def overflows(stage: Stage, d: Definition, e: Op) -> UserError:
    """The error for index arithmetic that may overflow 64 bits."""
    return UserError(
        f"{describe(stage)} computes the index {readable(e)} at {d.where}, which may leave 64 bits in this call; limit "
        "what it is made of with pt.clamp, or promise its range with pt.within"
    )


def range_text(r: Interval) -> str:
    low, high = ("?" if v is None else v for v in (r.low, r.high))
    return f"{low} .. {high}"


def _indices(limit: tuple[int, int]) -> str:
    return f"indices {limit[0]} .. {limit[1]}" if limit[0] <= limit[1] else "no indices"


def _in(index: int, limit: tuple[int, int]) -> bool:
    return limit[0] <= index <= limit[1]


def _is_unbounded(r: Interval) -> bool:
    return not r.bounded or bool(r.high - r.low > MOST)


def _pixel(stage: Stage, d: Definition, witness: Witness) -> str:
    """The element of a stage at a witness, with its loops and data: "f[3, 4] (at r.0 = 1)"."""
    left = [witness.value(i) for i in d.indices]
    loops = [f"{r.name} = {witness.point[r.name]}" for r in d.domain if r.name in witness.point]
    data = [f"{readable(e)} = {value}" for e, value in witness.data]
    given = f" (at {', '.join(loops + data)})" if loops or data else ""
    return place(stage.name, ["?" if i is None else i for i in left]) + given


@dataclass(frozen=True)
class Witness:
    """A point, its indices, and the values of loads on which the indices depend."""

    point: Point
    indices: tuple[int, ...]
    data: tuple[tuple[Load, Number], ...]

    def value(self, e: Expr) -> Number | None:
        """The value of another expression at the point, if it is known."""
        return value_at(e, self.point)


def find_witness(indices: Sequence[Expr], limits: Limits, scope: Scope, guards: Sequence[Expr]) -> Witness | None:
    """Find a point of the scope at which all guards hold (as far as known) and some index is outside its limits."""
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
    """The values to try for each variable. Loads are treated like variables."""
    ranges: dict[str | int, list[int]] = {}
    for e in outside_loads(exprs):
        if isinstance(e, Load):
            ranges[id(e)] = _values(type_range(e.dtype)) if e.dtype.bits <= 32 else []
        elif isinstance(e, Var) and e.name in scope and not scope[e.name].is_point:
            ranges[e.name] = _values(scope[e.name])
    return ranges


def outside_loads(exprs: Sequence[Expr], is_whole: Callable[[Expr], bool] = lambda _: False) -> Iterator[Expr]:
    """Every node that is neither inside a load nor inside a node for which `is_whole` holds."""
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
    """All points, beginning with those at the ends of the ranges."""
    ends = [[v[0], v[-1]] if v else [] for v in (sorted(v) for v in ranges.values())]
    for values in itertools.chain(itertools.product(*ends), itertools.product(*ranges.values())):
        yield dict(zip(ranges, values, strict=True))


def guards_of(roots: Sequence[Expr], load: Load) -> list[Expr]:
    """The conditions of the enclosing selects that must hold for a load to be executed."""
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
    """The children of a node, each with the condition under which it is evaluated, or None."""
    if isinstance(e, Op) and e.op == "select":
        condition, then, otherwise = e.args
        return [(condition, None), (then, condition), (otherwise, ~condition)]
    return [(c, None) for c in children(e)]


def depends_on_data(e: Expr) -> bool:
    """Whether the value of an expression depends on a load."""
    return any(isinstance(n, Load) for n in walk(e))
