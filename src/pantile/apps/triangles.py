"""Products of which a triangle is computed (PolyBench's; in Sioutas' thesis, chapter 4).

    trmm     alpha*A'*B, A' being the part of a's transpose above the diagonal, with ones on it
    syrk     alpha*A*A' + beta*C in and below the diagonal, C above it
    syr2k    alpha*(A*B' + B*A') + beta*C in and below the diagonal, C above it

How products are computed is told in `blocked`. Their conditions become bounds of loops, so that half of the work is not
done; only the tiles on the diagonal look at them.
"""

from __future__ import annotations

from functools import partial

import pantile as pt

from .app import App, floats
from .blocked import Entry, Product, product
from .products import chain, scales, square
from .tiled import in_panels, points


def trmm() -> pt.Pipeline:
    """a[k, i], b[k, j] -> out[i, j]."""
    i, j = pt.vars("i j")
    a, b = (pt.Input(name, "float32", ndim=2) for name in "ab")
    alpha, _ = scales()
    padded = pt.constant(b, 0, axes=(1,))
    above = product("above", lambda i, k: a[k, i], lambda k, j: padded[k, j], b.shape[0], where=lambda i, j, k: k > i)
    out = pt.Func("out")
    out[i, j] = alpha * (b[i, j] + above[i, j])
    return pt.Pipeline(out, shape=b.shape, name="trmm")


def syrk() -> pt.Pipeline:
    """a[i, k], c[i, j] -> out[i, j]."""
    a, c = (pt.Input(name, "float32", ndim=2) for name in "ac")
    aa = _below("aa", a, a)
    return _updated("syrk", c, lambda i, j: aa[i, j])


def syr2k() -> pt.Pipeline:
    """a[i, k], b[i, k], c[i, j] -> out[i, j]."""
    a, b, c = (pt.Input(name, "float32", ndim=2) for name in "abc")
    ab, ba = _below("ab", a, b), _below("ba", b, a)
    return _updated("syr2k", c, lambda i, j: ab[i, j] + ba[i, j])


def _below(name: str, a: pt.Input, b: pt.Input) -> Product:
    """a times b's transpose, in and below the diagonal; 0 above it."""
    padded = pt.constant(b, 0, axes=(0,))
    return product(name, lambda i, k: a[i, k], lambda k, j: padded[j, k], a.shape[1], where=lambda i, j, k: j <= i)


def _updated(name: str, c: pt.Input, update: Entry) -> pt.Pipeline:
    i, j = pt.vars("i j")
    alpha, beta = scales()
    out = pt.Func("out")
    out[i, j] = alpha * update(i, j) + pt.select(j <= i, beta, 1) * c[i, j]
    return pt.Pipeline(out, shape=c.shape, name=name)


def on_gpu(*products: str) -> pt.Schedule:
    """Blocks in the triangle ask no thread whether it is there."""
    return pt.Schedule(points("out"), *(s for name in products for s in in_panels(name)))


APPS = (
    App(
        "trmm",
        "a triangular matrix times a full one, float32",
        trmm,
        chain(above="out"),
        {"small": {"a": (170, 170), "b": (170, 150)}, "paper": square(2048, "ab")},
        floats,
        on_gpu=partial(on_gpu, "above"),
    ),
    App(
        "syrk",
        "symmetric rank-k update, float32",
        syrk,
        chain(diagonal=True, aa="out"),
        {"small": {"a": (170, 150), "c": (170, 170)}, "paper": square(2048, "ac")},
        floats,
        on_gpu=partial(on_gpu, "aa"),
    ),
    App(
        "syr2k",
        "symmetric rank-2k update, float32",
        syr2k,
        chain(diagonal=True, ab="out", ba="out"),
        {"small": {"a": (170, 150), "b": (170, 150), "c": (170, 170)}, "paper": square(2048, "abc")},
        floats,
        on_gpu=partial(on_gpu, "ab", "ba"),
    ),
)
