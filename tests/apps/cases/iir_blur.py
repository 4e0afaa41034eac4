"""First-order recursive filters, forwards and backwards along both axes."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from ..case import Array, Case

ALPHA = 0.5


def iir_blur(img: Array) -> Array:
    """Each filter starts in the steady state of its first value."""
    result = img.astype(np.float64)
    for axis in (1, 2):
        for _ in ("forwards", "backwards"):
            result = np.flip(smoothed(result, axis), axis)
    return result


def smoothed(a: Array, axis: int) -> Array:
    first = np.take(a, [0], axis)
    return lfilter([ALPHA], [1, ALPHA - 1], a, axis, zi=(1 - ALPHA) * first)[0]


CASES = {
    "iir_blur": Case(
        iir_blur,
        odd=({"img": (3, 1, 1)}, {"img": (2, 1, 37)}, {"img": (3, 5, 3)}, {"img": (3, 45, 71)}),
        large={"img": (3, 333, 523)},
        planes=frozenset({"img"}),
    )
}
