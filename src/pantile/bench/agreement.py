"""Whether two systems computed the same, up to what an app allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .contender import Array


def disagreement(got: Sequence[Array], expected: Sequence[Array], tolerance: float, off_by: int = 0) -> str | None:
    """How results differ from what is expected, or None.

    Floats may differ by `tolerance` times the largest magnitude in the array, integers by `off_by`.
    """
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    return next(
        (text for g, e in zip(got, expected, strict=True) if (text := _difference(g, e, tolerance, off_by))), None
    )


def inner(pictures: Sequence[Array], margin: int) -> list[Array]:
    """Pictures without so many rows and columns at every edge."""
    return [a[margin : a.shape[0] - margin, margin : a.shape[1] - margin] if margin else a for a in pictures]


def _difference(got: Array, expected: Array, tolerance: float, off_by: int) -> str | None:
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    wrong = ~_close(got, expected, tolerance, off_by)
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return f"{got[first]} instead of {expected[first]} at {list(first)}; {wrong.sum()} of {wrong.size} elements differ"


def _close(got: Array, expected: Array, tolerance: float, off_by: int) -> NDArray[np.bool_]:
    if not np.issubdtype(expected.dtype, np.floating):
        return np.equal(got, expected) if off_by == 0 else _distance(got, expected) <= off_by
    g, e = got.astype(np.float64), expected.astype(np.float64)
    return np.isclose(g, e, rtol=0, atol=tolerance * _magnitude(e), equal_nan=True)


def _distance(a: Array, b: Array) -> Array:
    """Of integers, without overflow."""
    return np.maximum(a, b) - np.minimum(a, b)


def _magnitude(a: NDArray[np.floating[Any]]) -> float:
    """The largest finite one."""
    return float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
