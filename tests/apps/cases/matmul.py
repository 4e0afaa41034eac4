"""Sums of products, in double precision."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case


def matmul(a: Array, b: Array) -> Array:
    """Whatever the inputs hold."""
    return a.astype(np.float64) @ b.astype(np.float64)


_CASE = Case(
    matmul,
    odd=(
        {"a": (1, 1), "b": (1, 1)},
        {"a": (3, 70), "b": (70, 5)},
        {"a": (67, 5), "b": (5, 37)},
    ),
    large={"a": (201, 1031), "b": (1031, 219)},
)
CASES = {"matmul": _CASE, "matmul_half": _CASE}
