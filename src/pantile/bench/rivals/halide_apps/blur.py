"""3x3 box blur of 16-bit integers: two passes of three-point averages."""

from collections.abc import Mapping

import halide as hl

STRIP_ROWS = 32
LANES = 16
ROWS_PER_THREAD, COLUMNS_PER_THREAD, THREADS = 8, 4, 64  # on GPUs


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the blur of ``images["img"]``, two rows and two columns smaller than it."""
    source = images["img"]
    x, y = hl.Var("x"), hl.Var("y")

    blur_x, blur_y = hl.Func("blur_x"), hl.Func("blur_y")
    blur_x[x, y] = (source[x, y] + source[x + 1, y] + source[x + 2, y]) / 3
    blur_y[x, y] = (blur_x[x, y] + blur_x[x, y + 1] + blur_x[x, y + 2]) / 3

    if manual and target.has_gpu_feature():
        gpu_expert(blur_y, x, y)
    elif manual:
        row = hl.Var("row")
        blur_y.split(y, y, row, STRIP_ROWS).parallel(y).vectorize(x, LANES)
        blur_x.store_at(blur_y, y).compute_at(blur_y, x).vectorize(x, LANES)
    return blur_y


def gpu_expert(blur_y: hl.Func, x: hl.Var, y: hl.Var) -> None:
    """A thread makes four columns of eight rows, and shares what their sums of rows have in common."""
    row, thread_x, thread_y = hl.Var("row"), hl.Var("thread_x"), hl.Var("thread_y")
    blur_y.vectorize(x, COLUMNS_PER_THREAD).split(y, y, row, ROWS_PER_THREAD).reorder(row, x).unroll(row)
    blur_y.gpu_tile(x, y, thread_x, thread_y, THREADS, 1)
