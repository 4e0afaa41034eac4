"""Harris corner response of the luma of a planar colour image."""

from collections.abc import Callable, Mapping

import halide as hl

ORIGIN = (3, 3)
SPARE_ROWS = 8

STRIP_ROWS = 32
GPU_TILE = (62, 14)


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the response to ``images["img"]`` less a margin of three pixels all round."""
    source = images["img"]
    x, y = hl.Var("x"), hl.Var("y")

    gray, gradient_x, gradient_y = hl.Func("gray"), hl.Func("gradient_x"), hl.Func("gradient_y")
    gray[x, y] = hl.f32(0.299) * source[x, y, 0] + hl.f32(0.587) * source[x, y, 1] + hl.f32(0.114) * source[x, y, 2]
    gradient_x[x, y] = _sobel(lambda along, across: gray[x + along, y + across])
    gradient_y[x, y] = _sobel(lambda along, across: gray[x + across, y + along])

    xx = _window_sum("xx", x, y, gradient_x[x, y] * gradient_x[x, y])
    yy = _window_sum("yy", x, y, gradient_y[x, y] * gradient_y[x, y])
    xy = _window_sum("xy", x, y, gradient_x[x, y] * gradient_y[x, y])
    determinant, trace, output = hl.Func("determinant"), hl.Func("trace"), hl.Func("output")
    determinant[x, y] = xx[x, y] * yy[x, y] - xy[x, y] * xy[x, y]
    trace[x, y] = xx[x, y] + yy[x, y]
    output[x, y] = determinant[x, y] - hl.f32(0.04) * trace[x, y] * trace[x, y]

    if manual and target.has_gpu_feature():
        gpu_expert(output, gray, gradient_x, gradient_y)
    elif manual:
        lanes = target.natural_vector_size(hl.Float(32))
        row = hl.Var("row")
        output.split(y, y, row, STRIP_ROWS).parallel(y).vectorize(x, lanes)
        for stage in (gray, gradient_x, gradient_y):
            stage.store_at(output, y).compute_at(output, row).vectorize(x, lanes)
        gradient_x.compute_with(hl.LoopLevel(gradient_y, x, 0))
    return output


def gpu_expert(output: hl.Func, gray: hl.Func, gradient_x: hl.Func, gradient_y: hl.Func) -> None:
    """Tiles whose luma and gradients are in shared memory; a thread loads the windows of two pixels at once."""
    x, y = output.args()
    inner_x, inner_y = hl.Var("inner_x"), hl.Var("inner_y")
    output.gpu_tile(x, y, inner_x, inner_y, *GPU_TILE).unroll(inner_x, 2)
    gray.compute_at(output, x).gpu_threads(x, y).tile(x, y, inner_x, inner_y, 3, 2).unroll(inner_x).unroll(inner_y)
    gray.in_().compute_at(gradient_y, x).vectorize(x, 2).unroll(x).unroll(y)
    for gradient in (gradient_x, gradient_y):
        gradient.compute_at(output, x).gpu_threads(x, y).unroll(x, 2)
    gradient_x.compute_with(hl.LoopLevel(gradient_y, x, 0))
    for gradient in (gradient_x, gradient_y):
        gradient.in_().compute_at(output, inner_x).vectorize(x, 2).unroll(x).unroll(y)


def _sobel(tap: Callable[[int, int], hl.Expr]) -> hl.Expr:
    """Difference the taps at ``(along, across)``, smoothed 1-2-1 across, over twelve."""
    total = hl.f32(0.0)
    for across, weight in ((-1, 1.0), (0, 2.0), (1, 1.0)):
        total = total + tap(-1, across) * hl.f32(-weight / 12)
        total = total + tap(1, across) * hl.f32(weight / 12)
    return total


def _window_sum(name: str, x: hl.Var, y: hl.Var, value: hl.Expr) -> hl.Func:
    """Return the 3x3 sums of `value`, an expression of `x` and `y`."""
    term, total = hl.Func(name), hl.Func(f"sum_{name}")
    term[x, y] = value
    offsets = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    accumulated = term[x - 1, y - 1]
    for i, j in offsets[1:]:
        accumulated = accumulated + term[x + i, y + j]
    total[x, y] = accumulated
    return total
