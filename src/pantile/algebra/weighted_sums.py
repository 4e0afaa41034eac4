"""Unrolled weighted sums, and two of them in the place of one whose weights are a column times a row."""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass
from ..expr.build import binary, cast
from ..expr.nodes import Expr, Load, const, coordinate
from ..expr.types import FLOAT64, DType
from ..expr.visit import names
from ..graph.nodes import Definition, Stage
from .cost import operations
from .rank_one import Number
from .stored_type import as_type, integers, stored_type

MOST_TAPS = 64  # terms that are unrolled


def unit(t: DType) -> float:
    """The distance from 1 to the next number of a floating type; 0 for integers, which are exact."""
    return t.epsilon if t.is_float else 0.0


def weighted_sum(weights: Sequence[Number], values: Sequence[Expr], t: DType) -> Expr:
    """The sum of products in order. Zero times an integer is left out; zero times a float may be NaN."""
    result: Expr | None = None
    for w, value in zip(weights, values, strict=True):
        if w == 0 and not t.is_float:
            continue
        if w == -1 and result is not None:
            result = binary("sub", result, value)
        else:
            product = binary("mul", value, cast(t, const(w, FLOAT64)) if t.is_float else const(w, t))
            result = product if result is None else binary("add", result, product)
    return const(0, t) if result is None else result


def cost(weights: Sequence[Number], value: Expr) -> int:
    """The cost of a weighted sum: a fused multiply-add per term, and the operations of its value."""
    return sum(w != 0 for w in weights) * (operations(value) + 1)


@dataclass(frozen=True, eq=False)
class SeparatedSum:
    """A separated sum: the sums along rows as a stage, and the sum of these down a column. `across` are the weights of
    `taps`, the values in the row at the dim `along`; `down` are the weights of the rows at `places` of that dim."""

    name: str
    stage: Stage  # the original one
    dtype: DType
    across: Sequence[Number]
    taps: Sequence[Expr]
    down: Sequence[Number]
    along: str
    places: Sequence[Expr]

    def stages(self) -> tuple[Stage, Expr]:
        """The new stage, and the expression that replaces the whole sum."""
        value = weighted_sum(self.across, self.taps, self.dtype)
        values = integers(value) if self.dtype.is_int else None
        t, dims = stored_type(self.dtype, values), tuple(d for d in self.stage.dims if d in names(value))
        pure = Definition(tuple(map(coordinate, dims)), (cast(t, value),), (), None, self.stage.where)
        rows = Stage(self.name, dims, (t,), pure, (), self.stage.where)
        points = [tuple(place if d == self.along else coordinate(d) for d in dims) for place in self.places]
        reads = [as_type(self.dtype, Load(t, 1, self.name, p), values) for p in points]
        return rows, weighted_sum(self.down, reads, self.dtype)
