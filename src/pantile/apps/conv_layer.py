"""A 3x3 convolution with bias and ReLU over channel-innermost images (Halide's apps/conv_layer).

The formula is plain. The schedule is that of `convolution`, tiles of registers, with a copy of the weights in the order
of their use.
"""

from __future__ import annotations

import pantile as pt
from pantile.target import Target

from .app import App, floats
from .convolution import tiles


def build() -> pt.Pipeline:
    """img[n, y, x, ci], filter[ci, ky, kx, co], bias[co] -> out[n, y, x, co], two rows and columns smaller."""
    n, y, x, co = pt.vars("n y x co")
    img, filter = pt.Input("img", "float32", ndim=4), pt.Input("filter", "float32", ndim=4)
    bias = pt.Input("bias", "float32", ndim=1)
    r = pt.RDom((0, 3), (0, 3), (0, img.shape[3]), name="r", names="y x c")
    sums, out = pt.Func("out_sums"), pt.Func("out")
    sums[n, y, x, co] = bias[co]
    sums[n, y, x, co] += filter[r.c, r.y, r.x, co] * img[n, y + r.y, x + r.x, r.c]
    out[n, y, x, co] = pt.maximum(sums[n, y, x, co], 0)
    images, height, width, _ = img.shape
    return pt.Pipeline(out, shape=(images, height - 2, width - 2, filter.shape[3]), name="conv_layer")


def expert(target: Target, cores: int) -> pt.Schedule:
    """Tiles of registers, whose weights lie in the order of their use."""
    *stages, weights = tiles("out", target)
    order = ("ky", "kx", "ci", "co")
    ordered = pt.on(weights.name).reorder(*order).reorder_storage(*order)
    return pt.Schedule(
        *stages,
        pt.on("filter").copy_in("out_sums", weights.name, "ci", "ky", "kx", "co"),
        pt.StageSchedule(weights.name, ordered.directives + weights.directives),
    )


def on_gpu() -> pt.Schedule:
    """A block computes 8 rows of 20 pixels by 128 channels in registers of its threads, 10 pixels by 4 + 4 channels
    each. While it sums over some channels of the image, the next ones and their weights go to shared memory."""

    def of_threads(
        stage: pt.StageSchedule, *around: str, inside: tuple[str, ...] = (), of: str = ""
    ) -> pt.StageSchedule:
        return (
            stage.split("x" + of, "tx", "pixel", 10)
            .split("co" + of, "half", "quarter", 64)
            .split("quarter", "tc", "channel", 4)
            .reorder(*around, "y" + of, "tx", "tc", *inside, "half", "pixel", "channel")
            .thread("y" + of, "tx", "tc")
            .unroll("pixel")
            .unroll("half")
            .unroll("channel")
        )

    out = pt.on("out").tile("y", "x", "co", "yb", "xb", "cb", "y_in", "x_in", "co_in", 8, 20, 128)
    sums = of_threads(pt.on("out_sums").compute_at("out", "cb").store_in("register"), "n")
    inside = ("c", "r.y", "r.x")
    return pt.Schedule(
        of_threads(out, "n", "yb", "xb", "cb", of="_in").block("n", "yb", "xb", "cb"),
        of_threads(sums.update().split("r.c", "slice", "c", 4), "n", "slice", inside=inside).unroll("r.x"),
        pt.on("filter").copy_in("out_sums", "weights", "ci", "ky", "kx", "co"),
        pt.on("weights")
        .compute_at("out_sums", "slice")
        .store_in("shared")
        .compute_ahead()
        .split("co", "parts", "part", 4, tail="guard")
        .thread("ci", "ky", "kx", "parts")
        .vectorize("part"),
        pt.on("img").copy_in("out_sums", "pixels", "n", "y", "x", "ci"),
        pt.on("pixels")
        .compute_at("out_sums", "slice")
        .store_in("shared")
        .compute_ahead()
        .reorder_storage("n", "y", "ci", "x")
        .thread("n", "y", "x", "ci"),
    )


def _shapes(images: int, height: int, width: int, channels: int) -> dict[str, tuple[int, ...]]:
    """Inputs for an output of this size, from as many channels to as many."""
    return {
        "img": (images, height + 2, width + 2, channels),
        "filter": (channels, 3, 3, channels),
        "bias": (channels,),
    }


APPS = (
    App(
        "conv_layer",
        "3x3 convolution and ReLU, channel-innermost",
        build,
        expert,
        {
            "small": _shapes(2, 20, 23, 32),
            "paper": _shapes(5, 80, 100, 128),
            "thesis": _shapes(4, 128, 128, 64),
            "batch16": _shapes(16, 256, 256, 64),
        },
        floats,
        on_gpu=on_gpu,
    ),
)
