"""Unsharp masking of a planar colour image with a seven-tap Gaussian of its luma."""

import math
from collections.abc import Callable, Mapping

import halide as hl

SIGMA = 1.5
RADIUS = 3
STRIP_ROWS = 32
GPU_TILE = 16


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the sharpened ``images["img"]``, of the same shape."""
    source = images["img"]
    x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
    padded = hl.BoundaryConditions.repeat_edge(source)

    gray, blur_y, blur_x = hl.Func("gray"), hl.Func("blur_y"), hl.Func("blur_x")
    gray[x, y] = hl.f32(0.299) * padded[x, y, 0] + hl.f32(0.587) * padded[x, y, 1] + hl.f32(0.114) * padded[x, y, 2]
    blur_y[x, y] = _gaussian(lambda offset: gray[x, y + offset])
    blur_x[x, y] = _gaussian(lambda offset: blur_y[x + offset, y])

    sharpen, ratio, output = hl.Func("sharpen"), hl.Func("ratio"), hl.Func("output")
    sharpen[x, y] = 2 * gray[x, y] - blur_x[x, y]
    ratio[x, y] = sharpen[x, y] / gray[x, y]
    output[x, y, c] = ratio[x, y] * source[x, y, c]

    if manual and target.has_gpu_feature():
        gpu_expert(output, ratio, gray, blur_y)
    elif manual:
        lanes = target.natural_vector_size(hl.Float(32))
        strip, row = hl.Var("strip"), hl.Var("row")
        output.split(y, strip, row, STRIP_ROWS).vectorize(x, lanes)
        output.parallel(strip).reorder(x, c, row, strip)
        for stage in (gray, blur_y, ratio):
            stage.compute_at(output, row).store_at(output, strip).vectorize(x, lanes)
    return output


def gpu_expert(output: hl.Func, ratio: hl.Func, gray: hl.Func, blur_y: hl.Func) -> None:
    """Tiles whose luma and vertical sums are in shared memory; threads make several pixels of these."""
    x, y, c = output.args()
    inner_x, inner_y = hl.Var("inner_x"), hl.Var("inner_y")
    output.reorder(c, x, y).gpu_tile(x, y, inner_x, inner_y, GPU_TILE, GPU_TILE).bound(c, 0, 3).unroll(c)
    ratio.compute_at(output, inner_x)
    gray.compute_at(output, x).tile(x, y, inner_x, inner_y, 2, 2).unroll(inner_x).unroll(inner_y).gpu_threads(x, y)
    blur_y.compute_at(output, x).unroll(x, 2).gpu_threads(x, y)


def _gaussian(tap: Callable[[int], hl.Expr]) -> hl.Expr:
    """Weigh the taps at offsets ``-RADIUS .. RADIUS``, adding symmetric pairs first."""
    total = _weight(0) * tap(0)
    for offset in range(1, RADIUS + 1):
        total = total + _weight(offset) * (tap(-offset) + tap(offset))
    return total


def _weight(offset: int) -> hl.Expr:
    density = math.exp(-(offset**2) / (2 * SIGMA**2)) / (math.sqrt(2 * math.pi) * SIGMA)
    return hl.f32(density)
