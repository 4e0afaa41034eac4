"""Colours scaled by sharpened over plain luma."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case
from .colours import luma


def unsharp(img: Array) -> Array:
    """The Gaussian sees repeated edges and is not normalised."""
    sigma, reach = 1.5, np.arange(-3, 4)
    kernel = np.exp(-(reach**2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    gray = luma(img)
    blurred = np.pad(gray, 3, mode="edge")
    for axis in (0, 1):
        blurred = np.apply_along_axis(np.convolve, axis, blurred, kernel, "valid")
    return (2 * gray - blurred) / gray * img


def unsharp_polymage(img: Array, threshold: float = 0.001, weight: float = 3) -> Array:
    """Two pixels off every border; where a pixel hardly differs from its blur, it stays."""
    wide = img.astype(np.float64)
    blurred = wide
    for axis in (1, 2):
        blurred = np.apply_along_axis(np.convolve, axis, blurred, np.array([1, 4, 6, 4, 1]) / 16, "valid")
    inner = wide[:, 2:-2, 2:-2]
    return np.where(abs(inner - blurred) < threshold, inner, inner * (1 + weight) - blurred * weight)


CASES = {
    "unsharp": Case(
        unsharp,
        odd=({"img": (3, 1, 1)}, {"img": (3, 1, 67)}, {"img": (3, 5, 3)}, {"img": (3, 13, 101)}),
        large={"img": (3, 331, 521)},
        planes=frozenset({"img"}),
    ),
    "unsharp_polymage": Case(
        unsharp_polymage,
        odd=({"img": (3, 5, 5)}, {"img": (3, 5, 67)}, {"img": (3, 17, 101)}),
        large={"img": (3, 331, 521)},
        planes=frozenset({"img"}),
    ),
}
