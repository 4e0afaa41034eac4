"""Apps that have panels and copies written into them, in plain formulas: what they say about memory is schedule here.

`python -m tests.apps.plain [SIZE]` measures both by turns and prints the least CPU times, the app's first.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pantile as pt
from pantile.apps import APPS
from pantile.apps.app import Expert
from pantile.apps.blocked import LINE, blocks, tiles
from pantile.apps.convolution import tiles as tiles_of_pixels
from pantile.apps.products import scales
from pantile.machine import usable_cores
from pantile.target import Target, host

# A factor of a product: its name, what its dims are called there, and which of the reads it is if there are two.
Factor = tuple[str | int, ...]
A, B = ("a", "i", "k"), ("b", "k", "j")


@dataclass(frozen=True)
class Product:
    """Stage `result` is made of sums of left[i, k] * right[k, j]; alone: of nothing else."""

    result: str
    left: Factor = A
    right: Factor = B
    alone: bool = False


@dataclass(frozen=True)
class Plain:
    """An app's formula without any panels, and the schedule that makes them."""

    build: Callable[[], pt.Pipeline]
    expert: Expert


def inputs(names: str, dtype: str = "float32") -> list[pt.Input]:
    """Matrices."""
    return [pt.Input(name, dtype, ndim=2) for name in names]


def over(extent: Any) -> pt.RDom:
    return pt.RDom((0, extent), name="r", names="k")


def matmul(dtype: str = "float32") -> pt.Pipeline:
    (i, j), (a, b), out = pt.vars("i j"), inputs("ab", dtype), pt.Func("out")
    r = over(a.shape[1])
    out[i, j] = pt.sum(pt.cast("float32", a[i, r.k]) * pt.cast("float32", b[r.k, j]), over=r)
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[1]))


def gemm() -> pt.Pipeline:
    (i, j), (a, b, c), (alpha, beta) = pt.vars("i j"), inputs("abc"), scales()
    r, ab, out = over(a.shape[1]), pt.Func("ab"), pt.Func("out")
    ab[i, j] = pt.sum(a[i, r.k] * b[r.k, j], over=r)
    out[i, j] = alpha * ab[i, j] + beta * c[i, j]
    return pt.Pipeline(out, shape=c.shape)


def mm2() -> pt.Pipeline:
    (i, j), (a, b, c, d), (alpha, beta) = pt.vars("i j"), inputs("abcd"), scales()
    r, s = over(a.shape[1]), over(b.shape[1])
    ab, left, abc, out = pt.Func("ab"), pt.Func("left"), pt.Func("abc"), pt.Func("out")
    ab[i, j] = pt.sum(a[i, r.k] * b[r.k, j], over=r)
    left[i, j] = alpha * ab[i, j]
    abc[i, j] = pt.sum(left[i, s.k] * c[s.k, j], over=s)
    out[i, j] = abc[i, j] + beta * d[i, j]
    return pt.Pipeline(out, shape=d.shape)


def mm3() -> pt.Pipeline:
    (i, j), (a, b, c, d) = pt.vars("i j"), inputs("abcd")
    r, s, t = over(a.shape[1]), over(c.shape[1]), over(b.shape[1])
    left, right, out = pt.Func("left"), pt.Func("right"), pt.Func("out")
    left[i, j] = pt.sum(a[i, r.k] * b[r.k, j], over=r)
    right[i, j] = pt.sum(c[i, s.k] * d[s.k, j], over=s)
    out[i, j] = pt.sum(left[i, t.k] * right[t.k, j], over=t)
    return pt.Pipeline(out, shape=(a.shape[0], d.shape[1]))


def doitgen() -> pt.Pipeline:
    (r, i, j), (c,), out = pt.vars("r i j"), inputs("c"), pt.Func("out")
    a = pt.Input("a", "float32", ndim=3)
    s = over(a.shape[2])
    out[r, i, j] = pt.sum(a[r, i, s.k] * c[s.k, j], over=s)
    return pt.Pipeline(out, shape=(a.shape[0], a.shape[1], c.shape[1]))


def trmm() -> pt.Pipeline:
    (i, j), (a, b), (alpha, _) = pt.vars("i j"), inputs("ab"), scales()
    r, above, out = over(b.shape[0]), pt.Func("above"), pt.Func("out")
    above[i, j] = pt.sum(a[r.k, i] * b[r.k, j], over=r.where(r.k > i))
    out[i, j] = alpha * (b[i, j] + above[i, j])
    return pt.Pipeline(out, shape=b.shape)


def syrk() -> pt.Pipeline:
    a, c = inputs("ac")
    return updated(c, below("aa", a, a))


def syr2k() -> pt.Pipeline:
    a, b, c = inputs("abc")
    return updated(c, below("ab", a, b), below("ba", b, a))


def below(name: str, a: pt.Input, b: pt.Input) -> pt.Func:
    """a times b's transpose, in and below the diagonal."""
    (i, j), r, result = pt.vars("i j"), over(a.shape[1]), pt.Func(name)
    result[i, j] = pt.sum(a[i, r.k] * b[j, r.k], over=r.where(j <= i))
    return result


def updated(c: pt.Input, *updates: pt.Func) -> pt.Pipeline:
    (i, j), (alpha, beta), out = pt.vars("i j"), scales(), pt.Func("out")
    update = updates[0][i, j] if len(updates) == 1 else updates[0][i, j] + updates[1][i, j]
    out[i, j] = alpha * update + pt.select(j <= i, beta, 1) * c[i, j]
    return pt.Pipeline(out, shape=c.shape)


def covariance() -> pt.Pipeline:
    (i, j, k), (data,) = pt.vars("i j k"), [pt.Input("data", "float64", ndim=2)]
    n, columns = data.shape
    r, count = over(n), pt.cast("float64", n)
    total, mean, centred = pt.Func("total"), pt.Func("mean"), pt.Func("centred")
    squares, upper, out = pt.Func("squares"), pt.Func("upper"), pt.Func("out")
    total[j] = pt.sum(data[r.k, j], over=r)
    mean[j] = total[j] / count
    centred[k, j] = data[k, j] - mean[j]
    squares[i, j] = pt.sum(centred[r.k, i] * centred[r.k, j], over=r.where(j >= i))
    upper[i, j] = squares[i, j] / (count - 1)
    out[i, j] = pt.select(j >= i, upper[i, j], upper[j, i])
    return pt.Pipeline(out, shape=(columns, columns))


def conv_layer() -> pt.Pipeline:
    n, y, x, co = pt.vars("n y x co")
    img, filter = pt.Input("img", "float32", ndim=4), pt.Input("filter", "float32", ndim=4)
    bias = pt.Input("bias", "float32", ndim=1)
    r = pt.RDom((0, 3), (0, 3), (0, filter.shape[0]), name="r", names="y x c")
    sums, out = pt.Func("out_sums"), pt.Func("out")
    sums[n, y, x, co] = bias[co]
    sums[n, y, x, co] += filter[r.c, r.y, r.x, co] * img[n, y + r.y, x + r.x, r.c]
    out[n, y, x, co] = pt.maximum(sums[n, y, x, co], 0)
    images, height, width, _ = img.shape
    return pt.Pipeline(out, shape=(images, height - 2, width - 2, filter.shape[3]))


def transpose(masked: bool = False) -> pt.Pipeline:
    (y, x), out = pt.vars("y x"), pt.Func("out")
    img = pt.Input("img", "uint32", ndim=2)
    out[y, x] = img[x, y] & pt.Input("mask", "uint32", ndim=2)[y, x] if masked else img[x, y]
    return pt.Pipeline(out, shape=(img.shape[1], img.shape[0]))


# ---- schedules: those of the apps, and what makes of the formulas what is written into these


def packed(
    name: str, result: str, target: Target, cores: int, bits: int = 32, diagonal: bool = False
) -> list[pt.StageSchedule]:
    """Those of a product and its copied factors, the right one and the product in panels a cache line wide."""
    lanes = LINE // bits
    first = [
        pt.on(name).panels("j", "p", "lane", lanes).reorder("p", "i").reorder_storage("p", "i"),
        pt.on(f"{name}_rows").reorder_storage("i", "k"),
        pt.on(f"{name}_panels").panels("j", "p", "lane", lanes).reorder_storage("p", "k", "lane"),
    ]
    then = blocks(name, result, target, cores, bits=bits, diagonal=diagonal)
    return [pt.StageSchedule(a.name, a.directives + b.directives) for a, b in zip(first, then, strict=True)]


def multiplied(task: str = "io", diagonal: bool = False, **products: Product) -> Expert:
    """Each product in blocks of the stage that is made of it, and copies of its factors."""

    def expert(target: Target, cores: int) -> pt.Schedule:
        stages = {p.result: tiles(p.result, target, cores, task=task) for p in products.values()}
        for name, p in products.items():
            if p.alone:
                stages[p.result] = stages[p.result].copy_out(name)
            for (source, *dims), part in ((p.left, "rows"), (p.right, "panels")):
                chain = stages.get(str(source), pt.on(source))
                stages[str(source)] = chain.copy_in(name, f"{name}_{part}", *dims)
            stages |= {s.name: s for s in packed(name, p.result, target, cores, diagonal=diagonal)}
        return pt.Schedule(*stages.values())

    return expert


def covariance_expert(target: Target, cores: int) -> pt.Schedule:
    """What reads data at the end of a panel is in panels, too; the right factor is computed there, not copied."""
    expert = APPS["covariance"].expert
    assert expert is not None
    lanes = LINE // 64
    total = pt.on("total").panels("j", "p", "lane", lanes).vectorize("lane", lanes)
    return expert(target, cores).replace(
        *packed("squares", "upper", target, cores, bits=64, diagonal=True),
        pt.on("centred")
        .compute_inline()
        .copy_in("squares", "squares_rows", "k", "i", 0)
        .clone_in("squares", "squares_panels", 1),
        pt.on("mean").panels("j", "p", "lane", lanes).vectorize("lane", lanes),
        total.update().reorder("p", "r.k", "lane").vectorize("lane", lanes).parallel("p"),
    )


def conv_layer_expert(target: Target, cores: int) -> pt.Schedule:
    """Weights in the order of their use."""
    *stages, weights = tiles_of_pixels("out", target)
    order = ("ky", "kx", "ci", "co")
    ordered = pt.on(weights.name).reorder(*order).reorder_storage(*order)
    return pt.Schedule(
        *stages,
        pt.on("filter").copy_in("out_sums", weights.name, "ci", "ky", "kx", "co"),
        pt.StageSchedule(weights.name, ordered.directives + weights.directives),
    )


def transposed(name: str) -> Expert:
    """The app's, whose rows are copies."""

    def expert(target: Target, cores: int) -> pt.Schedule:
        made = APPS[name].expert
        assert made is not None
        return made(target, cores).replace(pt.on("img").copy_in("out", "rows", "x", "y"))

    return expert


PLAIN: Mapping[str, Plain] = {
    "matmul": Plain(matmul, multiplied(ab=Product("out", alone=True))),
    "matmul_half": Plain(lambda: matmul("float16"), multiplied(ab=Product("out", alone=True))),
    "gemm": Plain(gemm, multiplied(ab=Product("out"))),
    "mm2": Plain(mm2, multiplied(ab=Product("left"), abc=Product("out", ("left", "i", "k"), ("c", "k", "j")))),
    "mm3": Plain(
        mm3,
        multiplied(
            ab=Product("left", alone=True),
            cd=Product("right", ("c", "i", "k"), ("d", "k", "j"), alone=True),
            abcd=Product("out", ("left", "i", "k"), ("right", "k", "j"), alone=True),
        ),
    ),
    "doitgen": Plain(
        doitgen, multiplied(task="r", ac=Product("out", ("a", "r", "i", "k"), ("c", "k", "j"), alone=True))
    ),
    "trmm": Plain(trmm, multiplied(above=Product("out", ("a", "k", "i")))),
    "syrk": Plain(syrk, multiplied(diagonal=True, aa=Product("out", (*A, 0), ("a", "j", "k", 1)))),
    "syr2k": Plain(
        syr2k,
        multiplied(
            diagonal=True,
            ab=Product("out", A, ("b", "j", "k")),
            ba=Product("out", ("b", "i", "k"), ("a", "j", "k")),
        ),
    ),
    "covariance": Plain(covariance, covariance_expert),
    "conv_layer": Plain(conv_layer, conv_layer_expert),
    "tp": Plain(transpose, transposed("tp")),
    "tpm": Plain(lambda: transpose(masked=True), transposed("tpm")),
}


def plain(name: str) -> pt.Pipeline:
    """The plain formula under its schedule, for this machine."""
    p = PLAIN[name]
    return p.build().with_schedule(p.expert(host(), usable_cores()))


def measure(size: str, rounds: int = 5) -> None:
    for name in PLAIN:
        app = APPS[name]
        given = app.inputs(size)
        both = [app.build().with_schedule(app.schedule("expert", host())), plain(name)]
        seconds = [float("inf")] * 2
        for _ in range(rounds + 1):
            for k, p in enumerate(both):
                start = time.process_time()
                p(**given)
                seconds[k] = min(seconds[k], time.process_time() - start)
        print(f"{name:12} {1000 * seconds[0]:9.2f} ms {1000 * seconds[1]:9.2f} ms {seconds[1] / seconds[0]:6.2f}")


if __name__ == "__main__":
    measure(*sys.argv[1:] or ("paper",))
