"""Fluxes through the six faces of every inner cell."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case


def minifluxdiv(phi: Array) -> Array:
    result = phi[:, 2:-2, 2:-2, 2:-2].copy()
    for axis, velocity in ((1, 3), (2, 2), (3, 1)):
        inner = tuple(slice(2, -2) if a in (1, 2, 3) and a != axis else slice(None) for a in range(4))
        cells = phi[inner]
        count = cells.shape[axis]
        a, b, c, d = (np.take(cells, np.arange(k, count - 3 + k), axis) for k in range(4))
        face = (7 * (b + c) - (a + d)) / 12
        result += np.diff(face * face[velocity], axis=axis)
    return result


CASES = {
    "minifluxdiv": Case(
        minifluxdiv,
        odd=({"phi": (5, 5, 5, 5)}, {"phi": (5, 6, 7, 23)}, {"phi": (5, 11, 9, 13)}),
        large={"phi": (5, 23, 21, 71)},
        tolerance=1e-12,
    )
}
