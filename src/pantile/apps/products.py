"""Products of matrices (PolyBench's; in Sioutas' thesis, chapter 4, and in the post-tiling fusion paper).

    gemm       alpha*A*B + beta*C
    mm2        alpha*A*B*C + beta*D, from left to right
    mm3        (A*B) * (C*D)
    doitgen    out[r, i, j] = sum over k of a[r, i, k] * c[k, j]

Of others a triangle is computed:

    trmm     alpha*A'*B, A' being the part of a's transpose above the diagonal, with ones on it
    syrk     alpha*A*A' + beta*C in and below the diagonal, C above it
    syr2k    alpha*(A*B' + B*A') + beta*C in and below the diagonal, C above it

How products are computed is told in `blocked`; chains of them are computed one after the other. Conditions become
bounds of loops, so that half of the work is not done; only the tiles on the diagonal look at them.
"""

from __future__ import annotations

from functools import partial

import pantile as pt
from pantile.target import Target

from .app import App, Expert, floats
from .blocked import Entry, Product, blocks, matrices, product, tiles
from .tiled import in_panels, points


def scales() -> tuple[pt.Param, pt.Param]:
    """alpha and beta, with PolyBench's values."""
    return pt.Param("alpha", "float32", default=1.5), pt.Param("beta", "float32", default=1.2)


def gemm() -> pt.Pipeline:
    """a[i, k], b[k, j], c[i, j] -> out[i, j]."""
    i, j = pt.vars("i j")
    a, b, c = (pt.Input(name, "float32", ndim=2) for name in "abc")
    alpha, beta = scales()
    out = pt.Func("out")
    out[i, j] = alpha * matrices("ab", a, b, a.shape[1])[i, j] + beta * c[i, j]
    return pt.Pipeline(out, shape=c.shape, name="gemm")


def mm2() -> pt.Pipeline:
    """a, b, c and d of fitting shapes -> out of d's."""
    i, j = pt.vars("i j")
    a, b, c, d = (pt.Input(name, "float32", ndim=2) for name in "abcd")
    alpha, beta = scales()
    left, out = pt.Func("left"), pt.Func("out")
    left[i, j] = alpha * matrices("ab", a, b, a.shape[1])[i, j]
    out[i, j] = matrices("abc", left, c, b.shape[1])[i, j] + beta * d[i, j]
    return pt.Pipeline(out, shape=d.shape, name="mm2")


def mm3() -> pt.Pipeline:
    """a, b, c and d of fitting shapes -> out."""
    i, j = pt.vars("i j")
    a, b, c, d = (pt.Input(name, "float32", ndim=2) for name in "abcd")
    left, right, out = pt.Func("left"), pt.Func("right"), pt.Func("out")
    left[i, j] = matrices("ab", a, b, a.shape[1])[i, j]
    right[i, j] = matrices("cd", c, d, c.shape[1])[i, j]
    out[i, j] = product("abcd", lambda i, k: left[i, k], lambda k, j: right[k, j], b.shape[1])[i, j]
    return pt.Pipeline(out, shape=(a.shape[0], d.shape[1]), name="mm3")


def doitgen() -> pt.Pipeline:
    """a[r, i, k], c[k, j] -> out[r, i, j]."""
    r, i, j = pt.vars("r i j")
    a, c = pt.Input("a", "float32", ndim=3), pt.Input("c", "float32", ndim=2)
    padded = pt.constant(c, 0, axes=(1,))
    ac = product("ac", lambda r, i, k: a[r, i, k], lambda k, j: padded[k, j], a.shape[2], outer=(r,))
    out = pt.Func("out")
    out[r, i, j] = ac[r, i, j]
    return pt.Pipeline(out, shape=(a.shape[0], a.shape[1], c.shape[1]), name="doitgen")


def chain(*, task: str = "io", diagonal: bool = False, **products: str) -> Expert:
    """An expert schedule: each product in blocks of the stage that reads it, whose loop `task` is parallel."""

    def expert(target: Target, cores: int) -> pt.Schedule:
        results = [tiles(result, target, cores, task=task) for result in dict.fromkeys(products.values())]
        parts = [s for name, result in products.items() for s in blocks(name, result, target, cores, diagonal=diagonal)]
        return pt.Schedule(*results, *parts)

    return expert


def gemm_on_gpu() -> pt.Schedule:
    """The product, then what it is added to."""
    return pt.Schedule(points("out"), *in_panels("ab"))


def mm2_on_gpu() -> pt.Schedule:
    """One product after the other."""
    return pt.Schedule(points("out"), pt.on("left").compute_inline(), *in_panels("ab"), *in_panels("abc", copied=True))


def mm3_on_gpu() -> pt.Schedule:
    """The GPU schedule of three products."""
    inlined = [pt.on(name).compute_inline() for name in ("left", "right")]
    return pt.Schedule(points("out"), *inlined, *in_panels("ab"), *in_panels("cd"), *in_panels("abcd", copied=True))


def doitgen_on_gpu() -> pt.Schedule:
    """All products at once."""
    return pt.Schedule(points("out", "r"), *in_panels("ac", "r"))


def square(n: int, names: str) -> dict[str, tuple[int, ...]]:
    """Shapes of square matrices."""
    return dict.fromkeys(names, (n, n))


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
        "gemm",
        "alpha*A*B + beta*C, float32",
        gemm,
        chain(ab="out"),
        {"small": {"a": (200, 170), "b": (170, 150), "c": (200, 150)}, "paper": square(2048, "abc")},
        floats,
        on_gpu=gemm_on_gpu,
    ),
    App(
        "mm2",
        "alpha*A*B*C + beta*D, float32",
        mm2,
        chain(ab="left", abc="out"),
        {
            "small": {"a": (160, 220), "b": (220, 180), "c": (180, 240), "d": (160, 240)},
            "paper": {"a": (1600, 2200), "b": (2200, 1800), "c": (1800, 2400), "d": (1600, 2400)},
        },
        floats,
        on_gpu=mm2_on_gpu,
    ),
    App(
        "mm3",
        "(A*B) * (C*D), float32",
        mm3,
        chain(ab="left", cd="right", abcd="out"),
        {
            "small": {"a": (180, 200), "b": (200, 190), "c": (190, 220), "d": (220, 210)},
            "paper": square(2048, "abcd"),
        },
        floats,
        on_gpu=mm3_on_gpu,
    ),
    App(
        "doitgen",
        "products of many matrices by one, float32",
        doitgen,
        chain(task="r", ac="out"),
        {"small": {"a": (5, 70, 60), "c": (60, 80)}, "paper": {"a": (256, 256, 256), "c": (256, 256)}},
        floats,
        on_gpu=doitgen_on_gpu,
    ),
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
