"""Filters that image libraries have as one call, as plain formulas on bytes: does one still need the library?

`pantile bench library --rivals opencv,scipy,skimage,numba` puts them beside OpenCV, SciPy's ndimage and scikit-image.
Beyond the edge pictures are repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt

from .app import BYTES_GREY, App, Layout, Photo
from .everyday.filter import FILTER, OF_EACH, TO_GREY, everyday, of_colours, of_grey

BOX = 5  # pixels along each side
GAUSSIAN, SIGMA = 7, 1.5
BILATERAL, SIGMA_SPACE, SIGMA_VALUE = 4, 3.0, 30.0  # a radius; what counts as near, and as alike
y, x, c = pt.vars("y x c")


def box_filter() -> pt.Pipeline:
    """img[y, x, c] -> the mean of 5 x 5 pixels, rounded."""
    img, out, r = pt.Input("img", "uint8", ndim=3), pt.Func("out"), pt.RDom((-(BOX // 2), BOX), (-(BOX // 2), BOX))
    source = pt.edge(img, axes=(0, 1))
    total = pt.sum(pt.cast("int32", source[y + r[0], x + r[1], c]), over=r)
    out[y, x, c] = pt.cast("uint8", (total + BOX * BOX // 2) // (BOX * BOX))
    return pt.Pipeline(out, shape=img.shape, name="box_filter")


def gaussian() -> pt.Pipeline:
    """img[y, x, c] -> smoothed by 7 x 7 weights."""
    img, out, r = pt.Input("img", "uint8", ndim=3), pt.Func("out"), pt.RDom((0, GAUSSIAN), (0, GAUSSIAN))
    source = pt.edge(img, axes=(0, 1))
    weights = np.exp(-((np.arange(GAUSSIAN) - GAUSSIAN // 2) ** 2) / (2 * SIGMA**2))
    near = pt.table((weights / weights.sum()).astype(np.float32), "near")
    pixel = source[y + r[0] - GAUSSIAN // 2, x + r[1] - GAUSSIAN // 2, c]
    out[y, x, c] = pt.rounding_cast("uint8", pt.sum(near[r[0]] * near[r[1]] * pixel, over=r))
    return pt.Pipeline(out, shape=img.shape, name="gaussian")


def sobel() -> pt.Pipeline:
    """img[y, x] -> its derivative along x, in int16."""
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("out")
    wide = pt.Func("wide")
    wide[y, x] = pt.cast("int16", pt.edge(img)[y, x])
    right, left = ([wide[y + k, x + side] for k in (-1, 0, 1)] for side in (1, -1))
    out[y, x] = right[0] + 2 * right[1] + right[2] - left[0] - 2 * left[1] - left[2]
    return pt.Pipeline(out, shape=img.shape, name="sobel")


def bilateral() -> pt.Pipeline:
    """img[y, x] -> smoothed by pixels within 4 that are alike."""
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("out")
    source = pt.edge(img)
    alike = pt.table(np.exp(-(np.arange(256) ** 2) / (2 * SIGMA_VALUE**2)).astype(np.float32), "alike")
    total: Any = 0.0
    weights: Any = 0.0
    for v in range(-BILATERAL, BILATERAL + 1):
        for u in range(-BILATERAL, BILATERAL + 1):
            if v * v + u * u <= BILATERAL**2:
                other = source[y + v, x + u]
                near = float(np.exp(-(v * v + u * u) / (2 * SIGMA_SPACE**2)))
                weight = near * alike[pt.absd(other, source[y, x])]
                total, weights = total + weight * other, weights + weight
    out[y, x] = pt.rounding_cast("uint8", total / weights)
    return pt.Pipeline(out, shape=img.shape, name="bilateral")


def grayscale() -> pt.Pipeline:
    """img[y, x, c] -> its brightness, in fixed point."""
    img, out = pt.Input("img", "uint8", ndim=3), pt.Func("out")
    red, green, blue = (pt.cast("int32", img[y, x, channel]) for channel in range(3))
    out[y, x] = pt.cast("uint8", (9798 * red + 19235 * green + 3735 * blue + 2**14) >> 15)
    return pt.Pipeline(out, shape=img.shape[:2], name="grayscale")


SLOPE = Photo({"img": BYTES_GREY}, gives=Layout("grey", "int16", white=1020, black=-1020))

APPS: tuple[App, ...] = (
    everyday("box_filter", "5x5 mean, uint8 interleaved RGB", box_filter, of_colours, photo=FILTER),
    everyday("gaussian", "7x7 Gaussian, uint8 RGB", gaussian, of_colours, off_by=1, photo=FILTER),
    everyday("sobel", "Sobel's derivative along x, uint8 grey", sobel, of_grey, photo=SLOPE),
    everyday("bilateral", "bilateral filter, 9x9, uint8 grey", bilateral, of_grey, off_by=1, photo=OF_EACH),
    everyday("grayscale", "uint8 interleaved RGB to grey", grayscale, of_colours, photo=TO_GREY),
)
