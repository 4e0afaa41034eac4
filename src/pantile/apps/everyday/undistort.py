"""A colour picture without the distortion of its lens: each pixel comes from where the lens has put it, farther from
the middle or nearer to it, by bilinear interpolation, with edges repeated."""

from __future__ import annotations

import pantile as pt

from .filter import FILTER, everyday, of_colours


def build() -> pt.Pipeline:
    """img[y, x, c], coefficients k1 and k2 of the second and fourth power of the distance in half widths, as OpenCV's
    camera models have them -> out[y, x, c]."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "uint8", ndim=3)
    k1, k2 = pt.Param("k1", "float32", default=-0.12), pt.Param("k2", "float32", default=0.03)
    middle_y, middle_x = img.shape[0] * 0.5, img.shape[1] * 0.5
    v, u = (y - middle_y) / middle_x, (x - middle_x) / middle_x
    far = u * u + v * v
    scale = 1 + k1 * far + k2 * far * far
    down, across = v * scale * middle_x + middle_y, u * scale * middle_x + middle_x
    top, left = pt.cast("int32", pt.floor(down)), pt.cast("int32", pt.floor(across))
    src = pt.edge(img, axes=(0, 1))
    upper, lower = (pt.lerp(src[row, left, c], src[row, left + 1, c], across - left) for row in (top, top + 1))
    out = pt.Func("out")
    out[y, x, c] = pt.rounding_cast("uint8", pt.lerp(upper, lower, down - top))
    return pt.Pipeline(out, shape=img.shape, name="undistort")


DESCRIPTION = "lens distortion removed by bilinear interpolation, uint8 interleaved RGB"
APPS = (everyday("undistort", DESCRIPTION, build, of_colours, off_by=1, photo=FILTER),)
