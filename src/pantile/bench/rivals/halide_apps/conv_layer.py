"""A 3x3 convolution with bias and ReLU over channel-innermost images."""

from collections.abc import Mapping

import halide as hl


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the layer of ``images["img"]``, two rows and columns smaller."""
    source, weights, bias = images["img"], images["filter"], images["bias"]
    c, x, y, n = hl.Var("c"), hl.Var("x"), hl.Var("y"), hl.Var("n")
    r = hl.RDom([(0, source.dim(0).extent()), (0, 3), (0, 3)])

    conv, relu = hl.Func("conv"), hl.Func("relu")
    conv[c, x, y, n] = bias[c]
    conv[c, x, y, n] += weights[c, r.y, r.z, r.x] * source[r.x, x + r.y, y + r.z, n]
    relu[c, x, y, n] = hl.max(0, conv[c, x, y, n])

    if manual:
        lanes = target.natural_vector_size(hl.Float(32))
        vectors, pixels = (3, 4) if lanes == 8 else (4, 5)
        co, ci, xo, xi = (hl.Var(name) for name in ("co", "ci", "xo", "xi"))
        relu.split(c, co, ci, lanes * vectors).split(x, xo, xi, pixels)
        relu.reorder(ci, xi, xo, y, n, co).vectorize(ci, lanes).unroll(ci).unroll(xi)
        relu.parallel(y).parallel(n).parallel(co)
        conv.compute_at(relu, xo).vectorize(c, lanes).unroll(c).unroll(x).unroll(y).unroll(n)
        accumulate = conv.update(0).reorder(c, x, y, r.x, r.y, r.z, n)
        accumulate.vectorize(c, lanes).unroll(c).unroll(x).unroll(y).unroll(n).unroll(r.x, 2)
    return relu
