"""Covariance and gemver, as NumPy has them."""

from __future__ import annotations

import numpy as np

from pantile.apps.gemver import shapes

from ..case import Array, Case


def covariance(data: Array) -> Array:
    return np.atleast_2d(np.cov(data, rowvar=False))


def gemver(
    a: Array, u1: Array, v1: Array, u2: Array, v2: Array, w: Array, x: Array, y: Array, z: Array
) -> tuple[Array, Array]:
    a = a + np.outer(u1, v1) + np.outer(u2, v2)
    x = x + 1.2 * a.T @ y + z
    return x, w + 1.5 * a @ x


CASES = {
    "covariance": Case(
        covariance, odd=({"data": (2, 1)}, {"data": (5, 7)}, {"data": (19, 67)}), large={"data": (521, 149)}
    ),
    "gemver": Case(gemver, odd=(shapes(1, 1), shapes(3, 67), shapes(71, 5)), large=shapes(333, 521), tolerance=1e-12),
}
