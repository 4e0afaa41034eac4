"""VGG-16, the whole forward pass: 13 convolutions in five groups with pooling after each, three dense layers, softmax.

The schedule of each convolution is that of `convolution`: tiles of registers. A dense layer is the same with images in
the place of pixels: weights are read once, for four images at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pantile as pt
from pantile.target import Target

from .app import App, Array, Shape
from .convolution import LINE, copied_in_threads, copies, elements, in_threads, layer, padded, scaled, tiles

GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # channels, convolutions
DENSE = (4096, 4096, 1000)
Groups = Sequence[tuple[int, int]]
_IMAGES = 4  # at a time through a dense layer
_PART = 64  # channels of the inputs that a block of threads sums up


def build(groups: Groups = GROUPS, dense: Sequence[int] = DENSE) -> pt.Pipeline:
    """img[n, y, x, 3] -> probabilities[n, class].

    filter1_1[ci, ky, kx, co] and bias1_1[co], and so on; dense1[y, x, ci, o], dense2[i, o], dense3[i, o] and
    dense_bias1[o] to dense_bias3[o].
    """
    n, y, x, c = pt.vars("n y x c")
    img = pt.Input("img", "float32", ndim=4)
    features: pt.Input | pt.Func = img
    shape: tuple[Any, ...] = img.shape
    channels = 3
    for k, (width, convolutions) in enumerate(groups, 1):
        shape = (*shape[:3], width)
        for name in _names(k, convolutions):
            filter, bias = pt.Input(f"filter{name}", "float32", ndim=4), pt.Input(f"bias{name}", "float32", ndim=1)
            features = layer(f"conv{name}", padded(features), elements(filter), elements(bias), channels, shape)
            channels = width
        shape = (shape[0], shape[1] // 2, shape[2] // 2, width)
        pool = pt.Func(f"pool{k}", domain=[(0, extent) for extent in shape])
        quad = [features[n, 2 * y + dy, 2 * x + dx, c] for dy in (0, 1) for dx in (0, 1)]
        pool[n, y, x, c] = pt.maximum(pt.maximum(quad[0], quad[1]), pt.maximum(quad[2], quad[3]))
        features = pool
    out = _softmax(_dense_layers(features, shape, dense), dense[-1])
    return pt.Pipeline(out, shape=(img.shape[0], dense[-1]), name="vgg16")


def _names(group: int, convolutions: int) -> list[str]:
    return [f"{group}_{k}" for k in range(1, convolutions + 1)]


def _dense_layers(features: pt.Input | pt.Func, shape: Sequence[Any], widths: Sequence[int]) -> pt.Func:
    """ReLU between them; the scores of the classes."""
    n, o = pt.vars("n o")
    for k, width in enumerate(widths, 1):
        ndim = len(shape)
        weights, bias = pt.Input(f"dense{k}", "float32", ndim=ndim), pt.Input(f"dense_bias{k}", "float32", ndim=1)
        r = pt.RDom(*((0, extent) for extent in shape[1:]), name="r", names="y x c" if ndim == 4 else "c")
        sums, dense = pt.Func(f"dense{k}_sums"), pt.Func(f"dense{k}_layer")
        sums[n, o] = bias[o]
        sums[n, o] += elements(weights)(*r, o) * elements(features, n)(*r)
        dense[n, o] = pt.maximum(sums[n, o], 0) if k < len(widths) else sums[n, o]
        features, shape = dense, (shape[0], width)
    return dense


def _softmax(scores: pt.Func, classes: int) -> pt.Func:
    """Exponentials of what is below the largest score, divided by their sum."""
    n, o = pt.vars("n o")
    r = pt.RDom((0, classes), name="r", names="o")
    largest, power, total, out = pt.Func("largest"), pt.Func("power"), pt.Func("total"), pt.Func("out")
    largest[n] = pt.max(scores[n, r.o], over=r)
    power[n, o] = pt.exp(scores[n, o] - largest[n])
    total[n] = pt.sum(power[n, r.o], over=r)
    out[n, o] = power[n, o] / total[n]
    return out


def expert(target: Target, cores: int, groups: Groups = GROUPS) -> pt.Schedule:
    """Every layer at root; pooling as part of the copy for the next layer."""
    stages, source, channels = [], "img", 3
    for k, (width, convolutions) in enumerate(groups, 1):
        for name in _names(k, convolutions):
            stages += [copies(source, channels), *tiles(f"conv{name}", target, channels)]
            source, channels = f"conv{name}", width
        source = f"pool{k}"
    for k in range(1, len(DENSE) + 1):
        stages += _dense_schedule(f"dense{k}")
    return pt.Schedule(*stages)


def _dense_schedule(name: str) -> list[pt.StageSchedule]:
    taps = ("r.y", "r.x") if name == "dense1" else ()
    return [
        pt.on(f"{name}_layer")
        .compute_root()
        .split("n", "images", "image", _IMAGES)
        .split("o", "block", "lane", LINE)
        .reorder("block", "images", "image", "lane")
        .vectorize("lane")
        .unroll("image")
        .parallel("block"),
        pt.on(f"{name}_sums")
        .compute_at(f"{name}_layer", "images")
        .vectorize("o", LINE)
        .unroll("n", _IMAGES)
        .update()
        .split("r.c", "c", "step", 4)
        .reorder(*taps, "c", "step", "n", "o")
        .vectorize("o", LINE)
        .unroll("n", _IMAGES)
        .unroll("step"),
    ]


def on_gpu(groups: Groups = GROUPS) -> pt.Schedule:
    """The GPU schedule: a kernel for each layer, two for a dense one."""
    stages, source, channels = [], "img", 3
    for k, (width, convolutions) in enumerate(groups, 1):
        for name in _names(k, convolutions):
            stages += [copied_in_threads(source), *in_threads(f"conv{name}", channels)]
            source, channels = f"conv{name}", width
        source = f"pool{k}"
    for k in range(1, len(DENSE) + 1):
        stages += _dense_on_gpu(f"dense{k}")
    return pt.Schedule(*stages)


def _dense_on_gpu(name: str) -> list[pt.StageSchedule]:
    """Blocks sum up a part of the inputs each, their threads for all images at once; then the parts are summed up."""
    part, taps = f"{name}_sums_part", ("r.y", "r.x") if name == "dense1" else ()
    sums = pt.on(f"{name}_sums").compute_at(f"{name}_layer", "to").store_in("register")
    return [
        pt.on(f"{name}_layer")
        .compute_root()
        .split("o", "ob", "to", 128)
        .reorder("n", "ob", "to")
        .block("n", "ob")
        .thread("to"),
        sums.update().split("r.c", "part", "c", _PART).rfactor("part", "part"),
        pt.on(part)
        .split("o", "ob", "to", 128)
        .reorder("part", "ob", "to", "n")
        .block("part", "ob")
        .thread("to")
        .update()
        .split("o", "ob", "to", 128)
        .split("n", "nb", "image", _IMAGES)
        .reorder("part", "nb", "ob", "to", *taps, "c", "image")
        .block("part", "nb", "ob")
        .thread("to")
        .unroll("image"),
    ]


def shapes(
    images: int, height: int, width: int, groups: Groups = GROUPS, dense: Sequence[int] = DENSE
) -> dict[str, tuple[int, ...]]:
    """Of all inputs, for images of this size."""
    result: dict[str, tuple[int, ...]] = {"img": (images, height, width, 3)}
    channels = 3
    for k, (features, convolutions) in enumerate(groups, 1):
        for name in _names(k, convolutions):
            result |= {f"filter{name}": (channels, 3, 3, features), f"bias{name}": (features,)}
            channels = features
    inputs: tuple[int, ...] = (height // 2 ** len(groups), width // 2 ** len(groups), channels)
    for k, features in enumerate(dense, 1):
        result |= {f"dense{k}": (*inputs, features), f"dense_bias{k}": (features,)}
        inputs = (features,)
    return result


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Weights that keep the size of what they are applied to, and small biases."""
    summands = 1000 if "bias" in name else 2 if name == "img" else 9 * shape[0] if "filter" in name else shape[:-1]
    return scaled(shape, rng, int(np.prod(summands)))


APPS = (
    App(
        "vgg16",
        "13 convolutions, 3 dense layers",
        build,
        expert,
        {"small": shapes(1, 32, 32), "paper": shapes(4, 224, 224)},
        _make,
        on_gpu=on_gpu,
    ),
)
