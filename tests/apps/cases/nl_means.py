"""Means over 7x7 offsets, weighted by e to the mean squared difference of 7x7 patches."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case

REACH = 3


def nl_means(img: Array, sigma: float = 0.12) -> Array:
    """Patches and offsets both reach three pixels; edges repeat."""
    _, h, w = img.shape
    padded = np.pad(img.astype(np.float64), ((0, 0), (2 * REACH,) * 2, (2 * REACH,) * 2), mode="edge")

    def moved(dy: int, dx: int) -> Array:
        return padded[:, REACH + dy : h + 3 * REACH + dy, REACH + dx : w + 3 * REACH + dx]

    total, weights = np.zeros(img.shape), np.zeros((h, w))
    for dy in range(-REACH, REACH + 1):
        for dx in range(-REACH, REACH + 1):
            apart = ((moved(0, 0) - moved(dy, dx)) ** 2).sum(axis=0)
            patches = np.lib.stride_tricks.sliding_window_view(apart, (2 * REACH + 1, 2 * REACH + 1))
            weight = np.exp(-patches.sum(axis=(2, 3)) / (sigma * (2 * REACH + 1)) ** 2)
            total += weight * moved(dy, dx)[:, REACH : REACH + h, REACH : REACH + w]
            weights += weight
    return np.clip(total / weights, 0, 1)


CASES = {
    "nl_means": Case(
        nl_means,
        odd=({"img": (3, 1, 1)}, {"img": (3, 3, 41)}, {"img": (3, 37, 19)}),
        large={"img": (3, 69, 265)},
        planes=frozenset({"img"}),
    )
}
