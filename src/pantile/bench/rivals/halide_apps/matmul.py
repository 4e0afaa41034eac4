"""Product of two float matrices."""

from collections.abc import Mapping

import halide as hl

ROWS = 4  # of a tile of registers
GPU_TILE, THREAD_TILE, GPU_STEPS = (64, 16), (4, 4), 8
GPU_ALIGNMENT = 16  # bytes, without which four elements are loaded one by one


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return ``images["a"]`` times ``images["b"]``."""
    a, b = images["a"], images["b"]
    x, y = hl.Var("x"), hl.Var("y")
    k = hl.RDom([(0, a.dim(0).extent())])

    panel, product, output = hl.Func("panel"), hl.Func("product"), hl.Func("output")
    panel[x, y] = b[x, y]
    product[x, y] = hl.f32(0.0)
    product[x, y] += a[k.x, y] * panel[x, k.x]
    output[x, y] = product[x, y]

    if manual and target.has_gpu_feature():
        gpu_expert(a, b, panel, product, output, k)
    elif manual:
        lanes = target.natural_vector_size(hl.Float(32))
        columns = lanes * (3 if lanes == 8 else 6)  # AVX2 has half as many registers
        xo, yo, xi, yi = hl.Var("xo"), hl.Var("yo"), hl.Var("xi"), hl.Var("yi")
        output.tile(x, y, xo, yo, xi, yi, columns, ROWS).reorder(xi, yi, yo, xo)
        output.vectorize(xi, lanes).unroll(xi).unroll(yi).parallel(xo)
        product.compute_at(output, yo).vectorize(x, lanes).unroll(x).unroll(y)
        accumulate = product.update(0).reorder(x, y, k.x)
        accumulate.vectorize(x, lanes).unroll(x).unroll(y).unroll(k.x, 2)
        panel.compute_at(output, xo).vectorize(x, lanes).unroll(x)
    return output


def gpu_expert(
    a: hl.ImageParam, b: hl.ImageParam, panel: hl.Func, product: hl.Func, output: hl.Func, k: hl.RDom
) -> None:
    """Threads make four by four elements in registers, and load what some steps need of both matrices at once."""
    x, y = output.args()
    thread_x, thread_y, inner_x, inner_y = (hl.Var(n) for n in ("thread_x", "thread_y", "inner_x", "inner_y"))
    size = [(matrix.get().dim(0).extent(), matrix.get().dim(1).extent()) for matrix in (a, b)]
    (_, rows), (columns, _) = size
    output.bound(x, 0, columns).bound(y, 0, rows).tile(x, y, thread_x, thread_y, *GPU_TILE)
    output.tile(thread_x, thread_y, inner_x, inner_y, *THREAD_TILE).gpu_blocks(x, y).gpu_threads(thread_x, thread_y)
    output.unroll(inner_x).unroll(inner_y)
    product.compute_at(output, thread_x).vectorize(x).unroll(y)
    product.update().reorder(x, y, k.x).vectorize(x).unroll(y).unroll(k.x, GPU_STEPS)
    loaded = _copy(a)
    first, second = loaded.args()
    loaded.compute_at(product, k.x).vectorize(first).unroll(second)
    panel.compute_at(product, k.x).vectorize(x).unroll(y)
    for matrix, (width, height) in zip((a, b, output.output_buffer()), (*size, (columns, rows)), strict=True):
        matrix.set_host_alignment(GPU_ALIGNMENT)
        matrix.dim(0).set_bounds(0, width)
        matrix.dim(1).set_bounds(0, height).set_stride(width)


def _copy(image: hl.ImageParam) -> hl.Func:
    """What reads of `image` go through. Halide 14 gives the method a name that is a keyword of Python."""
    return (image.in_ if hasattr(image, "in_") else getattr(image, "in"))()
