"""The maximum over a disc of radius 26 around each pixel, from a table of maxima over powers of two of rows."""

from collections.abc import Mapping

import halide as hl

BEAM_SIZE = 1
RADIUS = 26
LEVELS = 6  # maxima over 1, 2, .. 32 rows
SLAB_COLUMNS = 256
LANES = 8
GPU_COLUMNS, GPU_TILE, DISC_TILE, TABLE_TILE = 32, (16, 16), (32, 4), 32


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the maxima of ``images["img"]``, of the same shape."""
    source = images["img"]
    x, y, c, t = hl.Var("x"), hl.Var("y"), hl.Var("c"), hl.Var("t")
    padded = hl.BoundaryConditions.repeat_edge(source)

    # Row y of level t: the maximum of rows y .. y + 2**t - 1. Below the image all rows are the same.
    rows = hl.Func("rows")
    rows[x, y, c, t] = padded[x, y, c]
    r = hl.RDom([(-RADIUS, source.height() + RADIUS), (1, LEVELS - 1)])
    half = hl.clamp(hl.i32(1) << (r.y - 1), 0, 2 * RADIUS)
    rows[x, r.x, c, r.y] = hl.max(rows[x, r.x, c, r.y - 1], rows[x, r.x + half, c, r.y - 1])

    # The maximum of 2*t + 1 rows around y: two overlapping entries of the table.
    slices = hl.Func("slice_for_radius")
    slices[t] = _floor_log2(2 * t + 1)
    column = hl.Func("column")
    level = hl.clamp(slices[t], 0, LEVELS - 1)
    above, below = y - t, y + t + 1 - hl.clamp(hl.i32(1) << level, 0, 2 * RADIUS)
    column[x, y, c, t] = hl.max(rows[x, above, c, level], rows[x, below, c, level])

    # How high the disc's column at each distance is.
    height = hl.Func("filter_height")
    dy = hl.RDom([(0, RADIUS + 1)])
    inside = hl.f32(x * x + dy.x * dy.x) < hl.f32((RADIUS + 0.25) ** 2)
    height[x] = hl.sum(hl.select(inside, hl.i32(1), hl.i32(0)))

    output = hl.Func("output")
    dx = hl.RDom([(-RADIUS, 2 * RADIUS + 1)])
    output[x, y, c] = hl.maximum(column[x + dx.x, y, c, hl.clamp(height[dx.x], 0, RADIUS + 1)])

    if manual and target.has_gpu_feature():
        gpu_expert(output, rows, r, [slices, height])
    elif manual:
        slab, inner, task = hl.Var("slab"), hl.Var("inner"), hl.Var("task")
        slices.compute_root()
        height.compute_root()
        output.split(x, slab, inner, SLAB_COLUMNS).reorder(inner, y, c, slab).fuse(c, slab, task).parallel(task)
        output.vectorize(inner, LANES)
        column.compute_at(output, y).vectorize(x, LANES)
        rows.compute_at(output, task).vectorize(x, LANES)
        rows.update(0).reorder(x, r.x, r.y, c).vectorize(x, LANES)
    return output


def gpu_expert(output: hl.Func, rows: hl.Func, r: hl.RDom, tables: list[hl.Func]) -> None:
    """The table of maxima in one kernel, a thread per column of each channel, the discs in another. The small tables
    are made on the GPU, too, not as published: copies from the processor would keep the kernels out of a graph.
    """
    x, y, c = output.args()
    t = rows.args()[3]
    block, thread, thread_y = hl.Var("block"), hl.Var("thread"), hl.Var("thread_y")
    for table in tables:
        table.compute_root().gpu_tile(table.args()[0], thread, TABLE_TILE)
    output.gpu_tile(x, y, thread, thread_y, *DISC_TILE)
    rows.compute_root().reorder(c, t, x, y).gpu_tile(x, y, thread, thread_y, *GPU_TILE)
    doubled = rows.update().split(x, block, thread, GPU_COLUMNS).reorder(r.x, r.y, thread, block, c)
    doubled.gpu_blocks(block, c).gpu_threads(thread)


def _floor_log2(n: hl.Expr) -> hl.Expr:
    return hl.i32(31) - hl.cast(hl.Int(32), hl.count_leading_zeros(hl.cast(hl.UInt(32), n)))
