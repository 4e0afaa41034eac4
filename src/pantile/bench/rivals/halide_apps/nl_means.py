"""Non-local means: pixels near each, weighted by how alike the 7x7 patches around them are."""

from collections.abc import Mapping

import halide as hl

BEAM_SIZE = 1

PATCH, SEARCH, SIGMA = 7, 7, 0.12
TILE_COLUMNS, TILE_ROWS = 16, 8
GPU_TILE = (32, 16)
BLURRED_TILE = (128 - (PATCH - 1), 32 - (PATCH - 1))  # so that what it reads is a multiple of the threads


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the denoised ``images["img"]``, of the same shape."""
    x, y, c, dx, dy = hl.Var("x"), hl.Var("y"), hl.Var("c"), hl.Var("dx"), hl.Var("dy")
    padded = hl.BoundaryConditions.repeat_edge(images["img"])

    squared, difference = hl.Func("squared"), hl.Func("difference")
    apart = padded[x, y, c] - padded[x + dx, y + dy, c]
    squared[x, y, dx, dy, c] = apart * apart
    channels = hl.RDom([(0, 3)])
    difference[x, y, dx, dy] = hl.sum(squared[x, y, dx, dy, channels.x])

    patch = hl.RDom([(-(PATCH // 2), PATCH)])
    down, across, weight = hl.Func("down"), hl.Func("across"), hl.Func("weight")
    down[x, y, dx, dy] = hl.sum(difference[x, y + patch.x, dx, dy])
    across[x, y, dx, dy] = hl.sum(down[x + patch.x, y, dx, dy])
    weight[x, y, dx, dy] = hl.fast_exp(across[x, y, dx, dy] * hl.f32(-1 / (SIGMA * SIGMA * PATCH * PATCH)))

    # A fourth channel of ones adds up the weights.
    with_ones = hl.Func("with_ones")
    with_ones[x, y, c] = hl.select(c < 3, padded[x, y, hl.clamp(c, 0, 2)], hl.f32(1))
    search = hl.RDom([(-(SEARCH // 2), SEARCH), (-(SEARCH // 2), SEARCH)])
    total, output = hl.Func("total"), hl.Func("output")
    total[x, y, c] = hl.f32(0)
    total[x, y, c] += weight[x, y, search.x, search.y] * with_ones[x + search.x, y + search.y, c]
    output[x, y, c] = hl.clamp(total[x, y, c] / total[x, y, 3], hl.f32(0), hl.f32(1))

    if manual and target.has_gpu_feature():
        gpu_expert(output, total, search, across, down, difference)
    elif manual:
        lanes = target.natural_vector_size(hl.Float(32))
        tile_x, tile_y, inner_x, inner_y = hl.Var("tile_x"), hl.Var("tile_y"), hl.Var("inner_x"), hl.Var("inner_y")
        output.reorder(c, x, y).tile(x, y, tile_x, tile_y, inner_x, inner_y, TILE_COLUMNS, TILE_ROWS)
        output.parallel(tile_y).vectorize(inner_x, lanes)
        difference.compute_at(output, tile_x).vectorize(x, lanes)
        down.compute_at(output, tile_x).reorder(y, x).vectorize(x, lanes)
        total.compute_at(output, inner_x).reorder(c, x, y).bound(c, 0, 4).unroll(c).vectorize(x, lanes)
        total.update(0).reorder(c, x, y, search.x, search.y).unroll(c).vectorize(x, lanes)
        across.compute_at(total, x).vectorize(x, lanes)
    return output


def gpu_expert(
    output: hl.Func, total: hl.Func, search: hl.RDom, across: hl.Func, down: hl.Func, difference: hl.Func
) -> None:
    """Two kernels for each row of displacements: sums of patches for all of them, and what they contribute."""
    x, y, c = output.args()
    dx = across.args()[2]
    thread_x, thread_y, inner_x, inner_y = (hl.Var(n) for n in ("thread_x", "thread_y", "inner_x", "inner_y"))
    output.compute_root().reorder(c, x, y).bound(c, 0, 3).unroll(c).gpu_tile(x, y, thread_x, thread_y, *GPU_TILE)
    total.compute_root().bound(c, 0, 4).gpu_tile(x, y, thread_x, thread_y, *GPU_TILE)
    added = total.update().reorder(c, search.x, x, y, search.y).tile(x, y, thread_x, thread_y, *GPU_TILE)
    added.gpu_blocks(x, y).gpu_threads(thread_x, thread_y).unroll(c)
    across.compute_at(total, search.y).tile(x, y, inner_x, inner_y, *BLURRED_TILE)
    across.tile(inner_x, inner_y, thread_x, thread_y, *GPU_TILE).gpu_threads(thread_x, thread_y).gpu_blocks(x, y, dx)
    for stage in (down, difference):
        stage.compute_at(across, x).tile(x, y, thread_x, thread_y, *GPU_TILE).gpu_threads(thread_x, thread_y)
