"""Whether two systems computed the same: integers exactly, floats up to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .contender import Array

# The largest error allowed for floats, relative to the largest magnitude in the array.
ROUNDING = 1e-5


def disagreement(got: Sequence[Array], expected: Sequence[Array]) -> str | None:
    """How results differ from what is expected, or None."""
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    return next((text for g, e in zip(got, expected, strict=True) if (text := _difference(g, e))), None)


def _difference(got: Array, expected: Array) -> str | None:
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    wrong = ~_close(got, expected)
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return f"{got[first]} instead of {expected[first]} at {list(first)}; {wrong.sum()} of {wrong.size} elements differ"


def _close(got: Array, expected: Array) -> NDArray[np.bool_]:
    if not np.issubdtype(expected.dtype, np.floating):
        return np.equal(got, expected)
    g, e = got.astype(np.float64), expected.astype(np.float64)
    return np.isclose(g, e, rtol=0, atol=ROUNDING * _magnitude(e), equal_nan=True)


def _magnitude(a: NDArray[np.floating[Any]]) -> float:
    """The largest finite one."""
    return float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
