"""Unsharp masking of a planar float image (Halide's apps/unsharp): sharpen the luminance, keep the colours.

out = in * (2*gray - blur(gray)) / gray, with a separable 7-tap Gaussian of sigma 1.5 and repeated edges.

The idea of the schedule: a strip of rows per task, two rows at a time through it. The two new rows of gray go to a
ring; the vertical blur of both rows reads the ring once; the rest is one loop over the row for all channels.
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
    source = pt.edge(img, axes=(1, 2))
    gray[y, x] = 0.299 * source[0, y, x] + 0.587 * source[1, y, x] + 0.114 * source[2, y, x]
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
    ratio[y, x] = (2 * gray[y, x] - blur_x[y, x]) / gray[y, x]
    out[c, y, x] = ratio[y, x] * img[c, y, x]
    return pt.Pipeline(out, shape=(3, img.shape[1], img.shape[2]), name="unsharp")


def expert(vector_bits: int) -> pt.Schedule:
    """Two rows by four vectors at a time; gray and its vertical blur slide down the strip."""
    block = 4 * vector_bits // 32
    rows = [
        pt.on(name).compute_at("out", "yi").split("y", "y", "row", 2).vectorize("x", block)
        .reorder("y", "x", "row", "x_v").unroll("row")
        for name in ("blur_y", "gray")
    ]  # fmt: skip
    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", 128)
        .split("yi", "yi", "row", 2)
        .vectorize("x", block)
        .reorder("strip", "yi", "x", "row", "c", "x_v")
        .unroll("row")
        .unroll("c")
        .parallel("strip")
        .prefetch("img", "yi", 1),
        pt.on("ratio").compute_at("out", "row").vectorize("x", block),
        pt.on("blur_x").compute_inline(),
        rows[0],
        rows[1].store_at("out", "strip"),
    )


def _make(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.random(shape, dtype=np.float32) + np.float32(0.1)


APP = App(
    "unsharp",
    "unsharp mask, float32 planar RGB",
    build,
    expert,
    {"small": {"img": (3, 200, 300)}, "paper": {"img": (3, 2560, 1536)}},
    _make,
)
