"""Weights that are products: a matrix of rank one as a column times a row.

1 2 1       1
2 4 2   =   2  x  1 2 1
1 2 1       1
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Number = int | float
Matrix = Sequence[Sequence[Number]]
Factors = tuple[list[Number], list[Number]]  # those of the rows, those of the columns

_ROUNDING = 4  # by how many roundings of its type a product of two factors may differ from a weight


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
