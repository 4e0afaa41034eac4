"""Extents of vectors and unrolled loops are compile-time constants, stated by a split or derived from regions."""

from __future__ import annotations

from math import prod

from ...expr.linear import simplify
from ...expr.nodes import Const, Expr
from ...schedule.limits import MOST_COPIES, MOST_LANES, MOST_VALUES
from ...schedule.plan import Loop
from ...target.kinds import WRITTEN_OUT, Kind
from ..refuse import not_constant, too_many_values
from .loops import DefinitionLoops


def is_constant(loops: DefinitionLoops, loop: Loop, extent: Expr, is_part: bool) -> bool:
    """Whether a vector or unrolled loop has a constant extent of a sensible size; others are refused.

    With `is_part`, the tail of a split or a version for small arrays is built, in which such loops may run serially.
    """
    if not isinstance(extent, Const):
        if is_part:
            return False
        raise not_constant(loops.stage, loop, extent)
    lanes, copies = (_product(loops, kind) for kind in WRITTEN_OUT)
    if lanes > MOST_LANES or copies > MOST_COPIES or lanes * copies > MOST_VALUES:
        raise too_many_values(loops.stage, loop, lanes, copies)
    return True


def _product(loops: DefinitionLoops, kind: Kind) -> int:
    """The product of the known trip counts of all loops of a kind."""
    ranges = [loops.ranges[x.name] for x in loops.nest.loops if x.kind is kind and x.name in loops.ranges]
    extents = [simplify(r.high - r.low + 1) for r in ranges]
    return prod(int(e.value) for e in extents if isinstance(e, Const))
