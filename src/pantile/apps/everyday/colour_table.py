"""A colour picture graded by a table of 33 x 33 x 33 colours, between which colours are interpolated linearly along
each axis, as `.cube` files of films and photographs are applied."""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt

from ..app import PIXELS, Array, Photo, Shape
from .filter import colours, everyday, photograph

SIZE = 33  # colours along each axis


def build() -> pt.Pipeline:
    """img[y, x, c], table[red, green, blue, c] -> out[y, x, c]."""
    y, x, c = pt.vars("y x c")
    img, table = pt.Input("img", "uint8", ndim=3), pt.Input("table", "float32", shape=(SIZE, SIZE, SIZE, 3))
    place = [img[y, x, k] * ((SIZE - 1) / 255) for k in range(3)]
    first = [pt.minimum(pt.cast("int32", p), SIZE - 2) for p in place]
    u, v, w = (p - i for p, i in zip(place, first, strict=True))
    red, green, blue = first

    def along_blue(i: int, j: int) -> pt.Expr:
        return pt.lerp(table[red + i, green + j, blue, c], table[red + i, green + j, blue + 1, c], w)

    dark, light = (pt.lerp(along_blue(i, 0), along_blue(i, 1), v) for i in range(2))
    out = pt.Func("out")
    out[y, x, c] = pt.saturating_cast("uint8", pt.lerp(dark, light, u) * 255 + 0.5)
    return pt.Pipeline(out, shape=img.shape, name="colour_table")


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    """A picture, or a table that turns colours a little and lifts shadows."""
    return photograph(name, shape, rng) if name == "img" else _graded()


def _graded() -> np.ndarray[Any, Any]:
    red, green, blue = np.meshgrid(*[np.linspace(0, 1, SIZE, dtype=np.float32)] * 3, indexing="ij")
    return np.ascontiguousarray(np.stack([red**0.8, 0.9 * green + 0.1 * blue, blue**1.2], axis=-1), np.float32)


APPS = (
    everyday(
        "colour_table",
        "colours graded by a table of 33x33x33, trilinear, uint8 interleaved RGB",
        build,
        lambda h, w: {"img": colours(h, w), "table": (SIZE, SIZE, SIZE, 3)},
        _make,
        off_by=1,
        photo=Photo({"img": PIXELS}, gives=PIXELS, fixed={"table": _graded()}),
    ),
)
