"""Sums over windows, made mean 0 and variance 1, scaled and shifted."""

from __future__ import annotations

from functools import partial

import numpy as np

from pantile.apps.conv_bn_relu import shapes

from ..case import Array, Case
from .conv_layer import same_size


def conv_bn_relu(
    stride: int, img: Array, filter: Array, gamma: Array, beta: Array, mean: Array, variance: Array
) -> Array:
    """Nothing below zero."""
    sums = same_size(img, filter, stride)
    return np.maximum(gamma * (sums - mean) / np.sqrt(variance.astype(np.float64) + 1e-5) + beta, 0)


def _case(size: int, stride: int) -> Case:
    return Case(
        partial(conv_bn_relu, stride),
        odd=(shapes(size, 1, 1, 1, 1), shapes(size, 2, 9, 3, 17), shapes(size, 1, 12, 6, 18)),
        large=shapes(size, 2, 23, 9, 37),
    )


CASES = {
    "conv_bn_relu": _case(3, 1),
    "conv_bn_relu_stride2": _case(3, 2),
    "conv_bn_relu_1x1": _case(1, 1),
    "conv_bn_relu_1x1_stride2": _case(1, 2),
    "conv_bn_relu_7x7": _case(7, 2),
}
