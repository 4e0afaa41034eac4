"""A 2-D convolution between a quantization and a ReLU: Figure 1 of the post-tiling fusion paper.

    S0           a[h, w] := quantize(a[h, w])
    S1, S2       c[h, w] := sum over kh, kw of a[h + kh, w + kw] * b[kh, kw]
    S3           c[h, w] := max(c[h, w], 0)

The paper leaves the quantization open; here numbers are scaled, rounded, and limited to what int8 holds.

The idea of the schedule: strips of rows, two rows at a time; quantized rows stay in a ring while the window passes
over them.
"""

from __future__ import annotations

import numpy as np

import pantile as pt
from pantile.target import Target

from .app import FLOAT_CHANNELS, App, Layout, Photo, between

WINDOW = 3
_SHARPEN = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)  # for pictures


def build() -> pt.Pipeline:
    """img[h, w], kernel[kh, kw] of 3 x 3 -> out[h, w] where the window fits."""
    h, w = pt.vars("h w")
    img, kernel = pt.Input("img", "float32", ndim=2), pt.Input("kernel", "float32", ndim=2)
    scale = pt.Param("scale", "float32", default=64)
    r = pt.RDom((0, WINDOW), (0, WINDOW), names="h w")
    quantized, convolved, out = pt.Func("quantized"), pt.Func("convolved"), pt.Func("out")
    quantized[h, w] = pt.clamp(pt.round(scale * img[h, w]), -128, 127)
    convolved[h, w] = pt.sum(quantized[h + r.h, w + r.w] * kernel[r.h, r.w], over=r)
    out[h, w] = pt.maximum(convolved[h, w], 0)
    return pt.Pipeline(out, shape=(img.shape[0] - WINDOW + 1, img.shape[1] - WINDOW + 1), name="conv2d")


def expert(target: Target, cores: int) -> pt.Schedule:
    """Two rows by four vectors at a time."""
    block = 4 * target.lanes(32)
    return pt.Schedule(
        pt.on("out")
        .split("h", "strip", "hi", 64)
        .split("hi", "hi", "row", 2)
        .vectorize("w", block)
        .reorder("strip", "hi", "w", "row", "w_v")
        .unroll("row")
        .parallel("strip"),
        pt.on("convolved").compute_inline(),
        pt.on("quantized")
        .store_at("out", "strip")
        .compute_at("out", "hi")
        .split("h", "h", "row", 2)
        .vectorize("w", block)
        .reorder("h", "w", "row", "w_v")
        .unroll("row"),
    )


def on_gpu() -> pt.Schedule:
    """A quantized tile in shared memory; four rows of a column per thread."""
    return pt.Schedule(
        pt.on("out")
        .tile("h", "w", "hb", "wb", "hi", "tw", 32, 32)
        .split("hi", "th", "row", 4)
        .reorder("hb", "wb", "th", "tw", "row")
        .block("hb", "wb")
        .thread("th", "tw")
        .unroll("row"),
        pt.on("convolved").compute_inline(),
        pt.on("quantized").compute_at("out", "wb").store_in("shared").thread("h", "w"),
    )


APPS = (
    App(
        "conv2d",
        "quantized 3x3 convolution and ReLU, float32",
        build,
        expert,
        {
            "small": {"img": (200, 300), "kernel": (WINDOW, WINDOW)},
            "paper": {"img": (2050, 2050), "kernel": (WINDOW, WINDOW)},
        },
        between(-2, 2),
        photo=Photo({"img": FLOAT_CHANNELS}, gives=Layout("each", "float32", white=64), fixed={"kernel": _SHARPEN}),
        on_gpu=on_gpu,
    ),
)
