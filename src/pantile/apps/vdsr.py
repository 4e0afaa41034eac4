"""Very deep super-resolution (VDSR): 20 layers of 3x3 convolutions compute what to add to an enlarged image.

The schedule of each layer is that of `convolution`: tiles of registers. Each result is copied into a frame of zeros
for the next layer, which costs a hundredth of the layer itself.
"""

from __future__ import annotations

import numpy as np

import pantile as pt
from pantile.target import Target

from .app import App, Array, Shape
from .convolution import copied_in_threads, copies, elements, in_threads, layer, padded, scaled, tiles

LAYERS, FEATURES = 20, 64


def build(layers: int = LAYERS) -> pt.Pipeline:
    """img[n, y, x, 1] -> out of the same shape.

    first[1, ky, kx, co], filters[layer, ci, ky, kx, co] and last[ci, ky, kx, 1]; biases[layer, co], last_bias[1].
    """
    n, y, x, c = pt.vars("n y x c")
    img, first = pt.Input("img", "float32", ndim=4), pt.Input("first", "float32", ndim=4)
    filters, biases = pt.Input("filters", "float32", ndim=5), pt.Input("biases", "float32", ndim=2)
    last, last_bias = pt.Input("last", "float32", ndim=4), pt.Input("last_bias", "float32", ndim=1)
    shape = (*img.shape[:3], FEATURES)

    features = layer(_name(0), padded(img), elements(first), elements(biases, 0), 1, shape)
    for k in range(1, layers - 1):
        filter, bias = elements(filters, k - 1), elements(biases, k)
        features = layer(_name(k), padded(features), filter, bias, FEATURES, shape)

    r = pt.RDom((0, 3), (0, 3), (0, FEATURES), name="r", names="y x c")
    around, residual, out = padded(features), pt.Func("residual"), pt.Func("out")
    residual[n, y, x] = last_bias[0]
    residual[n, y, x] += last[r.c, r.y, r.x, 0] * around[n, y + r.y, x + r.x, r.c]
    out[n, y, x, c] = img[n, y, x, c] + residual[n, y, x]
    return pt.Pipeline(out, shape=(*img.shape[:3], 1), name="vdsr")


def _name(k: int) -> str:
    return f"layer{k + 1}"


def expert(target: Target, cores: int, layers: int = LAYERS) -> pt.Schedule:
    """Every layer at root."""
    lanes = target.lanes(32)
    stages = [copies("img", 1)]
    for k in range(layers - 1):
        stages += [*tiles(_name(k), target, channels=FEATURES if k else 1), copies(_name(k), FEATURES)]
    residual = (
        pt.on("residual")
        .compute_at("out", "row")
        .vectorize("x", lanes)
        .update()
        .split("r.c", "c", "step", lanes)
        .vectorize("x", lanes)
        .reorder("r.y", "r.x", "c", "x", "step", "x_v")
        .unroll("step")
    )
    out = pt.on("out").fuse("n", "y", "row").reorder("row", "c", "x").vectorize("x", lanes).parallel("row")
    return pt.Schedule(*stages, residual, out)


def on_gpu(layers: int = LAYERS) -> pt.Schedule:
    """Every layer a kernel; of the last, a thread sums up the channels of a pixel."""
    stages = [copied_in_threads("img")]
    for k in range(layers - 1):
        stages += [*in_threads(_name(k), channels=FEATURES if k else 1), copied_in_threads(_name(k))]
    out = pt.on("out").split("x", "xb", "tx", 64).reorder("n", "y", "xb", "tx", "c").block("n", "y", "xb").thread("tx")
    residual = pt.on("residual").compute_at("out", "tx").store_in("register").update().unroll("r.c", 4)
    return pt.Schedule(*stages, out, residual)


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Weights that keep the size of what they are applied to."""
    summands = {"first": 9, "filters": 9 * FEATURES, "last": 9 * FEATURES, "biases": 1000, "last_bias": 1000}
    return scaled(shape, rng, summands.get(name, 2))


def shapes(images: int, height: int, width: int, layers: int = LAYERS) -> dict[str, tuple[int, ...]]:
    """Of all inputs, for images of this size."""
    return {
        "img": (images, height, width, 1),
        "first": (1, 3, 3, FEATURES),
        "filters": (layers - 2, FEATURES, 3, 3, FEATURES),
        "biases": (layers - 1, FEATURES),
        "last": (FEATURES, 3, 3, 1),
        "last_bias": (1,),
    }


APPS = (
    App(
        "vdsr",
        "20 layers of 3x3 convolutions",
        build,
        expert,
        {"small": shapes(1, 24, 28), "paper": shapes(1, 256, 256)},
        _make,
        on_gpu=on_gpu,
    ),
)
