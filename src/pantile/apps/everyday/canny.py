"""Canny's edge detector on a colour picture, without hysteresis: grey, smoothed, gradients, thin ridges, a threshold.

All of it is integers, with OpenCV's fixed-point weights of grey and its fixed-point tangents, so that results are
equal. OpenCV's `Canny` is given one threshold for both of its own: then following edges from strong to weak ones adds
nothing, and what is compared is all that comes before it. OpenCV mirrors the picture for its blur and takes gradients
beyond the edge for zero, where this repeats the edge: four pixels on every side are not compared.
"""

from __future__ import annotations

import pantile as pt

from .filter import TO_GREY, everyday, of_colours

THRESHOLD = 60  # of |dx| + |dy|
TANGENT = 13573  # of 22.5 degrees, times 2**15


def build() -> pt.Pipeline:
    """img[y, x, c] -> 255 on edges, else 0."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint8", ndim=3)
    src = pt.edge(img, axes=(0, 1))
    gray, across, smooth = pt.Func("gray"), pt.Func("across"), pt.Func("smooth")
    red, green, blue = (pt.cast("int32", src[y, x, channel]) for channel in range(3))
    gray[y, x] = pt.cast("int16", (9798 * red + 19235 * green + 3735 * blue + 2**14) >> 15)
    across[y, x] = gray[y, x - 2] + gray[y, x + 2] + 4 * (gray[y, x - 1] + gray[y, x + 1]) + 6 * gray[y, x]
    down = across[y - 2, x] + across[y + 2, x] + 4 * (across[y - 1, x] + across[y + 1, x]) + 6 * across[y, x]
    smooth[y, x] = pt.cast("int16", (pt.cast("uint16", down) + 128) >> 8)

    dx, dy, strength, edges = pt.Func("dx"), pt.Func("dy"), pt.Func("strength"), pt.Func("edges")
    right, left = ([smooth[y + k, x + side] for k in (-1, 0, 1)] for side in (1, -1))
    below, above = ([smooth[y + side, x + k] for k in (-1, 0, 1)] for side in (1, -1))
    dx[y, x] = right[0] + 2 * right[1] + right[2] - left[0] - 2 * left[1] - left[2]
    dy[y, x] = below[0] + 2 * below[1] + below[2] - above[0] - 2 * above[1] - above[2]
    strength[y, x] = pt.abs(dx[y, x]) + pt.abs(dy[y, x])

    def ridge(v: int, u: int, *, strictly: bool = False) -> pt.Expr:
        """Stronger than the neighbour on one side, and not weaker than the one on the other, or stronger, too."""
        here, before, after = strength[y, x], strength[y - v, x - u], strength[y + v, x + u]
        stronger: pt.Expr = (here > before) & (here > after if strictly else here >= after)
        return stronger

    wide, high = pt.cast("int32", pt.abs(dx[y, x])), pt.cast("int32", pt.abs(dy[y, x])) << 15
    falling = (dx[y, x] ^ dy[y, x]) < 0
    slanted = pt.select(falling, ridge(1, -1, strictly=True), ridge(1, 1, strictly=True))
    thin = pt.case(
        (high < wide * TANGENT, ridge(0, 1)),
        (high > wide * (TANGENT + 2**16), ridge(1, 0)),
        otherwise=slanted,
    )
    edges[y, x] = pt.select((strength[y, x] > THRESHOLD) & thin, pt.cast("uint8", 255), pt.cast("uint8", 0))
    return pt.Pipeline(edges, shape=img.shape[:2], name="canny")


DESCRIPTION = "Canny without hysteresis, uint8 interleaved RGB"
APPS = (everyday("canny", DESCRIPTION, build, of_colours, margin=4, photo=TO_GREY),)
