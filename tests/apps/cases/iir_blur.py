"""First-order recursive filters, forwards and backwards along both axes."""

from __future__ import annotations

import numpy as np

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
    values = np.moveaxis(a, axis, 0)
    result, state = np.empty_like(values), values[0]
    for k, value in enumerate(values):
        result[k] = state = ALPHA * value + (1 - ALPHA) * state
    return np.moveaxis(result, 0, axis)


CASES = {
    "iir_blur": Case(
        iir_blur,
        odd=({"img": (3, 1, 1)}, {"img": (2, 1, 37)}, {"img": (3, 5, 3)}, {"img": (3, 45, 71)}),
        large={"img": (3, 333, 523)},
        planes=frozenset({"img"}),
    )
}
