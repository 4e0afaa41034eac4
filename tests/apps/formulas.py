"""The apps as their mathematics is written down, in NumPy and in double precision; nothing of Pantile is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def blur(img: Array) -> Array:
    """Means of three across, then of three down: 16-bit sums that wrap, quotients rounded down."""
    wide = img.astype(np.int64)
    across = sum(wide[:, k : k + img.shape[1] - 2] for k in range(3)) % 2**16 // 3
    down = sum(across[k : k + img.shape[0] - 2] for k in range(3)) % 2**16 // 3
    return down.astype(np.uint16)


def luma(img: Array) -> Array:
    return np.tensordot([0.299, 0.587, 0.114], img.astype(np.float64), 1)


def unsharp(img: Array) -> Array:
    """Colours scaled by sharpened over plain luma; the Gaussian sees repeated edges and is not normalised."""
    sigma, reach = 1.5, np.arange(-3, 4)
    kernel = np.exp(-(reach**2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    gray = luma(img)
    blurred = np.pad(gray, 3, mode="edge")
    for axis in (0, 1):
        blurred = np.apply_along_axis(np.convolve, axis, blurred, kernel, "valid")
    return (2 * gray - blurred) / gray * img


def harris(img: Array) -> Array:
    """Determinant less 0.04 times the squared trace of the structure tensor, three pixels off every border."""
    gray = luma(img)
    smooth, slope = np.array([1, 2, 1]), np.array([-1, 0, 1])
    ix = windowed(gray, np.outer(smooth, slope) / 12)
    iy = windowed(gray, np.outer(slope, smooth) / 12)
    box = np.ones((3, 3))
    sxx, syy, sxy = (windowed(p, box) for p in (ix * ix, iy * iy, ix * iy))
    response = sxx * syy - sxy**2 - 0.04 * (sxx + syy) ** 2
    return response[1:-1, 1:-1]  # two windows take two pixels off, the app leaves out three


def windowed(a: Array, weights: Array) -> Array:
    """Weighted 3x3 windows that lie inside."""
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3))
    return np.einsum("yxij,ij->yx", windows, weights)


FORMULAS: dict[str, Callable[[Array], Array]] = {"blur": blur, "unsharp": unsharp, "harris": harris}
