"""Unrolled weighted sums, and two of them in the place of one whose weights are a column times a row.

A matrix of rank one is a column times a row:

1 2 1       1
2 4 2   =   2  x  1 2 1
1 2 1       1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..analysis.interval import interval
from ..dataclass import dataclass
from ..expr.build import binary, cast
from ..expr.nodes import Expr, Load, Op, const, coordinate, op
from ..expr.types import FLOAT64, INT16, UINT16, DType
from ..expr.visit import names
from ..graph.nodes import Definition, Stage
from .change import operations

MOST_TAPS = 64  # terms that are unrolled
Number = int | float
Matrix = Sequence[Sequence[Number]]
Factors = tuple[list[Number], list[Number]]  # those of the rows, those of the columns

_ROUNDING = 4  # by how many roundings of its type a product of two factors may differ from a weight
Range = tuple[int, int]


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


def factors(term: Expr, is_weight: Callable[[Expr], bool]) -> tuple[Expr | None, Expr | None]:
    """The product of the weights of a term, and the product of its other factors; None if there are none."""
    parts: list[Expr | None] = [None, None]
    pending = [term]
    while pending:
        e = pending.pop()
        if isinstance(e, Op) and e.op == "mul":
            pending += reversed(e.args)
            continue
        k = 0 if is_weight(e) else 1
        before = parts[k]
        parts[k] = e if before is None else binary("mul", before, e)
    return parts[0], parts[1]


def rank_one(weights: Matrix, unit: float) -> Factors | None:
    """Factors for each row and each column whose products are the weights: exactly for integers (`unit` is 0), within
    rounding for floats, where `unit` is the largest relative error of rounding."""
    rows = [row for row in weights if any(row)]
    if not rows:
        return None
    factors = _of_integers(weights, rows[0]) if unit == 0 else _of_floats(weights)
    if factors is None:
        return None
    products = ((a * b, w) for a, row in zip(factors[0], weights, strict=True) for b, w in _pairs(factors[1], row))
    return factors if all(abs(p - w) <= _ROUNDING * unit * abs(w) for p, w in products) else None


def _pairs(factors: Sequence[Number], row: Sequence[Number]) -> zip[tuple[Number, Number]]:
    return zip(factors, row, strict=True)


def _of_integers(weights: Matrix, row: Sequence[Number]) -> Factors | None:
    """The row divided by its greatest common divisor, and the multiple of it that each row is."""
    common = math.gcd(*map(int, row))
    across: list[Number] = [int(w) // common for w in row]
    pivot = next(k for k, w in enumerate(across) if w)
    down: list[Number] = [int(r[pivot]) // int(across[pivot]) for r in weights]
    return down, across


def _of_floats(weights: Matrix) -> Factors | None:
    """The row of the largest weight, scaled to a sum of one, so that sums along it are no larger than their terms."""
    if not all(math.isfinite(w) for row in weights for w in row):
        return None
    largest = max(weights, key=lambda row: max(map(abs, row)))
    total = math.fsum(map(abs, largest))
    pivot = max(range(len(largest)), key=lambda k: abs(largest[k]))
    across = [w / total for w in largest]
    return [row[pivot] / across[pivot] for row in weights], across


def integers(value: Expr) -> Range | None:
    """The range of an integer expression, if it is known."""
    r = interval(value, {})
    return (r.low, r.high) if isinstance(r.low, int) and isinstance(r.high, int) else None


def stored_type(own: DType, values: Range | None) -> DType:
    """The type to store values in: one of 16 bits if all integers of a larger type fit it."""
    if values is None or not own.is_int or own.bits <= 16:
        return own
    return next((t for t in (UINT16, INT16) if t.min <= values[0] and values[1] <= t.max), own)


def as_type(own: DType, read: Load, values: Range | None) -> Expr:
    """A load of values that are stored in fewer bits, converted to their own type, with a promise of their range, from
    which the bits that sums need are derived."""
    if values is None or read.dtype is own:
        return read
    return cast(own, op("within", read, const(values[0], read.dtype), const(values[1], read.dtype)))
