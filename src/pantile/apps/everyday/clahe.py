"""Contrast-limited adaptive histogram equalization of a grey picture: an 8 x 8 grid of tiles, as OpenCV's CLAHE.

Each tile's histogram is cut off at a limit, what was cut off is spread over all levels, and its running sum maps levels
to levels; a pixel is the bilinear mix of what the maps of the four tiles around it say. Where the grid does not divide
the picture, tiles are rounded up and the picture mirrored to fill them.
"""

from __future__ import annotations

import pantile as pt

from .filter import OF_EACH, everyday, of_grey

TILES = 8
LIMIT = 2.0  # times the mean height of a histogram


def build() -> pt.Pipeline:
    """img[y, x] -> the same with more contrast."""
    y, x, ty, tx, i = pt.vars("y x ty tx i")
    img = pt.Input("img", "uint8", ndim=2)
    src = pt.mirror(img)
    height, width = (img.shape[0] + TILES - 1) // TILES, (img.shape[1] + TILES - 1) // TILES
    area = height * width

    histogram, excess, even, level = pt.Func("histogram"), pt.Func("excess"), pt.Func("even"), pt.Func("level")
    r = pt.RDom((0, height), (0, width), names="y x")
    histogram[ty, tx, i] = 0
    histogram[ty, tx, src[ty * height + r.y, tx * width + r.x]] += 1
    limit = pt.maximum(pt.cast("int32", LIMIT * area / 256), 1)
    k = pt.RDom((0, 256))
    excess[ty, tx] = pt.sum(pt.maximum(histogram[ty, tx, k[0]] - limit, 0), over=k)
    rest = excess[ty, tx] % 256
    step = pt.maximum(256 // pt.maximum(rest, 1), 1)
    spread = pt.select((i % step == 0) & (i // step < rest), 1, 0)
    even[ty, tx, i] = pt.minimum(histogram[ty, tx, i], limit) + excess[ty, tx] // 256 + spread
    running = pt.Func("running")
    s = pt.RDom((1, 255))
    running[ty, tx, i] = even[ty, tx, i]
    running[ty, tx, s[0]] += running[ty, tx, s[0] - 1]
    level[ty, tx, i] = pt.rounding_cast("uint8", pt.minimum(running[ty, tx, i] * (255 / area), 255))

    def between(place: pt.Expr, extent: pt.Expr) -> tuple[pt.Expr, pt.Expr, pt.Expr]:
        """The two tiles whose centres are nearest, and the weight of the second."""
        grid = (place / extent) - 0.5
        first = pt.floor(grid)
        tile = pt.cast("int32", first)
        return pt.clamp(tile, 0, TILES - 1), pt.clamp(tile + 1, 0, TILES - 1), grid - first

    top, bottom, v = between(y, height)
    left, right, u = between(x, width)
    out = pt.Func("out")
    pixel = img[y, x]
    upper, lower = (pt.lerp(level[row, left, pixel], level[row, right, pixel], u) for row in (top, bottom))
    out[y, x] = pt.rounding_cast("uint8", pt.lerp(upper, lower, v))
    return pt.Pipeline(out, name="clahe")


DESCRIPTION = "contrast-limited adaptive histogram equalization, uint8 grey"
# Halves round as the last digit says.
APPS = (everyday("clahe", DESCRIPTION, build, of_grey, off_by=1, photo=OF_EACH),)
