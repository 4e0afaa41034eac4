"""Edge-preserving smoothing through a grid over space and brightness."""

from collections.abc import Callable, Mapping

import halide as hl

CELL = 8
RANGE = 0.1
LANES = 8
GRID_TILE, GPU_TILE = (8, 8), (32, 8)


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return ``images["img"]`` smoothed, of the same shape."""
    source = images["img"]
    x, y, z, c = hl.Var("x"), hl.Var("y"), hl.Var("z"), hl.Var("c")
    padded = hl.BoundaryConditions.repeat_edge(source)

    r = hl.RDom([(0, CELL), (0, CELL)])
    value = _unit(padded[x * CELL + r.x - CELL // 2, y * CELL + r.y - CELL // 2])
    level = hl.i32(value * hl.f32(1 / RANGE) + hl.f32(0.5))
    histogram = hl.Func("histogram")
    histogram[x, y, z, c] = hl.f32(0.0)
    histogram[x, y, level, c] += hl.select(c == 0, value, hl.f32(1.0))

    blur_z, blur_x, blur_y = hl.Func("blur_z"), hl.Func("blur_x"), hl.Func("blur_y")
    blur_z[x, y, z, c] = _smoothed(lambda k: histogram[x, y, z + k, c])
    blur_x[x, y, z, c] = _smoothed(lambda k: blur_z[x + k, y, z, c])
    blur_y[x, y, z, c] = _smoothed(lambda k: blur_x[x, y + k, z, c])

    depth = _unit(source[x, y]) * hl.f32(1 / RANGE)
    near = hl.i32(depth)

    def along_x(i: int, k: int) -> hl.Expr:
        ends = (blur_y[x / CELL + j, y / CELL + i, near + k, c] for j in (0, 1))
        return hl.lerp(*ends, hl.f32(x % CELL) / CELL)

    def along_y(k: int) -> hl.Expr:
        return hl.lerp(along_x(0, k), along_x(1, k), hl.f32(y % CELL) / CELL)

    interpolated, output = hl.Func("interpolated"), hl.Func("output")
    interpolated[x, y, c] = hl.lerp(along_y(0), along_y(1), depth - near)
    output[x, y] = interpolated[x, y, 0] / interpolated[x, y, 1]

    if manual and target.has_gpu_feature():
        gpu_expert(histogram, r, [blur_z, blur_x, blur_y], interpolated, output)
    elif manual:
        blur_z.compute_root().reorder(c, z, x, y).parallel(y).vectorize(x, LANES).unroll(c)
        histogram.compute_at(blur_z, y)
        histogram.update().reorder(c, r.x, r.y, x, y).unroll(c)
        for stage in (blur_x, blur_y):
            stage.compute_root().reorder(c, x, y, z).parallel(z).vectorize(x, LANES).unroll(c)
        output.compute_root().parallel(y).vectorize(x, LANES)
        for stage in (blur_z, blur_x, blur_y):
            stage.bound(c, 0, 2)
        histogram.bound(c, 0, 2)
    return output


def gpu_expert(histogram: hl.Func, r: hl.RDom, blurs: list[hl.Func], interpolated: hl.Func, output: hl.Func) -> None:
    """Histograms of a tile are made and blurred along z in shared memory; each other blur is a kernel."""
    blur_z, *others = blurs
    x, y, z, c = blur_z.args()
    inner_x, inner_y, inner_z = hl.Var("inner_x"), hl.Var("inner_y"), hl.Var("inner_z")
    round_up = hl.TailStrategy.RoundUp
    blur_z.compute_root().reorder(c, z, x, y).gpu_tile(x, y, inner_x, inner_y, *GRID_TILE)
    histogram.reorder(c, z, x, y).compute_at(blur_z, x).gpu_threads(x, y)
    histogram.update().reorder(c, r.x, r.y, x, y).gpu_threads(x, y).unroll(c)
    for blur in others:
        blur.compute_root().reorder(c, x, y, z).reorder_storage(c, x, y, z).vectorize(c).unroll(y, 2, round_up)
        blur.gpu_tile(x, y, z, inner_x, inner_y, inner_z, *GPU_TILE, 1, round_up)
    for stage in (*blurs, histogram):
        stage.bound(c, 0, 2)
    output.compute_root().gpu_tile(x, y, inner_x, inner_y, *GPU_TILE)
    interpolated.compute_at(output, inner_x).bound(c, 0, 2).vectorize(c)


def _unit(value: hl.Expr) -> hl.Expr:
    return hl.clamp(value, hl.f32(0.0), hl.f32(1.0))


def _smoothed(tap: Callable[[int], hl.Expr]) -> hl.Expr:
    """Weigh the taps at offsets -2 .. 2 by 1, 4, 6, 4, 1."""
    return tap(-2) + tap(-1) * 4 + tap(0) * 6 + tap(1) * 4 + tap(2)
