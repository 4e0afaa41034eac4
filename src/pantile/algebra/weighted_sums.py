"""Weighted sums written out, and two of them in the place of one whose weights are a column times a row."""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass
from ..errors import Location
from ..expr.build import binary, cast
from ..expr.nodes import Expr, Load, const, coordinate
from ..expr.types import FLOAT64, DType
from ..expr.visit import names
from ..graph.nodes import Definition, Stage
from .cost import operations
from .rank_one import Number
from .stored_type import as_type, integers, stored_type

MOST_TAPS = 64  # that are written out


def unit(t: DType) -> float:
    """The distance of one from the next number of a type; of integers, which are exact, 0."""
    return t.epsilon if t.is_float else 0.0


def weighted_sum(weights: Sequence[Number], values: Sequence[Expr], t: DType) -> Expr:
    """The sum of products, the first one first. Nothing times an integer is nothing; a float may be no number."""
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


def price(weights: Sequence[Number], value: Expr) -> int:
    """Of a weighted sum: what is multiplied is added in the same instruction."""
    return sum(w != 0 for w in weights) * (operations(value) + 1)


@dataclass(frozen=True, eq=False)
class Separated:
    """The sums along rows as a stage, and the sum of these down a column.

    `across` are the weights of `taps`, which are those of the row at the dim `along`; `down` are the weights of the
    rows at `places` of that dim.
    """

    name: str
    dims: tuple[str, ...]  # of the stage that it is for
    where: Location
    dtype: DType
    across: Sequence[Number]
    taps: Sequence[Expr]
    down: Sequence[Number]
    along: str
    places: Sequence[Expr]

    def stages(self) -> tuple[Stage, Expr]:
        """The new stage, and what takes the place of the whole sum."""
        value = weighted_sum(self.across, self.taps, self.dtype)
        values = integers(value) if self.dtype.is_int else None
        t, dims = stored_type(self.dtype, values), tuple(d for d in self.dims if d in names(value))
        pure = Definition(tuple(map(coordinate, dims)), (cast(t, value),), (), None, self.where)
        rows = Stage(self.name, dims, (t,), pure, (), self.where)
        at = [tuple(place if d == self.along else coordinate(d) for d in dims) for place in self.places]
        reads = [as_type(self.dtype, Load(t, 1, self.name, p), values) for p in at]
        return rows, weighted_sum(self.down, reads, self.dtype)
