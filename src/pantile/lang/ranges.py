"""The ranges of integer expressions, by their types and operations. A read of a Func may have any value of its type,
because its updates may not be written yet.

    pt.cast("int32", img[y, x]) ** 2, img of uint8    ->    0 .. 65025
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import prod

from ..expr.nodes import Cast, Const, Expr, Op, Read, Reduce
from ..expr.types import DType
from ..expr.visit import each_once
from .inputs import Extent, Table
from .rdom import RDom, RVar
from .variables import Scalar

Range = tuple[int, int]  # both ends included


def range_of(e: Expr, side: int | None = None) -> Range:
    """Bounds of the values of an integer or a condition.

    `side` is an assumed upper bound of Params, and of the extents of Inputs with several axes.
    """
    memo: dict[int, Range] = {}
    return each_once(e, memo, lambda node: _range(node, memo, side), _parts)


def is_constant(domain: RDom) -> bool:
    """Whether the number of points of a domain is known before the call, conditions aside."""
    return all(isinstance(extent, Const) for _, extent in domain.loops.bounds)


def most_points(domain: RDom, limit: int, side: int | None = None) -> int:
    """An upper bound of the number of points of a domain; at most `limit` if it is known only at the call."""
    points = prod(max(0, range_of(extent, side)[1]) for _, extent in domain.loops.bounds)
    return points if is_constant(domain) else min(points, limit)


def type_range(t: DType) -> Range:
    """The range of a type."""
    return (0, 1) if t.is_bool else (t.min, t.max)


def _parts(e: Expr) -> Iterable[Expr]:
    """The expressions whose ranges decide that of a node."""
    if e.dtype.is_float:
        return ()
    if isinstance(e, Op) and e.op in _RULES:
        return e.args[1:] if e.op == "select" else e.args
    if isinstance(e, Cast) and not e.value.dtype.is_float:
        return (e.value,)
    return (e.value,) if isinstance(e, Reduce) and e.kind == "sum" else ()


def _range(e: Expr, memo: dict[int, Range], side: int | None) -> Range:
    if e.dtype.is_float:
        return 0, 0  # ranges of floats are not used
    whole = type_range(e.dtype)
    if side is not None and isinstance(e, Scalar) and not (isinstance(e, Extent) and e.source.ndim == 1):
        return max(whole[0], -side), min(whole[1], side)
    low, high = _own(e, [memo[id(c)] for c in _parts(e)]) or whole
    return (low, high) if whole[0] <= low <= high <= whole[1] else whole


def _own(e: Expr, parts: list[Range]) -> Range | None:
    """The range of a node if it does not wrap; None if nothing but its type is known."""
    if isinstance(e, Const):
        return int(e.value), int(e.value)
    if isinstance(e, RVar):
        return _of_loop(e)
    if isinstance(e, Read) and isinstance(e.source, Table):
        return int(e.source.array.min()), int(e.source.array.max())
    if isinstance(e, Op) and e.op == "popcount":
        return 0, e.dtype.bits
    if isinstance(e, Op) and parts:
        return _square(parts[0]) if e.op == "mul" and e.args[0] is e.args[1] else _RULES[e.op](*parts)
    if isinstance(e, Reduce) and parts:
        return scaled(parts[0], most_points(e.domain, 0)) if is_constant(e.domain) else None
    return parts[0] if parts else None


def scaled(values: Range, points: int) -> Range:
    """The range of a sum of at most `points` values."""
    return min(0, values[0] * points), max(0, values[1] * points)


def _of_loop(e: RVar) -> Range | None:
    low, extent = e.domain.loops.bounds[e.axis]
    if isinstance(low, Const) and isinstance(extent, Const) and extent.value > 0:
        return int(low.value), int(low.value + extent.value) - 1
    return None


def _square(a: Range) -> Range:
    ends = [n * n for n in a]
    return (0 if a[0] <= 0 <= a[1] else min(ends)), max(ends)


def _mul(a: Range, b: Range) -> Range:
    ends = [m * n for m, n in product(a, b)]
    return min(ends), max(ends)


def _abs(a: Range) -> Range:
    return (0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def _floordiv(a: Range, b: Range) -> Range:
    """The range of a quotient, where division by zero gives zero."""
    most = max(map(abs, a))
    return (min(0, a[0]), max(0, a[1])) if b[0] >= 0 else (-most, most)


def _mod(a: Range, b: Range) -> Range:
    return min(0, b[0] + 1), max(0, b[1] - 1)


def _and(a: Range, b: Range) -> Range:
    if a[0] >= 0 or b[0] >= 0:
        return 0, min(r[1] for r in (a, b) if r[0] >= 0)
    return min(a[0], b[0]) * 2, max(a[1], b[1])


_RULES: dict[str, Callable[..., Range]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _mul,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _abs,
    "floordiv": _floordiv,
    "mod": _mod,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "and": _and,
    "select": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "within": lambda a, low, high: (max(a[0], low[0]), min(a[1], high[1])),
}
