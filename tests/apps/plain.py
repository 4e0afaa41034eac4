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
from pantile.apps.blocked import LINE
from pantile.apps.packed import Factors, multiplied, packed
from pantile.apps.products import scales
from pantile.machine import usable_cores
from pantile.target import Target, host


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


def transpose(masked: bool = False) -> pt.Pipeline:
    (y, x), out = pt.vars("y x"), pt.Func("out")
    img = pt.Input("img", "uint32", ndim=2)
    out[y, x] = img[x, y] & pt.Input("mask", "uint32", ndim=2)[y, x] if masked else img[x, y]
    return pt.Pipeline(out, shape=(img.shape[1], img.shape[0]))


# ---- schedules: those of the apps, and what makes of the formulas what is written into these


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


def transposed(name: str) -> Expert:
    """The app's, whose rows are copies."""

    def expert(target: Target, cores: int) -> pt.Schedule:
        made = APPS[name].expert
        assert made is not None
        return made(target, cores).replace(pt.on("img").copy_in("out", "rows", "x", "y"))

    return expert


PLAIN: Mapping[str, Plain] = {
    "gemm": Plain(gemm, multiplied(ab=Factors("out"))),
    "mm2": Plain(mm2, multiplied(ab=Factors("left"), abc=Factors("out", ("left", "i", "k"), ("c", "k", "j")))),
    "mm3": Plain(
        mm3,
        multiplied(
            ab=Factors("left", alone=True),
            cd=Factors("right", ("c", "i", "k"), ("d", "k", "j"), alone=True),
            abcd=Factors("out", ("left", "i", "k"), ("right", "k", "j"), alone=True),
        ),
    ),
    "doitgen": Plain(
        doitgen, multiplied(task="r", ac=Factors("out", ("a", "r", "i", "k"), ("c", "k", "j"), alone=True))
    ),
    "trmm": Plain(trmm, multiplied(above=Factors("out", ("a", "k", "i")))),
    "syrk": Plain(syrk, multiplied(diagonal=True, aa=Factors("out", ("a", "i", "k", 0), ("a", "j", "k", 1)))),
    "syr2k": Plain(
        syr2k,
        multiplied(
            diagonal=True,
            ab=Factors("out", right=("b", "j", "k")),
            ba=Factors("out", ("b", "i", "k"), ("a", "j", "k")),
        ),
    ),
    "covariance": Plain(covariance, covariance_expert),
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
