"""An expression's value at many points at once, given the points' coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..expr.nodes import FIXED_POINT, Bits, Cast, Const, Expr, Load, Op, Var
from ..expr.types import INT32, INT64, DType
from ..expr.visit import children
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
        if wide and not (e.dtype == INT32 or _mentions_coordinates(e)):
            wide = False
        key = (id(e), wide)
        if key not in self._memo:
            self._memo[key] = _RULES[type(e)](self, e, wide)
        return self._memo[key]

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
        if wide and (e.op in FIXED_POINT or not _mentions_coordinates(e)):
            return self.value(e).astype(held(_widened(e.dtype, wide)))
        args = [self._evaluate(a, wide) for a in e.args]
        if e.op == "within":
            return self._promise(e, *args)
        return apply(e.op, _widened(e.args[-1].dtype, wide), *args)


def _widened(t: DType, wide: bool) -> DType:
    return INT64 if wide and t == INT32 else t


def _mentions_coordinates(e: Expr) -> bool:
    """Whether the value depends on a coordinate or scalar other than through the index of a load."""
    if isinstance(e, Var):
        return True
    return not isinstance(e, Load) and any(_mentions_coordinates(c) for c in children(e))


_RULES: dict[type[Expr], Callable[..., Array]] = {
    Const: Evaluator._const,
    Var: Evaluator._var,
    Load: Evaluator._load,
    Cast: Evaluator._cast,
    Bits: Evaluator._bits,
    Op: Evaluator._op,
}
