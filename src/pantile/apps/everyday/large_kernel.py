"""A grey picture convolved with a kernel of 31 x 31 floats that is an input, its edges repeated.

As in most libraries, the kernel is not turned round: a correlation. OpenCV's `filter2D` computes it by Fourier
transforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt

from ..app import BYTES_CHANNELS, Array, Photo, Shape
from .filter import everyday, photograph

SIDE = 31


def build() -> pt.Pipeline:
    """img[y, x], kernel[y, x] -> the sum of products, rounded."""
    y, x = pt.vars("y x")
    img, kernel = pt.Input("img", "uint8", ndim=2), pt.Input("kernel", "float32", ndim=2)
    src = pt.edge(img)
    r = pt.RDom((0, SIDE), (0, SIDE), names="y x")
    total, out = pt.Func("total"), pt.Func("out")
    total[y, x] = pt.sum(src[y + r.y - SIDE // 2, x + r.x - SIDE // 2] * kernel[r.y, r.x], over=r)
    out[y, x] = pt.rounding_cast("uint8", pt.clamp(total[y, x], 0, 255))
    return pt.Pipeline(out, shape=img.shape, name="large_kernel")


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    """No two weights alike, and their sum is one."""
    if name == "img":
        return photograph(name, shape, rng)
    kernel = rng.random(shape, dtype=np.float32)
    return np.asarray(kernel / kernel.sum(), np.float32)


def _disc() -> np.ndarray[Any, Any]:
    """What a lens out of focus makes of a point, for pictures."""
    square = (np.arange(SIDE) - SIDE // 2) ** 2
    inside = square[:, None] + square <= (SIDE / 2) ** 2
    return np.asarray(inside / inside.sum(), np.float32)


APPS = (
    everyday(
        "large_kernel",
        "31x31 convolution by an input, uint8 grey",
        build,
        lambda h, w: {"img": (h, w), "kernel": (SIDE, SIDE)},
        _make,
        off_by=1,  # sums in another order round differently
        photo=Photo({"img": BYTES_CHANNELS}, gives=BYTES_CHANNELS, fixed={"kernel": _disc()}),
    ),
)
