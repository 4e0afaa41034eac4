"""Why a stated domain is empty, and what inputs would fill it."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ..expr.nodes import Expr
from ..expr.visit import names
from .interval import Interval, Scope, interval
from .messages import MOST, readable


def how_to_fill(extents: Sequence[Expr], scope: Scope, sizes: Container[str]) -> str:
    """The remedy for a domain some of whose extents are not positive; `sizes` names the inputs' extents.

    img.shape[0]//128, img.shape[1]//128 at a shape of (40, 200)
        ->  img.shape[0]//128 is 0: pass arrays with img.shape[0] >= 128
    """
    empty = [(e, interval(e, scope).low) for e in extents if interval(e, scope).low < 1]
    reasons = " and ".join(f"{readable(e)} is {value}" for e, value in empty if names(e))
    least = [_least_size(e, scope, sizes) for e, _ in empty]
    if None in least:
        return f"{reasons}: pass larger arrays, or state a larger domain" if reasons else "state a larger domain"
    return f"{reasons}: pass arrays with {' and '.join(f'{readable(name)} >= {n}' for name, n in filter(None, least))}"


def _least_size(extent: Expr, scope: Scope, sizes: Container[str]) -> tuple[str, int] | None:
    """The one size that `extent` depends on, and from where on it is positive; None if that cannot be told."""
    if len(names(extent)) != 1:
        return None
    (name,) = names(extent)

    def suffices(size: int) -> bool:
        low = interval(extent, {**scope, name: Interval(size, MOST)}).low
        return low is not None and bool(low >= 1)

    if name not in sizes or not suffices(MOST):
        return None
    too_small, enough = -1, MOST
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        too_small, enough = (too_small, middle) if suffices(middle) else (middle, enough)
    return name, enough
