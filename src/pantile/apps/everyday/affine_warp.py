"""A colour picture turned and moved, by bilinear interpolation, its edges repeated.

`matrix` leads from a place in the result to the place in the source, as OpenCV's `warpAffine` takes it with
`WARP_INVERSE_MAP`.
"""

from __future__ import annotations

import numpy as np

import pantile as pt

from ..app import PIXELS, Array, Photo, Shape
from .filter import colours, everyday, photograph

TURN = ((0.985, -0.173, 12.25), (0.173, 0.985, -7.5))  # by ten degrees


def build() -> pt.Pipeline:
    """img[y, x, c], matrix[2, 3] of x, y and 1 -> out[y, x, c]."""
    y, x, c = pt.vars("y x c")
    img, matrix = pt.Input("img", "uint8", ndim=3), pt.Input("matrix", "float32", ndim=2)
    src = pt.edge(img, axes=(0, 1))
    across = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]
    down = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]
    left, top = pt.cast("int32", pt.floor(across)), pt.cast("int32", pt.floor(down))
    u, v = across - pt.floor(across), down - pt.floor(down)
    upper, lower = (pt.lerp(src[row, left, c], src[row, left + 1, c], u) for row in (top, top + 1))
    out = pt.Func("out")
    out[y, x, c] = pt.rounding_cast("uint8", pt.lerp(upper, lower, v))
    return pt.Pipeline(out, shape=img.shape, name="affine_warp")


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    return photograph(name, shape, rng) if name == "img" else np.array(TURN, np.float32)


APPS = (
    everyday(
        "affine_warp",
        "rotation by bilinear interpolation, uint8 interleaved RGB",
        build,
        lambda h, w: {"img": colours(h, w), "matrix": (2, 3)},
        _make,
        off_by=1,
        photo=Photo({"img": PIXELS}, gives=PIXELS, fixed={"matrix": np.array(TURN, np.float32)}),
    ),
)
