"""Means of three across, then of three down."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case


def blur(img: Array) -> Array:
    """16-bit sums that wrap, quotients rounded down."""
    wide = img.astype(np.int64)
    across = sum(wide[:, k : k + img.shape[1] - 2] for k in range(3)) % 2**16 // 3
    down = sum(across[k : k + img.shape[0] - 2] for k in range(3)) % 2**16 // 3
    return down.astype(np.uint16)


CASES = {
    "blur": Case(
        blur,
        odd=({"img": (3, 3)}, {"img": (3, 69)}, {"img": (7, 5)}, {"img": (15, 103)}),
        large={"img": (333, 523)},
    )
}
