"""Convolution after convolution, in double precision."""

from __future__ import annotations

import numpy as np

from pantile.apps.vdsr import shapes

from ..case import Array, Case
from .conv_layer import same_size


def vdsr(img: Array, first: Array, filters: Array, biases: Array, last: Array, last_bias: Array) -> Array:
    """The image plus what the last layer gives; nothing below zero before that."""
    features = np.maximum(same_size(img, first) + biases[0], 0)
    for filter, bias in zip(filters, biases[1:], strict=True):
        features = np.maximum(same_size(features, filter) + bias, 0)
    return img + same_size(features, last) + last_bias


CASES = {
    "vdsr": Case(
        vdsr,
        odd=(shapes(1, 1, 1), shapes(2, 3, 9), shapes(1, 5, 11)),
        large=shapes(1, 19, 37),
        tolerance=1e-4,
        slow=True,
    ),
}
