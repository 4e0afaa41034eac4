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
Factors = tuple[list[Number], list[Number]]  # of the rows, of the columns

_ROUNDING = 4  # how many times the rounding of its type a product of two factors may differ from a weight


def rank_one(weights: Matrix, unit: float) -> Factors | None:
    """A factor for each row and for each column whose products are the weights: of integers (`unit` is 0) exactly, of
    floats within rounding, whose largest error is `unit` of a number."""
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
    """The row without what its numbers have in common, and how often each row is that."""
    common = math.gcd(*map(int, row))
    across: list[Number] = [int(w) // common for w in row]
    pivot = next(k for k, w in enumerate(across) if w)
    down: list[Number] = [int(r[pivot]) // int(across[pivot]) for r in weights]
    return down, across


def _of_floats(weights: Matrix) -> Factors | None:
    """The row of the largest weight, scaled to a sum of one: sums along it are no larger than what is summed up."""
    if not all(math.isfinite(w) for row in weights for w in row):
        return None
    largest = max(weights, key=lambda row: max(map(abs, row)))
    total = math.fsum(map(abs, largest))
    pivot = max(range(len(largest)), key=lambda k: abs(largest[k]))
    across = [w / total for w in largest]
    return [row[pivot] / across[pivot] for row in weights], across
