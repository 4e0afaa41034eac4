"""Convolution, batch normalization and ReLU: the layers that ResNet-50 consists of, one app per kind of window.

out = max(0, gamma*(conv - mean)/sqrt(variance + 1e-5) + beta), with zeros around the image.

The schedule is that of `convolution`: tiles of registers, with the normalization applied before a tile is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

import pantile as pt
from pantile.target import Target

from .app import App, Array, Shape
from .convolution import copied_in_threads, copies, elements, in_threads, padded, scaled, tiles, weighted_sums

EPSILON = 1e-5
_STATISTICS = ("gamma", "beta", "mean", "variance")


def build(size: int = 3, stride: int = 1) -> pt.Pipeline:
    """img[n, y, x, ci], filter[ci, ky, kx, co], gamma, beta, mean and variance[co] -> out[n, y, x, co]."""
    n, y, x, co = pt.vars("n y x co")
    img, filter = pt.Input("img", "float32", ndim=4), pt.Input("filter", "float32", ndim=4)
    gamma, beta, mean, variance = (pt.Input(name, "float32", ndim=1) for name in _STATISTICS)
    r = pt.RDom((0, size), (0, size), (0, filter.shape[0]), name="r", names="y x c")
    source = padded(img, size // 2) if size > 1 else img
    sums = weighted_sums("out", source, elements(filter), lambda _: 0.0, r, stride)
    scale, out = pt.Func("scale"), pt.Func("out")
    scale[co] = gamma[co] / pt.sqrt(variance[co] + EPSILON)
    out[n, y, x, co] = pt.maximum(scale[co] * (sums[n, y, x, co] - mean[co]) + beta[co], 0)
    images, height, width, _ = img.shape
    shape = (images, (height - 1) // stride + 1, (width - 1) // stride + 1, filter.shape[3])
    return pt.Pipeline(out, shape=shape, name="conv_bn_relu")


def expert(target: Target, cores: int, size: int = 3) -> pt.Schedule:
    """Tiles of registers; the large window is that of the first layer, whose image has three channels."""
    channels = 3 if size == 7 else 64
    around = (copies("img", channels),) if size > 1 else ()
    return pt.Schedule(*around, *tiles("out", target, channels), pt.on("scale").compute_root())


def on_gpu(size: int = 3) -> pt.Schedule:
    """Tiles of registers of threads."""
    around = (copied_in_threads("img"),) if size > 1 else ()
    return pt.Schedule(*around, *in_threads("out", 3 if size == 7 else 64), pt.on("scale").thread("co"))


def shapes(size: int, images: int, image: int, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    """Of all inputs, for square images."""
    statistics = dict.fromkeys(_STATISTICS, (outputs,))
    return {"img": (images, image, image, inputs), "filter": (inputs, size, size, outputs), **statistics}


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    if name == "variance":
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return scaled(shape, rng, int(np.prod(shape[:-1])) if name == "filter" else 2)


def _app(name: str, size: int, stride: int, layers: Mapping[str, tuple[int, int, int]]) -> App:
    """Layers: name of a size -> rows of the image, channels in and out; four images each."""
    sizes = {layer: shapes(size, 4, *numbers) for layer, numbers in layers.items()}
    return App(
        name,
        f"{size}x{size} convolution by {stride}, batch normalization, ReLU",
        partial(build, size, stride),
        partial(expert, size=size),
        {"small": shapes(size, 1, 17, 8, 24), **sizes},
        _make,
        on_gpu=partial(on_gpu, size),
    )


_GROUPS = {"conv2": (56, 64), "conv3": (28, 128), "conv4": (14, 256), "conv5": (7, 512)}

APPS = (
    _app("conv_bn_relu", 3, 1, {"paper": (56, 64, 64), **{g: (n, w, w) for g, (n, w) in _GROUPS.items()}}),
    _app("conv_bn_relu_stride2", 3, 2, {"paper": (56, 128, 128), "conv4": (28, 256, 256), "conv5": (14, 512, 512)}),
    _app(
        "conv_bn_relu_1x1",
        1,
        1,
        {
            "paper": (56, 64, 256),
            **{f"{g}_reduce": (n, 4 * w, w) for g, (n, w) in _GROUPS.items()},
            **{f"{g}_expand": (n, w, 4 * w) for g, (n, w) in _GROUPS.items()},
        },
    ),
    _app(
        "conv_bn_relu_1x1_stride2",
        1,
        2,
        {"paper": (56, 256, 512), "conv4": (28, 512, 1024), "conv5": (14, 1024, 2048)},
    ),
    _app("conv_bn_relu_7x7", 7, 2, {"paper": (224, 3, 64)}),
)
