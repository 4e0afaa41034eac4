"""Determinant less 0.04 times the squared trace of the structure tensor."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case
from .colours import luma


def harris(img: Array) -> Array:
    """Three pixels off every border: two windows take two pixels off, the app leaves out one more."""
    return harris_polymage(luma(img))[1:-1, 1:-1]


def harris_polymage(img: Array) -> Array:
    """Two pixels off every border."""
    gray = img.astype(np.float64)
    smooth, slope = np.array([1, 2, 1]), np.array([-1, 0, 1])
    ix = windowed(gray, np.outer(smooth, slope) / 12)
    iy = windowed(gray, np.outer(slope, smooth) / 12)
    box = np.ones((3, 3))
    sxx, syy, sxy = (windowed(p, box) for p in (ix * ix, iy * iy, ix * iy))
    return sxx * syy - sxy**2 - 0.04 * (sxx + syy) ** 2


def windowed(a: Array, weights: Array) -> Array:
    """Weighted 3x3 windows that lie inside."""
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3))
    return np.einsum("yxij,ij->yx", windows, weights)


CASES = {
    "harris": Case(
        harris,
        odd=({"img": (3, 7, 7)}, {"img": (3, 7, 73)}, {"img": (3, 11, 9)}, {"img": (3, 19, 107)}),
        large={"img": (3, 337, 527)},
        planes=frozenset({"img"}),
    ),
    "harris_polymage": Case(
        harris_polymage,
        odd=({"img": (5, 5)}, {"img": (5, 71)}, {"img": (17, 105)}),
        large={"img": (337, 527)},
    ),
}
