"""Matrix product of float32 matrices, and of float16 matrices accumulated in float32.

The idea of the schedule is that of every fast BLAS. b is laid out once in panels of 16 columns, each contiguous. A
task owns some rows of the result; for one slice of k at a time it copies its rows of a, so that they lie close
together and stay in the L2 cache, then goes through the panels. A tile of a few rows by one panel is accumulated in
registers: each step of k loads one vector row of the panel, from the L1 cache, and one number from each row of a.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import pantile as pt

from .app import App
from .data import floats

PANEL = 16  # columns: a cache line of float32
_TILE_ROWS = {128: 4, 256: 6, 512: 12}  # by width of vectors: as many as leave registers for a row of the panel


def build(dtype: str = "float32") -> pt.Pipeline:
    """a[i, k], b[k, j] -> out[i, j], in float32."""
    i, j, k, p, lane = pt.vars("i j k p lane")
    a, b = pt.Input("a", dtype, ndim=2), pt.Input("b", dtype, ndim=2)
    rows, panels = pt.Func("rows"), pt.Func("panels")
    rows[i, k] = pt.cast("float32", a[i, k])
    panels[p, k, lane] = pt.cast("float32", pt.constant(b, 0, axes=(1,))[k, PANEL * p + lane])

    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    product, out = pt.Func("product"), pt.Func("out")
    product[p, i, lane] = pt.sum(rows[i, r.k] * panels[p, r.k, lane], over=r)
    out[i, j] = product[j // PANEL, i, j % PANEL]
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), name="matmul")


def expert(vector_bits: int) -> pt.Schedule:
    """Tiles of registers inside blocks of 512 steps of k."""
    tile = _TILE_ROWS[vector_bits]
    return pt.Schedule(
        pt.on("out")
        .tile("i", "j", "io", "jo", "ii", "ji", 16 * tile, 1024)
        .vectorize("ji", PANEL)
        .parallel("io"),
        pt.on("product")
        .compute_at("out", "jo")
        .vectorize("lane", PANEL)
        .update()
        .split("r.k", "kb", "k", 512)
        .split("k", "k", "step", 4)
        .split("i", "it", "row", tile)
        .reorder("kb", "p", "it", "k", "step", "row", "lane")
        .vectorize("lane", PANEL)
        .unroll("row")
        .unroll("step"),
        pt.on("rows").compute_at("product", "kb").vectorize("k", PANEL),
        pt.on("panels")
        .compute_root()
        .split("p", "pb", "pi", 8)
        .reorder("pb", "k", "pi", "lane")
        .vectorize("lane", PANEL)
        .parallel("pb"),
    )


def _halves(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return floats(name, shape, rng).astype(np.float16)


_SIZES = {
    "small": {"a": (200, 170), "b": (170, 150)},
    "paper": {"a": (2048, 2048), "b": (2048, 2048)},
}
APPS = (
    App("matmul", "matrix product, float32", build, expert, _SIZES, floats),
    App(
        "matmul_half",
        "matrix product, float16 into float32",
        partial(build, "float16"),
        expert,
        _SIZES,
        _halves,
    ),
)
