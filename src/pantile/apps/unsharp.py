"""Unsharp masking of a planar float image (Halide's apps/unsharp): sharpen the luminance, keep the colours.

out = in * (2*gray - blur(gray)) / gray, with a separable 7-tap Gaussian of sigma 1.5 and repeated edges.

The idea of the schedule: a strip of rows per task, two rows at a time through it: two new rows of gray into a ring, the
vertical blur of two rows from it, then all the rest, row by row and one cache line of every channel at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import FLOAT_RGB, MANY_CORES, App, Photo, between
from .threads import columns_in_block, inlined, pixels, two_rows

SIGMA = 1.5


def build(formulation: str = "halide") -> pt.Pipeline:
    """img[c, y, x] -> sharpened image of the same shape; "polymage" sharpens each channel by itself."""
    return _of_luminance() if formulation == "halide" else _of_channels()


def _of_luminance() -> pt.Pipeline:
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


def expert(target: Target, cores: int) -> pt.Schedule:
    """Rows of gray slide down a strip, two new ones at a time."""
    line = target.line // 4  # a cache line: filled by one iteration, asked for by one prefetch
    strip = 32 if cores >= MANY_CORES else 128  # rows: many cores have enough strips to share
    width = 2 * target.lanes(32)
    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", strip)
        .split("yi", "yi", "row", 2)
        .vectorize("x", line)
        .reorder("strip", "yi", "row", "x", "c", "x_v")
        .unroll("c")
        .parallel("strip")
        .prefetch("img", "row", 5),  # the rows that the next two of gray are made of
        pt.on("ratio").compute_inline(),
        pt.on("blur_x").compute_inline(),
        two_rows("blur_y", "out", "yi", width),
        two_rows("gray", "out", "yi", width).store_at("out", "strip"),
    )


def _of_channels() -> pt.Pipeline:
    """Where a pixel differs from its blur by more than a threshold; two pixels less on every side."""
    c, y, x = pt.vars("c y x")
    img = pt.Input("img", "float32", ndim=3)
    threshold, weight = pt.Param("threshold", "float32", default=0.001), pt.Param("weight", "float32", default=3)
    blur_y, blur_x, sharp, out = pt.Func("blur_y"), pt.Func("blur_x"), pt.Func("sharp"), pt.Func("out")

    def smooth(tap: Callable[[int], Any]) -> Any:
        return (tap(-2) + tap(2) + 4 * (tap(-1) + tap(1)) + 6 * tap(0)) * (1 / 16)

    blur_y[c, y, x] = smooth(lambda k: img[c, y + k, x])
    blur_x[c, y, x] = smooth(lambda k: blur_y[c, y, x + k])
    sharp[c, y, x] = img[c, y, x] * (1 + weight) - blur_x[c, y, x] * weight
    detail = pt.abs(img[c, y, x] - blur_x[c, y, x])
    out[c, y, x] = pt.select(detail < threshold, img[c, y, x], sharp[c, y, x])
    inner = pt.Func("inner")
    inner[c, y, x] = out[c, y + 2, x + 2]
    return pt.Pipeline(inner, shape=(3, img.shape[1] - 4, img.shape[2] - 4), name="unsharp")


def expert_of_channels(target: Target, cores: int) -> pt.Schedule:
    """A strip of rows of a channel per task, two rows at a time: their blur along y, then all the rest."""
    line = target.line // 4
    return pt.Schedule(
        pt.on("inner")
        .split("y", "strip", "yi", 128)
        .split("yi", "yi", "row", 2)
        .vectorize("x", line)
        .reorder("strip", "c", "yi", "row", "x", "x_v")
        .parallel("strip")
        .prefetch("img", "row", 5),  # what the next two rows of blur_y end with
        *(pt.on(name).compute_inline() for name in ("blur_x", "sharp", "out")),
        pt.on("blur_y")
        .compute_at("inner", "yi")
        .split("y", "y", "row", 2)
        .vectorize("x", 2 * target.lanes(32))
        .reorder("c", "y", "x", "row", "x_v")
        .unroll("row"),
    )


def on_gpu() -> pt.Schedule:
    """Columns are blurred into shared memory, eight rows at a time; gray is made again where it is read."""
    return pt.Schedule(
        pixels("out", (2, 128), (8, 1), channels="c"),
        columns_in_block("blur_y", "out", 8),
        *inlined("gray", "blur_x", "ratio"),
    )


APPS = (
    App(
        "unsharp",
        "unsharp mask, float32 planar RGB",
        build,
        expert,
        {"small": {"img": (3, 200, 300)}, "paper": {"img": (3, 2560, 1536)}, "polymage": {"img": (3, 4260, 2836)}},
        between(0.1, 1.1),
        photo=Photo({"img": FLOAT_RGB}, gives=FLOAT_RGB),
        on_gpu=on_gpu,
    ),
    App(
        "unsharp_polymage",
        "unsharp mask of each channel, float32 planar RGB",
        partial(build, "polymage"),
        expert_of_channels,
        {"small": {"img": (3, 204, 304)}, "paper": {"img": (3, 4260, 2836)}},
        between(0.1, 1.1),
        photo=Photo({"img": FLOAT_RGB}, gives=FLOAT_RGB),
    ),
)
