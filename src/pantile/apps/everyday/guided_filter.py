"""The guided filter of a colour picture by itself: smooth where it is smooth, edges kept (He, Sun and Tang, 2010).

Each channel is fitted by a line in every window of 17 x 17 pixels; a pixel is the mean of what the lines around it say.
Beyond its edge the picture is repeated, and what lies there is fitted, too; the rivals' programs repeat the fit
instead, so 16 pixels on every side are not compared.
"""

from __future__ import annotations

import pantile as pt

from .filter import FILTER, everyday, of_colours

RADIUS = 8
SIDE = 2 * RADIUS + 1
SMOOTHNESS = 0.1**2  # the variance, of values from 0 to 1, that counts as an edge


def build() -> pt.Pipeline:
    """img[y, x, c] -> the same, smoother."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "uint8", ndim=3)
    src = pt.edge(img, axes=(0, 1))
    value, square, slope, offset = pt.Func("value"), pt.Func("square"), pt.Func("slope"), pt.Func("offset")
    value[y, x, c] = src[y, x, c] / 255
    square[y, x, c] = value[y, x, c] * value[y, x, c]
    mean = _box("mean", value)
    variance = _box("mean_square", square)[y, x, c] - mean[y, x, c] * mean[y, x, c]
    slope[y, x, c] = variance / (variance + SMOOTHNESS)
    offset[y, x, c] = mean[y, x, c] * (1 - slope[y, x, c])
    out = pt.Func("out")
    line = _box("mean_slope", slope)[y, x, c] * value[y, x, c] + _box("mean_offset", offset)[y, x, c]
    out[y, x, c] = pt.rounding_cast("uint8", pt.clamp(255 * line, 0, 255))
    return pt.Pipeline(out, shape=img.shape, name="guided_filter")


def _box(name: str, f: pt.Func) -> pt.Func:
    """The mean of a window, rows first."""
    y, x, c = pt.vars("y x c")
    r = pt.RDom((-RADIUS, SIDE))
    down, box = pt.Func(f"{name}_down"), pt.Func(name)
    down[y, x, c] = pt.sum(f[y + r[0], x, c], over=r)
    box[y, x, c] = pt.sum(down[y, x + r[0], c], over=r) / SIDE**2
    return box


DESCRIPTION = "guided filter, 17x17, uint8 interleaved RGB"
# Sums in another order round differently.
APPS = (everyday("guided_filter", DESCRIPTION, build, of_colours, off_by=1, margin=2 * RADIUS, photo=FILTER),)
