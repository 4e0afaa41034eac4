"""Product of two float matrices."""

from collections.abc import Mapping

import halide as hl

ROWS = 4  # of a tile of registers


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

    if manual:
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
