"""Recognize updates that multiply matrices, as tensor cores do.

    c[i, j] = c[i, j] + T(a[i, k])*T(b[k, j])        rows i, columns j, terms k; T is the type of c

`a` and `b` may be any expressions: a[k, i] is a matrix in column-major order, a[y + i, x + k] a window of a picture.
"""

from __future__ import annotations

from ..dataclass import dataclass
from ..expr.nodes import Cast, Expr, Op
from ..expr.types import DType
from ..expr.visit import names
from ..graph.nodes import Definition, Stage
from .updates import accumulation, pure_dims


@dataclass(frozen=True, eq=False)
class MatrixProduct:
    """The factors of an update, in their own type, and the type in which products are accumulated."""

    a: Expr
    b: Expr
    accumulator: DType


def matrix_product(stage: Stage, update: Definition, rows: str, columns: str, terms: str) -> MatrixProduct | None:
    """The update as a matrix product along two of its dims and a reduction loop, or None if it is not one."""
    accumulated = accumulation(stage, update)
    if accumulated is None or len(accumulated) > 1 or accumulated[0].op != "add" or update.condition is not None:
        return None
    (sum_,) = accumulated
    factors = _factors(sum_.term, sum_.dtype)
    is_product = {rows, columns} <= {*pure_dims(stage, update)} and any(r.name == terms for r in update.domain)
    if factors is None or not is_product or rows == columns:
        return None
    for a, b in (factors, factors[::-1]):
        if names(a) & {rows, columns, terms} == {rows, terms} and names(b) & {rows, columns, terms} == {columns, terms}:
            return MatrixProduct(a, b, sum_.dtype)
    return None


def _factors(term: Expr, accumulator: DType) -> tuple[Expr, Expr] | None:
    """The two factors of a product, before their conversion to the type in which products are accumulated."""
    if not isinstance(term, Op) or term.op != "mul":
        return None
    a, b = (f.value if isinstance(f, Cast) and f.dtype == accumulator else f for f in term.args)
    return (a, b) if a.dtype == b.dtype else None
