"""Histogram equalization of the luma of a planar colour image."""

from collections.abc import Mapping

import halide as hl

LEVELS = 256
GPU_TILE = (256, 4)


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the equalized ``images["img"]``, of the same shape."""
    source = images["img"]
    x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
    columns, rows = source.width(), source.height()
    luma, counted_luma = _luma("luma", source, x, y), _luma("counted_luma", source, x, y)

    row_counts, counts, below = hl.Func("row_counts"), hl.Func("counts"), hl.Func("below")
    along = hl.RDom([(0, columns)])
    row_counts[x, y] = hl.i32(0)
    row_counts[hl.i32(_byte_range(counted_luma[along.x, y])), y] += 1
    down = hl.RDom([(0, rows)])
    counts[x] = hl.i32(0)
    counts[x] += row_counts[x, down.x]
    level = hl.RDom([(1, LEVELS - 1)])
    below[x] = counts[0]
    below[level.x] = below[level.x - 1] + counts[level.x]

    equal, output = hl.Func("equal"), hl.Func("output")
    share = hl.f32(255.0) / hl.f32(columns * rows)
    equal[x, y] = _byte_range(hl.f32(below[hl.i32(hl.u8(_byte_range(luma[x, y])))]) * share)
    cr = (source[x, y, 0] - luma[x, y]) * hl.f32(0.713)
    cb = (source[x, y, 2] - luma[x, y]) * hl.f32(0.564)
    red = equal[x, y] + cr * hl.f32(1.4)
    green = equal[x, y] - cb * hl.f32(0.343) - cr * hl.f32(0.711)
    blue = equal[x, y] + cb * hl.f32(1.765)
    output[x, y, c] = hl.select(c == 0, _byte(red), c == 1, _byte(green), _byte(blue))

    if manual and target.has_gpu_feature():
        gpu_expert(output, equal, below, counts, row_counts, counted_luma, along)
    elif manual:
        lanes = target.natural_vector_size(hl.Float(32))
        wrapper = row_counts.in_()
        wrapper.compute_root().vectorize(x, lanes).parallel(y, 4)
        counted_luma.compute_at(wrapper, y).vectorize(x, lanes)
        row_counts.compute_at(wrapper, y).vectorize(x, lanes)
        row_counts.update().reorder(y, along.x).unroll(y)
        counts.compute_root().vectorize(x, lanes)
        counts.update().reorder(x, down.x).vectorize(x, lanes).unroll(x, 4).reorder(down.x, x).parallel(x)
        below.compute_root()
        output.reorder(c, x, y).bound(c, 0, 3).unroll(c).parallel(y, 8).vectorize(x, 2 * lanes)
    return output


def gpu_expert(
    output: hl.Func, equal: hl.Func, below: hl.Func, counts: hl.Func, row_counts: hl.Func, luma: hl.Func, along: hl.RDom
) -> None:
    """A warp counts a row in shared memory, by atomic additions; others add up and write."""
    x, y, c = output.args()
    lane, thread_y, outer, inner = hl.Var("lane"), hl.Var("thread_y"), hl.RVar("outer"), hl.RVar("inner")

    def by_lanes(f: hl.Func) -> hl.Func:
        return f.split(x, x, lane, 64).vectorize(lane, 2).unroll(x).gpu_lanes(lane)

    wrapper = row_counts.in_()
    by_lanes(wrapper.compute_root()).gpu_blocks(y)
    by_lanes(row_counts.store_in(hl.MemoryType.GPUShared).compute_at(wrapper, y))
    row_counts.update().split(along.x, outer, inner, 32).reorder(inner, outer, y).atomic().gpu_lanes(inner)
    luma.compute_at(row_counts, outer).store_in(hl.MemoryType.Register).gpu_lanes(x)
    counts.compute_root().gpu_tile(x, lane, 16).update().gpu_tile(x, lane, 16)
    below.bound(x, 0, LEVELS).compute_root().gpu_tile(x, lane, 16).update().gpu_single_thread()
    output.reorder(c, x, y).bound(c, 0, 3).unroll(c).gpu_tile(x, y, lane, thread_y, *GPU_TILE).vectorize(lane, 4)
    equal.compute_at(output, lane).vectorize(x)
    below.in_().compute_at(output, x).split(x, x, lane, 64).vectorize(lane, 2).gpu_threads(lane, x)


def _luma(name: str, source: hl.ImageParam, x: hl.Var, y: hl.Var) -> hl.Func:
    result = hl.Func(name)
    result[x, y] = hl.f32(0.299) * source[x, y, 0] + hl.f32(0.587) * source[x, y, 1] + hl.f32(0.114) * source[x, y, 2]
    return result


def _byte_range(value: hl.Expr) -> hl.Expr:
    return hl.clamp(value, hl.f32(0.0), hl.f32(LEVELS - 1.0))


def _byte(value: hl.Expr) -> hl.Expr:
    return hl.u8(_byte_range(value))
