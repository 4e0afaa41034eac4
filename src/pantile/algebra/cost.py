"""The cost of expressions in instructions per vector, which does not depend on the type."""

from __future__ import annotations

from ..expr.nodes import Cast, Expr, Load, Op
from ..expr.visit import walk_values

# The cost of storing a vector and loading it again when it may have left the cache.
STORED = 24


def operations(value: Expr) -> int:
    """The number of arithmetic operations, conversions and loads of an expression, without index arithmetic."""
    return sum(isinstance(e, (Cast, Op, Load)) for e in walk_values(value))
