"""A product in two parts: the factors of a kind, and all others."""

from __future__ import annotations

from collections.abc import Callable

from ..expr.build import binary
from ..expr.nodes import Expr, Op


def factors(term: Expr, is_weight: Callable[[Expr], bool]) -> tuple[Expr | None, Expr | None]:
    """The weights of a term, multiplied, and the rest of it; None where there are none."""
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
