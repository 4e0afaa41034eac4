"""Dense optical flow by Lucas and Kanade, one level: how far each 9 x 9 window of a grey frame moves to the next one.

Least squares over the window for dx*u + dy*v = -dt, with a small ridge on both unknowns, so that windows without
texture do not move. No library has it dense; the rivals' programs are the same formulas. Beyond the edge the frames are
repeated, while those programs repeat the products of gradients: five pixels on every side are not compared.
"""

from __future__ import annotations

import pantile as pt

from ..app import BYTES_GREY, Layout, Photo
from .filter import everyday

RADIUS = 4
SIDE = 2 * RADIUS + 1
RIDGE = 10.0  # in squares of grey levels


def build() -> pt.Pipeline:
    """Frames [y, x] -> flow[y, x, 0 or 1]: along x, and along y."""
    y, x, c = pt.vars("y x c")
    before, after = pt.Input("before", "uint8", ndim=2), pt.Input("after", "uint8", ndim=2)
    was, now = pt.edge(before), pt.edge(after)
    dx, dy, dt = pt.Func("dx"), pt.Func("dy"), pt.Func("dt")
    dx[y, x] = (pt.cast("float32", was[y, x + 1]) - was[y, x - 1]) / 2
    dy[y, x] = (pt.cast("float32", was[y + 1, x]) - was[y - 1, x]) / 2
    dt[y, x] = pt.cast("float32", now[y, x]) - was[y, x]
    xx, xy, yy = _mean("xx", dx, dx), _mean("xy", dx, dy), _mean("yy", dy, dy)
    xt, yt = _mean("xt", dx, dt)[y, x], _mean("yt", dy, dt)[y, x]
    a, b, d = xx[y, x] + RIDGE, xy[y, x], yy[y, x] + RIDGE
    flow = pt.Func("flow")
    flow[y, x, c] = pt.select(c == 0, b * yt - d * xt, b * xt - a * yt) / (a * d - b * b)
    return pt.Pipeline(flow, shape=(*before.shape, 2), name="lucas_kanade")


def _mean(name: str, f: pt.Func, g: pt.Func) -> pt.Func:
    """The mean of a product over the window."""
    y, x = pt.vars("y x")
    r = pt.RDom((-RADIUS, SIDE))
    product, down, mean = pt.Func(f"{name}_product"), pt.Func(f"{name}_down"), pt.Func(name)
    product[y, x] = f[y, x] * g[y, x]
    down[y, x] = pt.sum(product[y + r[0], x], over=r)
    mean[y, x] = pt.sum(down[y, x + r[0]], over=r) / SIDE**2
    return mean


# In a picture, steps along x are red and along y green; no motion is grey.
FLOW = Layout("rgb", "float32", white=4, black=-4, interleaved=True)

APPS = (
    everyday(
        "lucas_kanade",
        "dense optical flow, one level, 9x9, uint8 grey",
        build,
        lambda h, w: {"before": (h, w), "after": (h, w)},
        tolerance=1e-3,  # determinants of nearly straight edges lose digits
        margin=RADIUS + 1,
        photo=Photo({"before": BYTES_GREY, "after": BYTES_GREY}, gives=FLOW),
    ),
)
