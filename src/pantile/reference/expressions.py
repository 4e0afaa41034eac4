"""An expression's value at many points at once, given the points' coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..expr.nodes import FIXED_POINT, Bits, Cast, Const, Expr, Load, Op, Var
from ..expr.types import INT32, INT64, DType
from ..expr.visit import children, once_per_node
from .boxes import Array
from .floats import held, rounded
from .operations import apply, convert, reinterpret

# Fetches what a Load reads at the given index arrays.
Fetch = Callable[[Load, tuple[Array, ...]], Array]
# What within(value, low, high) yields; free to complain.
Promise = Callable[[Op, Array, Array, Array], Array]


class Evaluator:
    """Evaluates expressions at fixed points. `coordinates` broadcast together; `scalars` hold params and extents.

    Inside an index, arithmetic on int32 coordinates is 64-bit; data keeps the arithmetic of its own type.
    """

    def __init__(
        self, coordinates: Mapping[str, Array], scalars: Mapping[str, Array], fetch: Fetch, promise: Promise
    ) -> None:
        self._coordinates = coordinates
        self._scalars = scalars
        self._fetch = fetch
        self._promise = promise
        self._memo: dict[tuple[int, bool], Array] = {}

    def value(self, e: Expr) -> Array:
        """The values of `e`, in the type that holds its dtype."""
        return self._evaluate(e, False)

    def index(self, e: Expr) -> Array:
        """The values of `e` as part of an index, as int64."""
        return self._evaluate(e, True).astype(np.int64)

    def _evaluate(self, e: Expr, wide: bool) -> Array:
        """Operands first, without recursion: what a rule asks for has been evaluated already."""
        wanted = (e, _is_wide(e, wide))
        stack = [wanted]
        while stack:
            node, in_index = stack[-1]
            if (id(node), in_index) in self._memo:
                stack.pop()
                continue
            waiting = [(c, w) for c, w in _operands(node, in_index) if (id(c), w) not in self._memo]
            if waiting:
                stack += waiting[::-1]
            else:
                stack.pop()
                self._memo[id(node), in_index] = _RULES[type(node)](self, node, in_index)
        return self._memo[id(e), wanted[1]]

    def _const(self, e: Const, wide: bool) -> Array:
        number = np.asarray(e.value)
        return rounded(number, e.dtype) if e.dtype.is_float else number.astype(held(_widened(e.dtype, wide)))

    def _var(self, e: Var, wide: bool) -> Array:
        found = self._coordinates.get(e.name)
        if found is None:
            found = self._scalars[e.name]
        return found.astype(held(_widened(e.dtype, wide)))

    def _load(self, e: Load, wide: bool) -> Array:
        loaded = self._fetch(e, tuple(self.index(i) for i in e.indices))
        return loaded.astype(held(_widened(e.dtype, wide)))

    def _cast(self, e: Cast, wide: bool) -> Array:
        source = _widened(e.value.dtype, wide)
        result = convert(self._evaluate(e.value, wide), source, e.dtype)
        return result.astype(held(_widened(e.dtype, wide)))

    def _bits(self, e: Bits, wide: bool) -> Array:
        result = reinterpret(self.value(e.value), e.value.dtype, e.dtype)
        return result.astype(held(_widened(e.dtype, wide)))

    def _op(self, e: Op, wide: bool) -> Array:
        if wide and _is_narrow(e):
            return self.value(e).astype(held(_widened(e.dtype, wide)))
        args = [self._evaluate(a, wide) for a in e.args]
        if e.op == "within":
            return self._promise(e, *args)
        return apply(e.op, _widened(e.args[-1].dtype, wide), *args)


def _widened(t: DType, wide: bool) -> DType:
    return INT64 if wide and t == INT32 else t


def _outside_loads(e: Expr) -> tuple[Expr, ...]:
    return () if isinstance(e, Load) else children(e)


@once_per_node("_mentions_coordinates", _outside_loads)
def _mentions_coordinates(e: Expr) -> bool:
    """Whether the value depends on a coordinate or scalar other than through the index of a load."""
    return isinstance(e, Var) or any(map(_mentions_coordinates, _outside_loads(e)))


def _is_wide(e: Expr, in_index: bool) -> bool:
    """Whether an operand of arithmetic in an index is 64-bit arithmetic itself."""
    return in_index and (e.dtype == INT32 or _mentions_coordinates(e))


def _is_narrow(e: Op) -> bool:
    """Whether an operation keeps its type in an index."""
    return e.op in FIXED_POINT or not _mentions_coordinates(e)


def _operands(e: Expr, wide: bool) -> list[tuple[Expr, bool]]:
    """What the rule of a node asks for, and whether as part of an index."""
    if isinstance(e, Load):
        return [(i, _is_wide(i, True)) for i in e.indices]
    if isinstance(e, Bits):
        return [(e.value, False)]
    if isinstance(e, Op) and wide and _is_narrow(e):
        return [(e, False)]
    return [(c, _is_wide(c, wide)) for c in children(e)]


_RULES: dict[type[Expr], Callable[..., Array]] = {
    Const: Evaluator._const,
    Var: Evaluator._var,
    Load: Evaluator._load,
    Cast: Evaluator._cast,
    Bits: Evaluator._bits,
    Op: Evaluator._op,
}
