"""The distance of each pixel to the nearest dark one, by two sweeps of a 3 x 3 chamfer (Borgefors, 1986).

Steps along rows and columns are 0.955 long, those along diagonals 1.3693, as OpenCV's `distanceTransform` has them; it
sums them in fixed point, with sixteen bits after the point.
"""

from __future__ import annotations

import numpy as np

import pantile as pt

from ..app import Array, Layout, Photo, Shape
from .filter import everyday

STRAIGHT, DIAGONAL = 0.955, 1.3693
FAR = 1e6


def build() -> pt.Pipeline:
    """img[y, x], zero where it is dark -> distances, as float32."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint8", ndim=2)
    height, width = img.shape
    distance, out = pt.Func("distance"), pt.Func("out")
    distance[y, x] = pt.select(pt.constant(img, 255)[y, x] == 0, 0.0, FAR)
    r = pt.RDom((0, height), (0, width), names="y x")
    _sweep(distance, r.y, r.x, -1)
    _sweep(distance, height - 1 - r.y, width - 1 - r.x, 1)
    out[y, x] = distance[y, x]
    return pt.Pipeline(out, shape=img.shape, name="chamfer")


def _sweep(distance: pt.Func, y: pt.Expr, x: pt.Expr, back: int) -> None:
    """Each pixel may be a step away from one that was visited before it; `back` is the way there."""
    straight = pt.minimum(distance[y + back, x], distance[y, x + back])
    diagonal = pt.minimum(distance[y + back, x - 1], distance[y + back, x + 1])
    nearest = pt.minimum(straight + STRAIGHT, diagonal + DIAGONAL)
    distance[y, x] = pt.minimum(distance[y, x], nearest)


def _dots(_: str, shape: Shape, rng: np.random.Generator) -> Array:
    """One pixel in a thousand is dark, and the first one."""
    img = np.where(rng.random(shape) < 1e-3, 0, 255).astype(np.uint8)
    img.flat[:1] = 0
    return img


APPS = (
    everyday(
        "chamfer",
        "chamfer distance, uint8 grey to float32",
        build,
        lambda h, w: {"img": (h, w)},
        _dots,
        small=(48, 64),  # the reference visits pixel by pixel
        photo=Photo({"img": Layout("mask", "uint8", white=255)}, gives=Layout("grey", "float32", white=None)),
    ),
)
