"""A 3x3 box blur of 16-bit pixels in two passes, rows then columns (Halide's apps/blur).

The idea of the schedule: a strip of rows per task; inside it two rows at a time, a block of columns at a time. Each
block computes two new rows of blur_x into a ring of four and both output rows from it, all in registers and L1. Where
vectors are wide, memory alone is waited for: two rows share four sums of three in registers, and nothing is stored.
"""

from __future__ import annotations

import pantile as pt
from pantile.target import Target

from .app import App, Layout, Photo, below
from .threads import in_thread, pixels


def build() -> pt.Pipeline:
    """out[y, x] for every pixel with a full 3x3 neighbourhood down and to the right."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint16", ndim=2)
    blur_x, blur_y = pt.Func("blur_x"), pt.Func("blur_y")
    blur_x[y, x] = (img[y, x] + img[y, x + 1] + img[y, x + 2]) // 3
    blur_y[y, x] = (blur_x[y, x] + blur_x[y + 1, x] + blur_x[y + 2, x]) // 3
    return pt.Pipeline(blur_y, shape=(img.shape[0] - 2, img.shape[1] - 2), name="blur")


def expert(target: Target, cores: int) -> pt.Schedule:
    """Two rows at a time, by four vectors or by two."""
    if target.vector_bits > 128:
        return pt.Schedule(
            pt.on("blur_y")
            .split("y", "y", "row", 2)
            .split("y", "strip", "yi", 16)
            .vectorize("x", 2 * target.lanes(16))
            .reorder("strip", "yi", "x", "row", "x_v")
            .unroll("row")
            .parallel("strip"),
            pt.on("blur_x").compute_inline(),
        )
    block = 4 * target.lanes(16)
    return pt.Schedule(
        pt.on("blur_y")
        .split("y", "strip", "yi", 160)
        .split("yi", "yi", "row", 2)
        .vectorize("x", block)
        .reorder("strip", "yi", "x", "row", "x_v")
        .unroll("row")
        .parallel("strip")
        .prefetch("img", "yi", 1),
        pt.on("blur_x")
        .store_at("blur_y", "strip")
        .compute_at("blur_y", "x")
        .vectorize("x", block)
        .reorder("x", "y", "x_v")
        .unroll("y", 2),
    )


TWELVE_BITS = Layout("each", "uint16", white=4095)  # so that sums of three fit


def on_gpu() -> pt.Schedule:
    """A thread goes down sixteen rows of four columns, whose rows of blur_x it keeps in registers."""
    return pt.Schedule(pixels("blur_y", (2, 64), (16, 4), vectors=False), in_thread("blur_x", "blur_y"))


APPS = (
    App(
        "blur",
        "3x3 box blur, uint16",
        build,
        expert,
        {"small": {"img": (242, 322)}, "paper": {"img": (4802, 6402)}},
        below(2**12, "uint16"),
        photo=Photo({"img": TWELVE_BITS}, gives=TWELVE_BITS),
        on_gpu=on_gpu,
    ),
)
