"""How large an integer expression can be by its types alone: whether arithmetic on it provably stays within 64 bits.

    int64(b[x]) * 1000 + x, b of int32    ->    2**31 * 1000 + COORDINATE, far below 2**63
"""

from __future__ import annotations

from collections.abc import Callable

from .nodes import Cast, Const, Expr, Op, Var
from .types import INDEX, DType
from .visit import children

# What a coordinate may be, in absolute value: those of outputs are int32, and stencils reach a little beyond.
COORDINATE = (1 << 31) + (1 << 24)
_LIMIT = 1 << 63
# Operations on indices that may leave 64 bits.
MAY_OVERFLOW = frozenset({"add", "sub", "neg", "abs", "mul", "floordiv"})


class Magnitudes:
    """Bounds of absolute values, each found once per node. Coordinates and extents are the variables of type index."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, int]] = {}  # by id, with what must stay alive for it

    def fits(self, e: Expr) -> bool:
        """Whether the value certainly fits 64 bits, as those of its operands do."""
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
                self._known[id(node)] = (node, self._of(node, [self._known[id(c)][1] for c in _parts(node)]))
        return self._known[id(e)][1]

    def _of(self, e: Expr, parts: list[int]) -> int:
        if isinstance(e, Const):
            return abs(int(e.value))
        if isinstance(e, Var) and e.dtype is INDEX:
            return COORDINATE
        if isinstance(e, Op) and parts:
            return _RULES[e.op](*parts) if e.dtype is INDEX else min(_RULES[e.op](*parts), _most(e.dtype))
        if isinstance(e, Cast) and parts and e.dtype.is_signed:
            return min(parts[0], _most(e.dtype))
        return _most(e.dtype)


def _parts(e: Expr) -> tuple[Expr, ...]:
    """The operands that bound a node; none where its type alone does. What wraps may be anything of its type."""
    if isinstance(e, Op) and e.dtype.is_signed and e.op in _RULES and (e.dtype is INDEX or e.op not in MAY_OVERFLOW):
        return e.args[1:] if e.op == "select" else e.args
    return children(e) if isinstance(e, Cast) and e.value.dtype.is_int else ()


def _most(t: DType) -> int:
    return max(-t.min, t.max)


_RULES: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: a,
    "abs": lambda a: a,
    "floordiv": lambda a, b: a,
    "mod": lambda a, b: b,
    "min": max,
    "max": max,
    "select": max,
    "within": lambda a, low, high: a,
}
