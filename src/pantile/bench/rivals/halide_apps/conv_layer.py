"""A 3x3 convolution with bias and ReLU over channel-innermost images."""

from collections.abc import Mapping
from typing import Any

import halide as hl


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the layer of ``images["img"]``, two rows and columns smaller."""
    source, weights, bias = images["img"], images["filter"], images["bias"]
    channels_in, width, height, batch = _extents(source)
    channels_out = _extents(bias)[0]
    c, x, y, n = hl.Var("c"), hl.Var("x"), hl.Var("y"), hl.Var("n")
    r = hl.RDom([(0, channels_in), (0, 3), (0, 3)])

    conv, relu = hl.Func("conv"), hl.Func("relu")
    conv[c, x, y, n] = bias[c]
    conv[c, x, y, n] += weights[c, r.y, r.z, r.x] * source[r.x, x + r.y, y + r.z, n]
    relu[c, x, y, n] = hl.max(0, conv[c, x, y, n])

    # As published, the program is made for one size.
    for image in images.values():
        _fix_layout(image, _extents(image))
    _fix_layout(relu.output_buffer(), [channels_out, width - 2, height - 2, batch])

    if manual and target.has_gpu_feature():
        gpu_expert(source, relu, conv, r)
    elif manual:
        lanes = target.natural_vector_size(hl.Float(32))
        vectors, pixels = (3, 4) if lanes == 8 else (4, 5)
        co, ci, xo, xi = (hl.Var(name) for name in ("co", "ci", "xo", "xi"))
        relu.split(c, co, ci, lanes * vectors).split(x, xo, xi, pixels)
        relu.reorder(ci, xi, xo, y, n, co).vectorize(ci, lanes).unroll(ci).unroll(xi)
        relu.parallel(y).parallel(n).parallel(co)
        conv.compute_at(relu, xo).vectorize(c, lanes).unroll(c).unroll(x).unroll(y)
        accumulate = conv.update(0).reorder(c, x, y, r.x, r.y, r.z, n)
        accumulate.vectorize(c, lanes).unroll(c).unroll(x).unroll(y).unroll(r.x, 2)
        loaded, broadcast = _copy(weights), _copy(source)
        first, *_, last = loaded.args()
        loaded.compute_at(conv, r.x).vectorize(first, lanes).unroll(first).unroll(last)
        broadcast.compute_at(conv, x).unroll(broadcast.args()[0])
    return relu


def gpu_expert(source: hl.ImageParam, relu: hl.Func, conv: hl.Func, r: hl.RDom) -> None:
    """A warp makes five by five pixels of 32 channels in registers, from tiles of the image in shared memory."""
    c, x, y, n = relu.args()
    xo, xi, yo, yi, co, ci, task = (hl.Var(name) for name in ("xo", "xi", "yo", "yi", "co", "ci", "task"))
    outer, inner, pair = hl.RVar("outer"), hl.RVar("inner"), hl.RVar("pair")
    relu.compute_root().split(x, xo, xi, 5).split(y, yo, yi, 5).split(c, co, ci, 32)
    relu.reorder(xi, yi, ci, xo, yo, co, n).gpu_lanes(ci).unroll(xi).unroll(yi).fuse(co, n, task)
    relu.gpu_blocks(xo, yo, task)
    conv.compute_at(relu, xo).store_in(hl.MemoryType.Register).gpu_lanes(c).unroll(x).unroll(y)
    accumulate = conv.update().split(r.x, outer, inner, 16).split(inner, inner, pair, 2)
    accumulate.reorder(c, pair, x, y, r.y, r.z, inner, outer).gpu_lanes(c).unroll(x).unroll(y)
    accumulate.unroll(r.y).unroll(r.z).unroll(pair)
    tile = _copy(source)
    channel, column, row, _ = tile.args()
    tile.compute_at(conv, outer).vectorize(channel, 2).split(column, xo, xi, 4).fuse(channel, xi, task)
    tile.gpu_lanes(task).unroll(xo).unroll(row)


def _extents(image: hl.ImageParam) -> list[int]:
    buffer = image.get()
    return [buffer.dim(d).extent() for d in range(buffer.dimensions())]


def _fix_layout(buffer: Any, extents: list[int]) -> None:
    """Make bounds and strides of a dense buffer constants of the program."""
    stride = 1
    for d, extent in enumerate(extents):
        buffer.dim(d).set_bounds(0, extent).set_stride(stride)
        stride *= extent


def _copy(image: hl.ImageParam) -> hl.Func:
    """What reads of `image` go through. Halide 14 gives the method a name that is a keyword of Python."""
    return (image.in_ if hasattr(image, "in_") else getattr(image, "in"))()
