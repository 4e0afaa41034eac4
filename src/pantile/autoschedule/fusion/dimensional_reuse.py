"""Dimensional reuse (polymage-plus §4.2): how much of what one iteration reads the next one along a dim reads again."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...analysis.access import Access, Index, accesses
from ...graph.nodes import Stage


def dimensional_reuse(stage: Stage, dim: str) -> int:
    """Group-temporal reuse along a dim: reads that are reads of the next iteration as well (Wolf and Lam)."""
    reused = 0
    for d in stage.definitions:
        read = {a for a in accesses(stage, d) if None not in a.indices}
        reused += sum(_points(a) for a in read if _shifted(a, dim) in read)
        reused += sum(_overlap(a, dim) for a in read if _shifted(a, dim) not in read)
    return reused


def _shifted(a: Access, dim: str) -> Access:
    moved = (
        i if i is None or i.dim != dim else Index(dim, i.scale, i.low + i.scale, i.high + i.scale) for i in a.indices
    )
    return replace(a, indices=tuple(moved))


def _points(a: Access) -> int:
    return prod(int(i.high - i.low) + 1 for i in a.indices if i is not None)


def _overlap(a: Access, dim: str) -> int:
    """Points that a read of a whole range, as in a reduction, has in common with itself one iteration later."""
    sizes = [(i.high - i.low + 1 - (i.scale if i.dim == dim else 0)) for i in a.indices if i is not None]
    return prod(max(0, int(n)) for n in sizes)
