"""Denoising by non-local means (Halide's apps/nl_means): nearby pixels, weighted by how alike their patches are.

Weights fall off exponentially with the squared difference of 7x7 patches, over all three channels; 7x7 pixels around
each are searched; edges are repeated.

The idea of the schedule: tiles, and for each one offset of the search at a time. Down the tile slide the differences of
its rows, two new ones at a time; sums of seven of them are kept for two rows, all the rest in registers.
"""

from __future__ import annotations

import math
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import FLOAT_RGB, App, Photo, floats
from .threads import columns_in_block, inlined, pixels, two_rows

PATCH, SEARCH = 7, 7


def build() -> pt.Pipeline:
    """img[c, y, x] -> the same shape; `sigma` says how different patches may be."""
    c, y, x, dy, dx = pt.vars("c y x dy dx")
    img = pt.Input("img", "float32", ndim=3)
    sigma = pt.Param("sigma", "float32", default=0.12)
    source = pt.edge(img, axes=(1, 2))
    reach = range(-(PATCH // 2), PATCH // 2 + 1)

    difference, down, weight = pt.Func("difference"), pt.Func("down"), pt.Func("weight")
    apart = [source[k, y, x] - source[k, y + dy, x + dx] for k in range(3)]
    difference[dy, dx, y, x] = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2]
    down[dy, dx, y, x] = sum(difference[dy, dx, y + j, x] for j in reach)
    across = sum(down[dy, dx, y, x + i] for i in reach)
    weight[dy, dx, y, x] = fast_exp(across * (-1 / (sigma * sigma * (PATCH * PATCH))))

    r = pt.RDom((-(SEARCH // 2), SEARCH), (-(SEARCH // 2), SEARCH), name="r", names="dy dx")
    total, out = pt.Func("total"), pt.Func("out")
    total[y, x] = (0.0, 0.0, 0.0, 0.0)
    w = weight[r.dy, r.dx, y, x]
    seen = [w * source[k, y + r.dy, x + r.dx] for k in range(3)]
    total[y, x] = tuple(before + term for before, term in zip(total[y, x], (*seen, w), strict=True))
    red, green, blue, weights = total[y, x]
    out[c, y, x] = pt.clamp(pt.case((c == 0, red), (c == 1, green), otherwise=blue) / weights, 0, 1)
    return pt.Pipeline(out, shape=(3, img.shape[1], img.shape[2]), name="nl_means")


def fast_exp(v: Any) -> Any:
    """e**v by a polynomial of degree five (relative error 2e-5) and the bits of a power of two; 0 below 2**-126."""
    k = pt.floor(v * (1 / math.log(2)))
    f = v - k * math.log(2)
    polynomial: Any = 0.01314350
    for coefficient in (0.03668965, 0.16873890, 0.49970515, 1.0, 1.0):
        polynomial = polynomial * f + coefficient
    exponent = pt.cast("int32", k) + 127
    return polynomial * pt.bits("float32", pt.select(exponent > 0, exponent, 0) << 23)


def expert(target: Target, cores: int) -> pt.Schedule:
    """Two rows at a time, down tiles of 32 rows and 256 columns."""
    lanes = target.lanes(32)

    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", 32)
        .split("x", "tile", "xi", 256)
        .vectorize("xi", 2 * lanes)
        .reorder("strip", "tile", "yi", "xi", "c", "xi_v")
        .unroll("c")
        .parallel("strip"),
        pt.on("total")
        .compute_at("out", "tile")
        .vectorize("x", 2 * lanes)
        .update()
        .split("y", "y", "row", 2)
        .vectorize("x", 2 * lanes)
        .reorder("r.dy", "r.dx", "y", "x", "row", "x_v")
        .unroll("row"),
        pt.on("weight").compute_inline(),
        two_rows("down", "total", "y", 2 * lanes),
        two_rows("difference", "total", "y", 2 * lanes).store_at("total", "r.dx").fold_storage("y", 8),
    )


def on_gpu() -> pt.Schedule:
    """For each offset in turn, the sums of columns go into shared memory; each thread keeps its totals in registers.
    All blocks clamp: one of six is at an edge, and a second version would be as much code again for 8 % of the time.
    """
    total = (
        pt.on("total")
        .compute_at("out", "xo")
        .store_in("register")
        .split("y", "ty", "row", 8)
        .reorder("ty", "x", "row")
        .thread("ty", "x")
        .unroll("row")
    )
    return pt.Schedule(
        pixels("out", (2, 122), (8, 1), channels="c").partition("yo", "never").partition("xo", "never"),
        total.update()
        .split("y", "ty", "row", 8)
        .reorder("r.dy", "r.dx", "ty", "x", "row")
        .thread("ty", "x")
        .unroll("row"),
        columns_in_block("down", "total", 8, at="r.dx", before=("dy", "dx")),
        *inlined("weight", "difference"),
    )


APPS = (
    App(
        "nl_means",
        "non-local means, 7x7 patches, 7x7 search, float32 planar RGB",
        build,
        expert,
        {"small": {"img": (3, 60, 100)}, "paper": {"img": (3, 2560, 1536)}},
        floats,
        photo=Photo({"img": FLOAT_RGB}, gives=FLOAT_RGB),
        on_gpu=on_gpu,
    ),
)
