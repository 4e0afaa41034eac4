"""Bounds integer expressions by their types and clamps alone, to prove that arithmetic on them does not overflow 64
bits.

    int64(b[x]) * 1000 + x, b of int32    ->    2**31 * 1000 + COORDINATE, far below 2**63
    min(max(b[x], 0), 2) + x, b of int64  ->    2 + COORDINATE
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from operator import mul

from .nodes import Cast, Const, Expr, Op, Var
from .types import INDEX, DType
from .visit import children

# The largest absolute value of a coordinate: coordinates of outputs are int32, and stencils reach a little beyond.
COORDINATE = (1 << 31) + (1 << 24)
_LIMIT = 1 << 63
# Operations on indices that may overflow 64 bits.
MAY_OVERFLOW = frozenset({"add", "sub", "neg", "abs", "mul", "floordiv"})
_Range = tuple[int, int]  # the smallest and the largest value


class Magnitudes:
    """Bounds of values, computed once per node. Coordinates and extents are the variables of type index."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, _Range]] = {}  # by id, with the node, which must stay alive

    def fits(self, e: Expr) -> bool:
        """Whether a value certainly fits 64 bits, provided that its operands do."""
        return self.of(e) < _LIMIT

    def of(self, e: Expr) -> int:
        """A bound of |e|."""
        pending = [e]
        while pending:
            node = pending[-1]
            missing = [] if id(node) in self._known else [c for c in _parts(node) if id(c) not in self._known]
            if missing:
                pending += missing
                continue
            pending.pop()
            if id(node) not in self._known:
                self._known[id(node)] = (node, _range(node, [self._known[id(c)][1] for c in _parts(node)]))
        return _most(self._known[id(e)][1])


def _range(e: Expr, parts: list[_Range]) -> _Range:
    if isinstance(e, Const):
        return int(e.value), int(e.value)
    if isinstance(e, Var) and e.dtype is INDEX:
        return -COORDINATE, COORDINATE
    if isinstance(e, Op) and parts:
        return _RULES[e.op](*parts)
    if isinstance(e, Cast) and parts and _limits(e.dtype)[0] <= parts[0][0] and parts[0][1] <= _limits(e.dtype)[1]:
        return parts[0]
    return _limits(e.dtype)


def _parts(e: Expr) -> tuple[Expr, ...]:
    """The operands that bound a node; none if only its type bounds it, as for arithmetic that wraps."""
    if isinstance(e, Op) and e.dtype.is_int and e.op in _RULES and (e.dtype is INDEX or e.op not in MAY_OVERFLOW):
        return e.args[1:] if e.op == "select" else e.args
    return children(e) if isinstance(e, Cast) and e.value.dtype.is_int else ()


def _limits(t: DType) -> _Range:
    return t.min, t.max


def _most(r: _Range) -> int:
    return max(-r[0], r[1])


def _up_to(n: int) -> _Range:
    return -n, n


def _hull(a: _Range, b: _Range) -> _Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _product(a: _Range, b: _Range) -> _Range:
    products = list(starmap(mul, ((x, y) for x in a for y in b)))
    return min(products), max(products)


def _quotient(a: _Range, b: _Range) -> _Range:
    if b[0] == b[1] != 0:
        first, last = a[0] // b[0], a[1] // b[0]
        return min(first, last), max(first, last)
    return _up_to(_most(a))


def _promised(a: _Range, low: _Range, high: _Range) -> _Range:
    """The range of a value with a promise. A promise that the types contradict is ignored."""
    least, most = max(a[0], low[0]), min(a[1], high[1])
    return (least, most) if least <= most else a


_RULES: dict[str, Callable[..., _Range]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": lambda a: (0, _most(a)),
    "floordiv": _quotient,
    "mod": lambda a, b: _up_to(_most(b)),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "select": _hull,
    "within": _promised,
}
