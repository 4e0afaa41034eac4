"""What computing something costs, in instructions per vector: the same for every type, whose vectors are as wide."""

from __future__ import annotations

from ..expr.nodes import Cast, Expr, Load, Op
from ..expr.visit import children

# To store a vector and to load it again, at a time when it may have left the cache.
STORED = 24


def operations(value: Expr) -> int:
    """Of evaluating it once: arithmetic, conversions and loads, without what their places are made of."""
    return sum(isinstance(e, (Cast, Op, Load)) for e in evaluated(value))


def evaluated(*roots: Expr) -> list[Expr]:
    """The nodes that values are made of, each once, without those of indices."""
    found: dict[int, Expr] = {}
    pending = list(roots)
    while pending:
        e = pending.pop()
        if id(e) not in found:
            found[id(e)] = e
            pending += () if isinstance(e, Load) else children(e)
    return list(found.values())
