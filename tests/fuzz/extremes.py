"""Integers at which arithmetic overflows, wraps or changes sign."""

from __future__ import annotations

from pantile.expr.types import DType

_EVERYWHERE = [2**e + d for e in (7, 8, 15, 16, 31, 32, 56, 62) for d in (-1, 0, 1)]


def extremes(t: DType) -> list[int]:
    """The ends of an integer type, adjacent values, and the ends of smaller types that it holds."""
    near_ends = [t.min, t.min + 1, t.max, t.max - 1, t.max // 2, t.max // 3]
    both_signs = [v for n in _EVERYWHERE for v in (n, -n)]
    return sorted({v for v in [-1, 0, 1, *near_ends, *both_signs] if t.min <= v <= t.max})
