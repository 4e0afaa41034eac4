"""Histogram equalization of an 8-bit colour image (Halide's apps/hist): brightness is spread evenly, colours stay.

Every pixel's luma is replaced by the share of pixels that are no brighter; its two colour differences are kept.

The idea of the schedule: levels of grey once, as bytes. Each task counts a strip of them, in four histograms in turn:
equal neighbours, common in pictures, then do not wait for each other's count. The output computes luma anew, which is
faster than to keep it.
"""

from __future__ import annotations

import pantile as pt
from pantile.target import Target

from .app import App, Layout, Photo, octets
from .threads import inlined, pixels


def build() -> pt.Pipeline:
    """img[c, y, x] -> equalized image of the same shape."""
    c, y, x, i = pt.vars("c y x i")
    img = pt.Input("img", "uint8", ndim=3)
    _, height, width = img.shape
    luma, level = pt.Func("luma"), pt.Func("level")
    red, green, blue = (pt.cast("float32", img[k, y, x]) for k in range(3))
    luma[y, x] = 0.299 * red + 0.587 * green + 0.114 * blue
    level[y, x] = pt.cast("uint8", pt.clamp(luma[y, x], 0, 255))

    histogram, below, equal = pt.Func("histogram"), pt.Func("below"), pt.Func("equal")
    r = pt.RDom((0, height), (0, width), name="r", names="y x")
    histogram[i] = 0
    histogram[level[r.y, r.x]] += 1
    levels = pt.RDom((1, 255), name="levels")
    below[i] = histogram[i]
    below[levels[0]] += below[levels[0] - 1]
    equal[i] = pt.clamp(pt.cast("float32", below[i]) * (255 / pt.cast("float32", height * width)), 0, 255)

    even, out = pt.Func("even"), pt.Func("out")
    even[y, x] = equal[level[y, x]]
    more_red, more_blue = red - luma[y, x], blue - luma[y, x]
    to_cr, to_cb = 0.713, 0.564
    new_red, new_green, new_blue = (
        pt.cast("uint8", pt.clamp(value, 0, 255))
        for value in (
            even[y, x] + 1.4 * to_cr * more_red,
            even[y, x] - 0.343 * to_cb * more_blue - 0.711 * to_cr * more_red,
            even[y, x] + 1.765 * to_cb * more_blue,
        )
    )
    out[c, y, x] = pt.case((c == 0, new_red), (c == 1, new_green), otherwise=new_blue)
    return pt.Pipeline(out, shape=(3, height, width), name="hist_eq")


def expert(target: Target, cores: int) -> pt.Schedule:
    """A vector of bytes at a time; histograms per strip and turn are combined twice."""
    lanes = target.lanes(8)
    return pt.Schedule(
        pt.on("out").vectorize("x", lanes).parallel("y", 32).reorder("y", "y_p", "x", "c", "x_v").unroll("c"),
        pt.on("even").compute_inline(),
        pt.on("luma").compute_inline(),
        pt.on("level").vectorize("x", lanes).parallel("y", 32),
        pt.on("equal").vectorize("i", 8),
        pt.on("below"),
        pt.on("histogram")
        .vectorize("i", 8)
        .update()
        .split("r.y", "strip", "row", 64)
        .rfactor("strip", "strip")
        .reorder("strip", "i")
        .vectorize("i", 8),
        pt.on("histogram_strip")
        .vectorize("i", 8)
        .parallel("strip")
        .update()
        .split("r.x", "four", "turn", 4)
        .rfactor("turn", "turn")
        .reorder("strip", "turn", "i")
        .vectorize("i", 8)
        .parallel("strip"),
        pt.on("histogram_strip_turn")
        .compute_at("histogram_strip", "strip")
        .vectorize("i", 8)
        .update()
        .reorder("strip", "row", "four", "turn")
        .unroll("turn", 4),
    )


BYTES = Layout("rgb", "uint8", white=255)


def on_gpu() -> pt.Schedule:
    """Blocks count four rows each in shared memory, where threads that meet wait for each other in hardware alone, and
    add what they have counted to the whole. The sums of bins are found in the block that needs them."""
    return pt.Schedule(
        pixels("out", (4, 32), (2, 4), channels="c"),
        *inlined("even", "luma", "level"),
        pt.on("equal").split("i", "block", "bin", 256).block("block").thread("bin"),
        pt.on("below").compute_at("equal", "block").store_in("shared").thread("i").update().unroll("levels.0", 15),
        pt.on("histogram")
        .split("i", "block", "bin", 256)
        .block("block")
        .thread("bin")
        .update()
        .split("r.y", "strip", "row", 4)
        .rfactor("strip", "strip")
        .atomic()
        .split("i", "block", "bin", 256)
        .reorder("strip", "block", "bin")
        .block("strip", "block")
        .thread("bin"),
        pt.on("histogram_strip")
        .compute_at("histogram", "block")
        .store_in("shared")
        .thread("i")
        .update()
        .atomic()
        .split("r.x", "step", "lane", 64)
        .reorder("strip", "row", "lane", "step")
        .thread("row", "lane"),
    )


APPS = (
    App(
        "hist_eq",
        "histogram equalization, uint8 planar RGB",
        build,
        expert,
        {"small": {"img": (3, 200, 300)}, "paper": {"img": (3, 2560, 1536)}},
        octets,
        photo=Photo({"img": BYTES}, gives=BYTES),
        off_by=2,  # a luma just at a whole number may be counted below it, if its products are fused
        on_gpu=on_gpu,
    ),
)
