"""Harris corner response of a planar float image (Halide's apps/harris): structure tensor over 3x3 windows.

The idea of the schedule: a strip of rows per task; gray and both gradients slide down the strip, the gradients in one
loop; the sums of products are recomputed in registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt

from .app import App


def build() -> pt.Pipeline:
    """img[c, y, x] -> response[y, x] of the inner pixels (three less on every side)."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=3)
    gray = pt.Func("gray")
    gray[y, x] = 0.299 * img[0, y, x] + 0.587 * img[1, y, x] + 0.114 * img[2, y, x]

    def g(dy: int, dx: int) -> pt.Expr:
        return gray[y + dy, x + dx]

    ix, iy = pt.Func("ix"), pt.Func("iy")
    ix[y, x] = (g(-1, 1) - g(-1, -1)) / 12 + (g(0, 1) - g(0, -1)) * (2 / 12) + (g(1, 1) - g(1, -1)) / 12
    iy[y, x] = (g(1, -1) - g(-1, -1)) / 12 + (g(1, 0) - g(-1, 0)) * (2 / 12) + (g(1, 1) - g(-1, 1)) / 12

    def window(name: str, product: pt.Expr) -> pt.Func:
        """3x3 sum of a product of gradients."""
        p, columns, s = pt.Func(name), pt.Func(f"{name}_columns"), pt.Func(f"{name}_sum")
        p[y, x] = product
        columns[y, x] = p[y - 1, x] + p[y, x] + p[y + 1, x]
        s[y, x] = columns[y, x - 1] + columns[y, x] + columns[y, x + 1]
        return s

    sxx = window("ixx", ix[y, x] * ix[y, x])
    syy = window("iyy", iy[y, x] * iy[y, x])
    sxy = window("ixy", ix[y, x] * iy[y, x])
    response, out = pt.Func("response"), pt.Func("out")
    trace = sxx[y, x] + syy[y, x]
    response[y, x] = sxx[y, x] * syy[y, x] - sxy[y, x] * sxy[y, x] - 0.04 * trace * trace
    out[y, x] = response[y + 3, x + 3]
    return pt.Pipeline(out, shape=(img.shape[1] - 6, img.shape[2] - 6), name="harris")


def expert(vector_bits: int) -> pt.Schedule:
    """Two rows by two vectors at a time."""
    block = 2 * vector_bits // 32
    inlined = [n for p in ("ixx", "iyy", "ixy") for n in (p, f"{p}_sum")]
    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", 128)
        .split("yi", "yi", "row", 2)
        .vectorize("x", block)
        .reorder("strip", "yi", "x", "row", "x_v")
        .unroll("row")
        .parallel("strip"),
        *(pt.on(n).compute_inline() for n in ("response", *inlined, "ixx_columns", "iyy_columns", "ixy_columns")),
        pt.on("ix").store_at("out", "strip").compute_at("out", "yi").split("y", "y", "row", 2).vectorize("x", block)
        .reorder("y", "x", "row", "x_v").unroll("row"),
        pt.on("iy").store_at("out", "strip").compute_with("ix", "x").split("y", "y", "row", 2).vectorize("x", block)
        .reorder("y", "x", "row", "x_v").unroll("row"),
        pt.on("gray").store_at("out", "strip").compute_at("out", "yi").split("y", "y", "row", 2).vectorize("x", block)
        .reorder("y", "x", "row", "x_v").unroll("row"),
    )


def _make(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.random(shape, dtype=np.float32)


APP = App(
    "harris",
    "Harris corners, float32 planar RGB",
    build,
    expert,
    {"small": {"img": (3, 200, 300)}, "paper": {"img": (3, 2560, 1536)}},
    _make,
)
