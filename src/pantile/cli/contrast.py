"""The demo's pipeline: local contrast, enhanced by a wide, limited unsharp mask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import exp

import pantile as pt

RADIUS = 6
STRIP, LANES = 64, 16


def local_contrast() -> pt.Pipeline:
    """img[y, x, c] -> out[y, x, c] of the same size; edge pixels repeat outside."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "uint8", ndim=3)
    amount = pt.Param("amount", "float32", default=0.8)
    src = pt.edge(img, axes=(0, 1))

    gray, blur_y, blur_x = pt.Func("gray"), pt.Func("blur_y"), pt.Func("blur_x")
    gray[y, x] = 0.299 * src[y, x, 0] + 0.587 * src[y, x, 1] + 0.114 * src[y, x, 2]
    blur_y[y, x] = weighted([gray[y + k, x] for k in range(-RADIUS, RADIUS + 1)])
    blur_x[y, x] = weighted([blur_y[y, x + k] for k in range(-RADIUS, RADIUS + 1)])

    boost, out = pt.Func("boost"), pt.Func("out")
    detail = gray[y, x] - blur_x[y, x]
    boost[y, x] = amount * detail / (1 + pt.abs(detail) / 64)  # less at strong edges, which would show halos
    out[y, x, c] = pt.rounding_cast("uint8", img[y, x, c] + boost[y, x])
    return pt.Pipeline(out, shape=(img.shape[0], img.shape[1], 3), schedule=schedule(), name="local_contrast")


def weighted(values: Sequence[pt.Expr]) -> pt.Expr:
    """The mean of values, weighted by a bell curve."""
    weights = [exp(-2 * ((k - RADIUS) / RADIUS) ** 2) for k in range(len(values))]
    return reduce(lambda a, b: a + b, (v * (w / sum(weights)) for v, w in zip(values, weights, strict=True)))


def schedule() -> pt.Schedule:
    """Strips of rows run in parallel; inside of a strip, rows of gray slide, and everything else stays in cache."""
    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "row", STRIP)
        .vectorize("x", LANES)
        .reorder("strip", "row", "x", "c", "x_v")
        .unroll("c")
        .parallel("strip"),
        pt.on("boost").compute_at("out", "row").vectorize("x", LANES),
        pt.on("blur_x").compute_inline(),
        pt.on("blur_y").compute_at("out", "row").vectorize("x", LANES),
        pt.on("gray").store_at("out", "strip").compute_at("out", "row").vectorize("x", LANES),
    )
