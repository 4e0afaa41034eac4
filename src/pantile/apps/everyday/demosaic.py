"""Demosaicing of a sensor's bytes by Malvar, He and Cutler (2004): linear 5 x 5 filters, one for each missing colour.

Red and green in even rows, green and blue in odd ones. Beyond the edge the mosaic is mirrored, which keeps its colours
in their places. Libraries demosaic in other ways: the rival is the same integers in Numba, and results are equal.
"""

from __future__ import annotations

import pantile as pt

from ..app import PIXELS, Layout, Photo
from .filter import everyday


def build() -> pt.Pipeline:
    """raw[y, x] -> out[y, x, c]."""
    y, x, c = pt.vars("y x c")
    raw = pt.Input("raw", "uint8", ndim=2)
    src = pt.mirror(raw)
    wide = pt.Func("wide")
    wide[y, x] = pt.cast("int16", src[y, x])

    # Sixteen times each filter.
    here = wide[y, x]
    beside, above = wide[y, x - 1] + wide[y, x + 1], wide[y - 1, x] + wide[y + 1, x]
    beside2, above2 = wide[y, x - 2] + wide[y, x + 2], wide[y - 2, x] + wide[y + 2, x]
    corners = wide[y - 1, x - 1] + wide[y - 1, x + 1] + wide[y + 1, x - 1] + wide[y + 1, x + 1]
    green = 8 * here + 4 * (beside + above) - 2 * (beside2 + above2)
    along_row = 10 * here + 8 * beside - 2 * (corners + beside2) + above2
    along_column = 10 * here + 8 * above - 2 * (corners + above2) + beside2
    opposite = 12 * here + 4 * corners - 3 * (beside2 + above2)

    even_row, even_column = y % 2 == 0, x % 2 == 0
    red = pt.case(
        (even_row & even_column, 16 * here), (even_row, along_row), (even_column, along_column), otherwise=opposite
    )
    blue = pt.case(
        (even_row & even_column, opposite), (even_row, along_column), (even_column, along_row), otherwise=16 * here
    )
    middle = pt.select((y + x) % 2 == 0, green, 16 * here)
    out = pt.Func("out")
    colour = pt.case((c == 0, red), (c == 1, middle), otherwise=blue)
    out[y, x, c] = pt.cast("uint8", pt.clamp((colour + 8) >> 4, 0, 255))
    return pt.Pipeline(out, shape=(*raw.shape, 3), name="demosaic")


APPS = (
    everyday(
        "demosaic",
        "Malvar's demosaicing, uint8 mosaic to interleaved RGB",
        build,
        lambda h, w: {"raw": (h, w)},
        photo=Photo({"raw": Layout("rggb", "uint8", white=255)}, gives=PIXELS),
    ),
)
