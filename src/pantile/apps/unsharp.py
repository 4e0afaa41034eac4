"""Unsharp masking of a planar float image (Halide's apps/unsharp): sharpen the luminance, keep the colours.

out = in * (2*gray - blur(gray)) / gray, with a separable 7-tap Gaussian of sigma 1.5 and repeated edges.

The idea of the schedule: a strip of rows per task, two rows at a time through it, in two loops over x. The first
computes two new rows of gray into a ring and the vertical blur of two rows from it; the second does all the rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pantile as pt

from .app import App

SIGMA = 1.5


def build() -> pt.Pipeline:
    """img[c, y, x] -> sharpened image of the same shape."""
    c, y, x = pt.vars("c y x")
    img = pt.Input("img", "float32", ndim=3)
    gray, blur_y, blur_x = pt.Func("gray"), pt.Func("blur_y"), pt.Func("blur_x")
    ratio, out = pt.Func("ratio"), pt.Func("out")
    k = [math.exp(-i * i / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(4)]

    def luminance(image: pt.Input | pt.Func) -> Any:
        return 0.299 * image[0, y, x] + 0.587 * image[1, y, x] + 0.114 * image[2, y, x]

    gray[y, x] = luminance(pt.edge(img, axes=(1, 2)))
    blur_y[y, x] = (
        k[0] * gray[y, x]
        + k[1] * (gray[y - 1, x] + gray[y + 1, x])
        + k[2] * (gray[y - 2, x] + gray[y + 2, x])
        + k[3] * (gray[y - 3, x] + gray[y + 3, x])
    )
    blur_x[y, x] = (
        k[0] * blur_y[y, x]
        + k[1] * (blur_y[y, x - 1] + blur_y[y, x + 1])
        + k[2] * (blur_y[y, x - 2] + blur_y[y, x + 2])
        + k[3] * (blur_y[y, x - 3] + blur_y[y, x + 3])
    )
    ratio[y, x] = (2 * luminance(img) - blur_x[y, x]) / luminance(img)
    out[c, y, x] = ratio[y, x] * img[c, y, x]
    return pt.Pipeline(out, shape=(3, img.shape[1], img.shape[2]), name="unsharp")


def expert(vector_bits: int) -> pt.Schedule:
    """Two rows by four vectors at a time; gray and its vertical blur slide down the strip."""
    block = 4 * vector_bits // 32
    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", 128)
        .split("yi", "yi", "row", 2)
        .vectorize("x", block)
        .reorder("strip", "yi", "x", "row", "c", "x_v")
        .unroll("row")
        .unroll("c")
        .parallel("strip")
        .prefetch("img", "yi", 3),
        pt.on("ratio").compute_at("out", "row").vectorize("x", block),
        pt.on("blur_x").compute_inline(),
        pt.on("blur_y")
        .compute_at("out", "yi")
        .split("y", "y", "row", 2)
        .vectorize("x", block)
        .reorder("y", "x", "row", "x_v")
        .unroll("row"),
        pt.on("gray")
        .store_at("out", "strip")
        .compute_at("blur_y", "x")
        .vectorize("x", block)
        .reorder("x", "y", "x_v")
        .unroll("y", 2),
    )


def _make(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return np.asarray(rng.random(shape, dtype=np.float32) + 0.1, np.float32)


APP = App(
    "unsharp",
    "unsharp mask, float32 planar RGB",
    build,
    expert,
    {"small": {"img": (3, 200, 300)}, "paper": {"img": (3, 2560, 1536)}},
    _make,
)
