"""Whether two systems, or two schedules, computed the same: exactly, or up to what rounding does (docs/language.md).

- What no float takes part in, and what is `strict`, is the same to the last bit.
- Floats differ by no more than rounding: in the last two fifths of the digits of the coarsest type that takes part, of
  the largest magnitude in the array.
- Integers that are made of floats differ by as much as floats of their magnitude would, and by one in no more than a
  tenth of the elements.
- Where steps are on the way (conversions to integers, conditions and places that are made of floats), one element of
  ten thousand may differ by anything: a float that is just at a step may be on either side of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pantile as pt

from .contender import Array

DIGITS = 0.6  # of those that a floating type has, which rounding does not change
BY_ONE = 0.1  # of the elements: integers that may differ by one
BY_ANYTHING = 1e-4  # of the elements: those just at a step


def disagreement(
    got: Sequence[Array],
    expected: Sequence[Array],
    roundings: Sequence[pt.Rounding],
    tolerance: float | None = None,
    off_by: int = 0,
) -> str | None:
    """How results differ from what is expected, or None.

    An app may allow more: floats may differ by `tolerance` times the largest magnitude in the array, integers by
    `off_by`, wherever they do.
    """
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    pairs = zip(got, expected, roundings, strict=True)
    return next((text for g, e, r in pairs if (text := _difference(g, e, r, tolerance, off_by))), None)


def inner(pictures: Sequence[Array], margin: int) -> list[Array]:
    """Pictures without so many rows and columns at every edge."""
    return [a[margin : a.shape[0] - margin, margin : a.shape[1] - margin] if margin else a for a in pictures]


def _difference(got: Array, expected: Array, rounding: pt.Rounding, tolerance: float | None, off_by: int) -> str | None:
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    allowed = rounding.epsilon**DIGITS if tolerance is None else tolerance
    if np.issubdtype(expected.dtype, np.floating):
        wrong = _apart(got, expected, allowed)
    else:
        wrong = _integers_apart(got, expected, rounding, allowed, off_by)
    few = int(BY_ANYTHING * wrong.size) if rounding.has_steps else 0
    if np.count_nonzero(wrong) <= few:
        return None
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return f"{got[first]} instead of {expected[first]} at {list(first)}; {wrong.sum()} of {wrong.size} elements differ"


def _apart(got: Array, expected: Array, tolerance: float) -> NDArray[np.bool_]:
    g, e = got.astype(np.float64), expected.astype(np.float64)
    return ~np.isclose(g, e, rtol=0, atol=tolerance * _magnitude(e), equal_nan=True)


def _integers_apart(
    got: Array, expected: Array, rounding: pt.Rounding, tolerance: float, off_by: int
) -> NDArray[np.bool_]:
    if rounding.epsilon == 0 and off_by == 0:
        return np.not_equal(got, expected)
    distance = np.maximum(got, expected) - np.minimum(got, expected) if got.dtype != bool else got ^ expected
    if rounding.epsilon == 0:
        return distance > off_by
    limit = max(off_by, int(tolerance * _magnitude(expected)))
    wrong = distance > limit
    return wrong if np.count_nonzero(wrong) > max(1, BY_ONE * wrong.size) else distance > max(1, limit)


def _magnitude(a: NDArray[Any]) -> float:
    """The largest finite one."""
    return float(np.max(np.abs(a.astype(np.float64)), initial=0.0, where=np.isfinite(a)))
