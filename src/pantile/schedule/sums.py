"""Sums that are held in registers while their terms are added: how many at a time, and which terms are unrolled with
them.

    for y, x, r: f[y, x] += img[y + r, x]   ->   for y by 4, x by some vectors:
                                                     for r by 4: 4 x 4 terms of 7 rows of img, each loaded once

A sum that reads everything anew for each value, such as one along the vectors, shares nothing.
"""

from __future__ import annotations

from math import isqrt

from ..analysis.conversions import MANY_TERMS, terms
from ..expr.nodes import Cast, Load, Op
from ..expr.visit import names, walk
from ..graph.nodes import Definition, Stage
from .updates import accumulation, constant

REGISTERS = 16  # number of vector registers that every machine has
MOST_WRITTEN = 512  # most operations and loads in the unrolled terms of a sum, for all channels
MOST_SHARED = 1024  # most operations and loads in the unrolled terms of a block of sums
FEWEST_ROWS = 3  # least number of rows of a block that has something to share


def sums_at_a_time(values: int, registers: int = REGISTERS) -> int:
    """The number of vectors of sums to keep in registers, for `values` values each. They take half of the registers;
    the other half is for the terms."""
    return max(1, registers // 2 // values)


def side_by_side(block: int) -> int:
    """The number of vectors of a register tile in one row. A tile about as wide as high reads least."""
    return power_of_two(isqrt(block))


def shared_terms(
    stage: Stage, update: Definition, dim: str, across: str, block: int, rows: int, strict: bool
) -> dict[str, int]:
    """The reduction loop along which the `rows` of a register tile read the same vectors, and how many of its terms to
    unroll. The result is empty if there are few terms, if they are much code, or if strict sums forbid it."""
    values = accumulation(stage, update)
    in_order = strict and not all(v.is_exact for v in values or ())
    able = update.domain[-1:] if in_order else update.domain
    vectors = [[names(i) for i in e.indices] for e in update.loads if any(across in names(i) for i in e.indices)]
    sharing = [r for r in able if any({dim, r.name} <= index for indices in vectors for index in indices)]
    if not values or not sharing or rows < FEWEST_ROWS or terms(update) < MANY_TERMS:
        return {}
    count = min(rows, constant(sharing[0].extent) or rows)
    return {sharing[0].name: count} if count > 1 and block * count * size(update) <= MOST_SHARED else {}


def size(update: Definition) -> int:
    """The number of operations and loads of one term."""
    return sum(isinstance(e, (Op, Load, Cast)) for e in walk(*update.values))


def power_of_two(n: int) -> int:
    """The largest power of two up to n."""
    return 1 << n.bit_length() - 1
