"""Recursive first-order blur of a planar colour image: down and up the columns, then along the rows."""

from collections.abc import Mapping

import halide as hl

BEAM_SIZE = 1
ALPHA = 0.5
GPU_ROWS = 20  # that a thread loads at a time


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the blurred ``images["img"]``, of the same shape."""
    source = images["img"]
    chosen = target if manual else None
    turned = _transposed_blur(source, source.dim(1).extent(), chosen)
    return _transposed_blur(turned, source.dim(0).extent(), chosen)


def _transposed_blur(source: hl.ImageParam | hl.Func, height: hl.Expr, target: hl.Target | None) -> hl.Func:
    """Filter the columns, `height` long, and transpose; scheduled for `target` unless None."""
    x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
    blur, transpose = hl.Func("blur"), hl.Func("transpose")
    row = hl.RDom([(1, height - 1)])
    upwards = height - 1 - row.x
    keep, take = hl.f32(1 - ALPHA), hl.f32(ALPHA)
    blur[x, y, c] = hl.undef(hl.Float(32))
    blur[x, 0, c] = source[x, 0, c]
    blur[x, row.x, c] = keep * blur[x, row.x - 1, c] + take * source[x, row.x, c]
    blur[x, upwards, c] = keep * blur[x, upwards + 1, c] + take * blur[x, upwards, c]
    transpose[x, y, c] = blur[y, x, c]

    if target is not None and target.has_gpu_feature():
        gpu_expert(transpose, blur, row)
    elif target is not None:
        lanes = target.natural_vector_size(hl.Float(32))
        xo, yo, xi, yi = hl.Var("xo"), hl.Var("yo"), hl.Var("xi"), hl.Var("yi")
        transpose.compute_root().tile(x, y, xo, yo, xi, yi, lanes, 4 * lanes)
        transpose.vectorize(xi).parallel(yo).parallel(c)
        blur.compute_at(transpose, yo)
        for update in (1, 2):
            blur.update(update).reorder(x, row.x).vectorize(x, lanes).unroll(x)
        blur.update(0).vectorize(x, lanes)
    return transpose


def gpu_expert(transpose: hl.Func, blur: hl.Func, row: hl.RDom) -> None:
    """A warp filters 32 columns, some rows of loads at a time, and transposes them through shared memory."""
    x, y, c = transpose.args()
    lane, inner = hl.Var("lane"), hl.Var("inner")
    transpose.compute_root().tile(x, y, lane, inner, 32, 32).gpu_blocks(y, c).gpu_lanes(lane)
    blur.compute_at(transpose, y).store_in(hl.MemoryType.Heap).gpu_lanes(x)
    blur.update(0).gpu_lanes(x)
    for update in (1, 2):
        blur.update(update).unroll(row.x, GPU_ROWS).gpu_lanes(x)
    blur.in_().align_storage(x, 33).compute_at(transpose, x).gpu_lanes(x)
