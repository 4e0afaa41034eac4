"""Harris corner response of a planar float image (Halide's apps/harris): structure tensor over 3x3 windows.

The idea of the schedule: a strip of rows per task, cut into tiles of columns so that all that is kept on the way down a
tile fits the L1 cache: rows of gray, of the gradient and of its products summed along rows. Two rows at a time, so that
each row of gray and of the sums is loaded once for two uses.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import FLOAT_RGB, App, Layout, Photo, floats
from .threads import in_lanes, inlined, lanes, two_rows


def build(formulation: str = "halide") -> pt.Pipeline:
    """img[c, y, x] -> response[y, x] of the inner pixels (three less on every side).

    "polymage" takes img[y, x], already gray, and leaves out just the two pixels that have no whole neighbourhood.
    """
    y, x = pt.vars("y x")
    gray: pt.Func | pt.Input
    if formulation == "halide":
        img, gray, margin = pt.Input("img", "float32", ndim=3), pt.Func("gray"), 3
        gray[y, x] = 0.299 * img[0, y, x] + 0.587 * img[1, y, x] + 0.114 * img[2, y, x]
    else:
        img = gray = pt.Input("img", "float32", ndim=2)
        margin = 2

    def g(dy: int, dx: int) -> Any:
        return gray[y + dy, x + dx]

    gradient, row_sums = pt.Func("gradient"), pt.Func("row_sums")
    gradient[y, x] = (
        (g(-1, 1) - g(-1, -1)) / 12 + (g(0, 1) - g(0, -1)) * (2 / 12) + (g(1, 1) - g(1, -1)) / 12,
        (g(1, -1) - g(-1, -1)) / 12 + (g(1, 0) - g(-1, 0)) * (2 / 12) + (g(1, 1) - g(-1, 1)) / 12,
    )

    def products(dx: int) -> tuple[Any, ...]:
        ix, iy = gradient[y, x + dx]
        return ix * ix, iy * iy, ix * iy

    row_sums[y, x] = _sums(products(-1), products(0), products(1))
    sxx, syy, sxy = _sums(row_sums[y - 1, x], row_sums[y, x], row_sums[y + 1, x])
    trace = sxx + syy
    response, out = pt.Func("response"), pt.Func("out")
    response[y, x] = sxx * syy - sxy * sxy - 0.04 * trace * trace
    out[y, x] = response[y + margin, x + margin]
    height, width = img.shape[-2:]
    return pt.Pipeline(out, shape=(height - 2 * margin, width - 2 * margin), name="harris")


def _sums(*terms: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tuples of three, added up."""
    return tuple(a + b + c for a, b, c in zip(*terms, strict=True))


def expert(target: Target, cores: int) -> pt.Schedule:
    """Two rows by two vectors at a time, down tiles of 256 columns."""
    block = 2 * target.lanes(32)

    return pt.Schedule(
        pt.on("out")
        .split("y", "strip", "yi", 128)
        .split("yi", "yi", "row", 2)
        .split("x", "tile", "xi", 256)
        .vectorize("xi", block)
        .reorder("strip", "tile", "yi", "xi", "row", "xi_v")
        .unroll("row")
        .parallel("strip"),
        pt.on("response").compute_inline(),
        two_rows("row_sums", "out", "yi", block).store_at("out", "tile"),
        two_rows("gradient", "out", "yi", block),
        two_rows("gray", "out", "yi", block).store_at("out", "tile"),
    )


def expert_of_gray(target: Target, cores: int) -> pt.Schedule:
    """The schedule for a gray input, which has no gray stage."""
    return expert(target, cores).without("gray")


CORNERS = Layout("grey", "float32", white=None, exponent=0.25)


def on_gpu() -> pt.Schedule:
    """Warps go down eight rows, all of it in the registers of their lanes: of 32 columns of gray, 28 are left."""
    return pt.Schedule(
        lanes("out", (8, 28), warps=4),
        *(in_lanes(name, "out") for name in ("gray", "gradient", "row_sums")),
        *inlined("response"),
    )


def on_gpu_of_gray() -> pt.Schedule:
    """The GPU schedule for a gray input, which has no gray stage."""
    return on_gpu().without("gray")


APPS = (
    App(
        "harris",
        "Harris corners, float32 planar RGB",
        build,
        expert,
        {"small": {"img": (3, 200, 300)}, "paper": {"img": (3, 2560, 1536)}, "polymage": {"img": (3, 4258, 2834)}},
        floats,
        photo=Photo({"img": FLOAT_RGB}, gives=CORNERS),
        on_gpu=on_gpu,
    ),
    App(
        "harris_polymage",
        "Harris corners, float32 gray",
        partial(build, "polymage"),
        expert_of_gray,
        {"small": {"img": (202, 302)}, "paper": {"img": (4258, 2834)}},
        floats,
        photo=Photo({"img": Layout("grey", "float32")}, gives=CORNERS),
        on_gpu=on_gpu_of_gray,
    ),
)
