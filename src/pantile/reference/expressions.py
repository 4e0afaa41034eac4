"""An expression's value at many points at once, given the points' coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..expr.nodes import Bits, Cast, Const, Expr, Load, Op, Var
from ..expr.visit import each_once
from .boxes import Array
from .operations import apply, convert, held, reinterpret, rounded

# Returns the values that a Load reads at the given index arrays.
Fetch = Callable[[Load, tuple[Array, ...]], Array]
# Returns the values of within(value, low, high), or raises an error.
Promise = Callable[[Op, Array, Array, Array], Array]


class PointEvaluator:
    """Evaluates expressions at fixed points. `coordinates` broadcast together; `scalars` hold params and extents."""

    def __init__(
        self, coordinates: Mapping[str, Array], scalars: Mapping[str, Array], fetch: Fetch, promise: Promise
    ) -> None:
        self._coordinates = coordinates
        self._scalars = scalars
        self._fetch = fetch
        self._promise = promise
        self._memo: dict[int, Array] = {}

    def value(self, e: Expr) -> Array:
        """The values of `e`, in the type that holds its dtype."""
        known = self._memo.get(id(e))
        return each_once(e, self._memo, self._rule) if known is None else known

    def _rule(self, e: Expr) -> Array:
        return _RULES[type(e)](self, e)

    def _const(self, e: Const) -> Array:
        number = np.asarray(e.value)
        return rounded(number, e.dtype) if e.dtype.is_float else number.astype(held(e.dtype))

    def _var(self, e: Var) -> Array:
        values = self._coordinates.get(e.name)
        if values is None:
            values = self._scalars[e.name]
        return values.astype(held(e.dtype))

    def _load(self, e: Load) -> Array:
        return self._fetch(e, tuple(self.value(i) for i in e.indices)).astype(held(e.dtype))

    def _cast(self, e: Cast) -> Array:
        return convert(self.value(e.value), e.value.dtype, e.dtype).astype(held(e.dtype))

    def _bits(self, e: Bits) -> Array:
        return reinterpret(self.value(e.value), e.value.dtype, e.dtype)

    def _op(self, e: Op) -> Array:
        args = [self.value(a) for a in e.args]
        return self._promise(e, *args) if e.op == "within" else apply(e.op, e.args[-1].dtype, *args)


_RULES: dict[type[Expr], Callable[..., Array]] = {
    Const: PointEvaluator._const,
    Var: PointEvaluator._var,
    Load: PointEvaluator._load,
    Cast: PointEvaluator._cast,
    Bits: PointEvaluator._bits,
    Op: PointEvaluator._op,
}
