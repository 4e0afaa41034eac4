"""The largest value within a disc of radius 26 around each pixel (Halide's apps/max_filter), edges repeated.

The disc is cut into columns. A table of maxima over 1, 2, 4, .. 32 rows gives the maximum of a column of any height as
that of two overlapping entries, and few heights occur, so that columns are shared by all discs that contain them.

The idea of the schedule: tiles down which the tables slide, four new rows at a time; from them the maxima of columns of
every height, then for each pixel the 53 columns of its disc.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import FLOAT_RGB, App, Photo, floats
from .threads import in_block, inlined, pixels

RADIUS = 26


def half_height(dx: int, radius: int = RADIUS) -> int:
    """How far up and down the disc's column at distance dx reaches: one more than the circle does."""
    return sum(1 for k in range(radius + 1) if dx * dx + k * k < (radius + 0.25) ** 2)


def build(radius: int = RADIUS) -> pt.Pipeline:
    """img[c, y, x] -> the same shape."""
    c, y, x = pt.vars("c y x")
    img = pt.Input("img", "float32", ndim=3)
    source, column, out = pt.Func("source"), pt.Func("column"), pt.Func("out")
    source[c, y, x] = pt.edge(img, axes=(1, 2))[c, y, x]
    heights = sorted({half_height(dx, radius) for dx in range(radius + 1)}, reverse=True)

    rows = [source]  # rows[s]: the maximum of 2**s rows, from y on
    for s in range(1, _log2(2 * heights[0] + 1) + 1):
        half, f = rows[-1], pt.Func(f"rows_{2**s}")
        f[c, y, x] = pt.maximum(half[c, y, x], half[c, y + 2 ** (s - 1), x])
        rows.append(f)

    def around(height: int) -> Any:
        s = _log2(2 * height + 1)
        return pt.maximum(rows[s][c, y - height, x], rows[s][c, y + height + 1 - 2**s, x])

    column[c, y, x] = tuple(map(around, heights))

    def beside(dx: int) -> Any:
        k = heights.index(half_height(dx, radius))
        return pt.maximum(column[c, y, x - dx][k], column[c, y, x + dx][k])

    out[c, y, x] = functools.reduce(pt.maximum, map(beside, range(1, radius + 1)), column[c, y, x][0])
    return pt.Pipeline(out, name="max_filter")


def _log2(n: int) -> int:
    return int(math.log2(n))


def expert(target: Target, cores: int) -> pt.Schedule:
    """Four rows at a time, down tiles of 256 columns."""
    lanes = target.lanes(32)

    def four_rows(name: str) -> pt.StageSchedule:
        return (
            pt.on(name)
            .compute_at("out", "yi")
            .split("y", "y", "row", 4)
            .vectorize("x", 2 * lanes)
            .reorder("y", "x", "row", "x_v")
            .unroll("row")
        )

    def table(name: str, window: int) -> pt.StageSchedule:
        return four_rows(name).store_at("out", "task").fold_storage("y", window)

    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", 640)
        .split("yi", "yi", "row", 4)
        .split("x", "tile", "xi", 256)
        .vectorize("xi", 4 * lanes)
        .reorder("c", "strip", "tile", "yi", "row", "xi", "xi_v")
        .fuse("c", "strip", "plane")
        .fuse("plane", "tile", "task")
        .parallel("task"),
        four_rows("column"),
        table("rows_32", 32),
        table("rows_16", 32),
        table("rows_8", 32),
        table("rows_4", 8),
        pt.on("rows_2").compute_inline(),
        pt.on("source").compute_inline(),
    )


def on_gpu() -> pt.Schedule:
    """Maxima of rows as wholes; those of columns, of all heights, for a block of pixels in shared memory."""

    def table(name: str) -> pt.StageSchedule:
        return (
            pt.on(name)
            .compute_root()
            .split("y", "yo", "row", 8)
            .split("x", "xo", "tx", 256)
            .reorder("c", "yo", "xo", "tx", "row")
            .block("c", "yo", "xo")
            .thread("tx")
            .unroll("row")
        )

    return pt.Schedule(
        pixels("out", (2, 128), planes="c"),
        in_block("column", "out"),
        *(table(f"rows_{k}") for k in (4, 8, 16, 32)),
        *inlined("rows_2", "source"),
    )


APPS = (
    App(
        "max_filter",
        "maximum over discs of radius 26, float32 planar RGB",
        build,
        expert,
        {"small": {"img": (3, 200, 300)}, "paper": {"img": (3, 2560, 1536)}},
        floats,
        photo=Photo({"img": FLOAT_RGB}, gives=FLOAT_RGB),
        on_gpu=on_gpu,
    ),
)
