"""What computing something costs, in instructions per vector: the same for every type, whose vectors are as wide."""

from __future__ import annotations

from ..expr.nodes import Cast, Expr, Load, Op
from ..expr.visit import walk_values

# To store a vector and to load it again, at a time when it may have left the cache.
STORED = 24


def operations(value: Expr) -> int:
    """Of evaluating it once: arithmetic, conversions and loads, without what their places are made of."""
    return sum(isinstance(e, (Cast, Op, Load)) for e in walk_values(value))
