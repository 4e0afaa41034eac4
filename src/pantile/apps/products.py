"""Products of matrices (PolyBench's; in Sioutas' thesis, chapter 4, and in the post-tiling fusion paper).

    gemm       alpha*A*B + beta*C
    mm2        alpha*A*B*C + beta*D, from left to right
    mm3        (A*B) * (C*D)
    doitgen    out[r, i, j] = sum over k of a[r, i, k] * c[k, j]

How products are computed is told in `blocked`; chains of them are computed one after the other.
"""

from __future__ import annotations

import pantile as pt
from pantile.target import Target

from .app import App, Expert, floats
from .blocked import blocks, matrices, product, tiles
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
)
