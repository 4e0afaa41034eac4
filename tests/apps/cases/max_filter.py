"""The largest of all values in a disc, one by one."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case

RADIUS = 26


def max_filter(img: Array) -> Array:
    """Columns of the disc at distance dx reach one row beyond the circle of radius 26.25."""
    margin = RADIUS + 1
    padded = np.pad(img, ((0, 0), (margin, margin), (margin, margin)), mode="edge")
    _, h, w = img.shape
    out = img.copy()
    for dx in range(-RADIUS, RADIUS + 1):
        reach = int(np.count_nonzero(dx**2 + np.arange(RADIUS + 1) ** 2 < 26.25**2))
        for dy in range(-reach, reach + 1):
            out = np.maximum(out, padded[:, margin + dy : margin + dy + h, margin + dx : margin + dx + w])
    return out


CASES = {
    "max_filter": Case(
        max_filter,
        odd=({"img": (3, 1, 1)}, {"img": (3, 5, 61)}, {"img": (2, 67, 19)}),
        large={"img": (1, 131, 277)},
        planes=frozenset({"img"}),
        tolerance=0,
    )
}
