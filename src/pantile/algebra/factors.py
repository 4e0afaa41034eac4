"""Split a product into its weights and its other factors."""

from __future__ import annotations

from collections.abc import Callable

from ..expr.build import binary
from ..expr.nodes import Expr, Op


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
