"""Harris corner response of a planar float image (Halide's apps/harris): structure tensor over 3x3 windows.

The idea of the schedule: a strip of rows per task, cut into tiles of columns so that all that slides down a tile fits
the L1 cache: gray, both gradients (in one loop), and the three products summed along rows (in one loop). Two rows at a
time, so that each row of gray and of the sums is loaded once for two uses.
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

    def g(dy: int, dx: int) -> Any:
        return gray[y + dy, x + dx]

    ix, iy = pt.Func("ix"), pt.Func("iy")
    ix[y, x] = (g(-1, 1) - g(-1, -1)) / 12 + (g(0, 1) - g(0, -1)) * (2 / 12) + (g(1, 1) - g(1, -1)) / 12
    iy[y, x] = (g(1, -1) - g(-1, -1)) / 12 + (g(1, 0) - g(-1, 0)) * (2 / 12) + (g(1, 1) - g(-1, 1)) / 12

    def window(name: str, product: pt.Expr) -> pt.Func:
        """3x3 sum of a product of gradients."""
        p, row, s = pt.Func(name), pt.Func(f"{name}_row"), pt.Func(f"{name}_sum")
        p[y, x] = product
        row[y, x] = p[y, x - 1] + p[y, x] + p[y, x + 1]
        s[y, x] = row[y - 1, x] + row[y, x] + row[y + 1, x]
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
    """Two rows by two vectors at a time; everything slides down tiles of 256 columns."""
    block = 2 * vector_bits // 32

    def sliding(name: str) -> pt.StageSchedule:
        return (
            pt.on(name)
            .store_at("out", "tile")
            .compute_at("out", "yi")
            .split("y", "y", "row", 2)
            .vectorize("x", block)
            .reorder("y", "x", "row", "x_v")
            .unroll("row")
        )

    def beside(name: str, host: str) -> pt.StageSchedule:
        return sliding(name).compute_with(host, "x")

    inlined = [n for p in ("ixx", "iyy", "ixy") for n in (p, f"{p}_sum")]
    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", 128)
        .split("yi", "yi", "row", 2)
        .split("x", "tile", "xi", 256)
        .vectorize("xi", block)
        .reorder("strip", "tile", "yi", "xi", "row", "xi_v")
        .unroll("row")
        .parallel("strip"),
        *(pt.on(n).compute_inline() for n in ("response", *inlined)),
        sliding("ixx_row"),
        beside("iyy_row", "ixx_row"),
        beside("ixy_row", "ixx_row"),
        sliding("ix"),
        beside("iy", "ix"),
        sliding("gray"),
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
