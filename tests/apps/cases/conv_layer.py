"""A matrix product of channels per tap of the window."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case


def convolution(img: Array, filter: Array, stride: int = 1) -> Array:
    """img[n, y, x, ci] and filter[ci, ky, kx, co] -> sums over all windows that lie inside."""
    _, rows, columns, _ = filter.shape
    height, width = ((n - k) // stride + 1 for n, k in zip(img.shape[1:3], (rows, columns), strict=True))
    img, filter = img.astype(np.float64), filter.astype(np.float64)
    total = np.zeros((img.shape[0], height, width, filter.shape[3]))
    for ky, kx in np.ndindex(rows, columns):
        total += img[:, ky::stride, kx::stride][:, :height, :width] @ filter[:, ky, kx]
    return total


def same_size(img: Array, filter: Array, stride: int = 1) -> Array:
    """A convolution with zeros around the image, so that every pixel (every so many) has a window."""
    margin = filter.shape[1] // 2
    return convolution(np.pad(img, ((0, 0), (margin, margin), (margin, margin), (0, 0))), filter, stride)


def conv_layer(img: Array, filter: Array, bias: Array) -> Array:
    """Nothing below zero."""
    return np.maximum(convolution(img, filter) + bias, 0)


CASES = {
    "conv_layer": Case(
        conv_layer,
        odd=(
            {"img": (1, 3, 3, 1), "filter": (1, 3, 3, 1), "bias": (1,)},
            {"img": (2, 4, 9, 5), "filter": (5, 3, 3, 19), "bias": (19,)},
            {"img": (1, 7, 21, 6), "filter": (6, 3, 3, 7), "bias": (7,)},
        ),
        large={"img": (2, 19, 33, 21), "filter": (21, 3, 3, 50), "bias": (50,)},
    )
}
