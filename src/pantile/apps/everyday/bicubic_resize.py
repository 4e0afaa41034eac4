"""A colour picture made half as large again by bicubic interpolation, its edges repeated.

The cubic is that of OpenCV's `resize`, with a slope of -0.75; OpenCV rounds weights to eleven bits.
"""

from __future__ import annotations

import pantile as pt

from ..app import PIXELS, Photo
from .filter import colours, everyday

SLOPE = -0.75


def build() -> pt.Pipeline:
    """img[y, x, c] -> the same, 3/2 times as high and wide."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "uint8", ndim=3)
    height, width, channels = img.shape
    across, out = pt.Func("across"), pt.Func("out")
    across[y, x, c] = sum([w * img[y, column, c] for column, w in _taps(x, width)])
    down = sum([w * across[row, x, c] for row, w in _taps(y, height)])
    out[y, x, c] = pt.rounding_cast("uint8", pt.clamp(down, 0, 255))
    return pt.Pipeline(out, shape=(height * 3 // 2, width * 3 // 2, channels), name="bicubic_resize")


def _taps(place: pt.Var, extent: pt.Expr | int) -> list[tuple[pt.Expr, pt.Expr]]:
    """The four pixels around a place in the source, with their weights."""
    position = (place + 0.5) / 1.5 - 0.5
    floor = pt.floor(position)
    f = position - floor
    weights = [_outer(1 + f), _inner(f), _inner(1 - f), _outer(2 - f)]
    return [(pt.clamp(pt.cast("int32", floor) + k - 1, 0, extent - 1), w) for k, w in enumerate(weights)]


def _inner(d: pt.Expr) -> pt.Expr:
    return ((SLOPE + 2) * d - (SLOPE + 3)) * d * d + 1


def _outer(d: pt.Expr) -> pt.Expr:
    return ((SLOPE * d - 5 * SLOPE) * d + 8 * SLOPE) * d - 4 * SLOPE


APPS = (
    everyday(
        "bicubic_resize",
        "bicubic enlargement by 3/2, uint8 interleaved RGB",
        build,
        lambda h, w: {"img": colours(h // 3 * 2, w // 3 * 2)},
        off_by=1,
        photo=Photo({"img": PIXELS}, gives=PIXELS),
    ),
)
