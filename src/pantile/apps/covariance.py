"""Covariance of columns of data (PolyBench's; in the post-tiling fusion paper).

    mean[j] = sum over k of data[k, j] / n
    out[i, j] = sum over k of (data[k, i] - mean[i]) * (data[k, j] - mean[j]) / (n - 1)

The result is symmetric, so the triangle above the diagonal is computed, as `blocked` tells, and then mirrored.
"""

from __future__ import annotations

import pantile as pt
from pantile.target import Target

from .app import App, doubles
from .blocked import blocks, product, tiles
from .tiled import in_panels, points


def build() -> pt.Pipeline:
    """data[k, j] -> out[i, j]."""
    i, j, k = pt.vars("i j k")
    data = pt.Input("data", "float64", ndim=2)
    n, columns = data.shape
    count = pt.cast("float64", n)
    padded = pt.constant(data, 0, axes=(1,))
    r = pt.RDom((0, n), names="k")
    total, mean, centred = pt.Func("total"), pt.Func("mean"), pt.Func("centred")
    upper, out = pt.Func("upper"), pt.Func("out")
    total[j] = pt.sum(padded[r.k, j], over=r)
    mean[j] = total[j] / count
    centred[k, j] = padded[k, j] - mean[j]
    squares = product(
        "squares", lambda i, k: centred[k, i], lambda k, j: centred[k, j], n, bits=64, where=lambda i, j, k: j >= i
    )
    upper[i, j] = squares[i, j] / (count - 1)
    out[i, j] = pt.select(j >= i, upper[i, j], upper[j, i])
    return pt.Pipeline(out, shape=(columns, columns), name="covariance")


def expert(target: Target, cores: int) -> pt.Schedule:
    """The mirror turns squares in registers."""
    line, side = target.line // 8, target.lanes(64)
    return pt.Schedule(
        pt.on("out")
        .tile("i", "j", "io", "jo", "ii", "ji", 64, 64)
        .split("ii", "ii", "row", side)
        .vectorize("ji", side)
        .reorder("io", "jo", "ii", "ji", "row", "ji_v")
        .unroll("row")
        .parallel("io")
        .partition("jo", "always"),
        tiles("upper", target, cores, bits=64),
        *blocks("squares", "upper", target, cores, bits=64, diagonal=True),
        pt.on("centred").compute_inline(),
        pt.on("mean").vectorize("j", line),
        pt.on("total").vectorize("j", line).update().vectorize("j", line).reorder("j", "r.k", "j_v").parallel("j"),
    )


def on_gpu() -> pt.Schedule:
    """Half as many lanes of numbers twice as long."""
    inlined = [pt.on(name).compute_inline() for name in ("upper", "centred")]
    return pt.Schedule(points("out"), *inlined, *in_panels("squares", lanes=4, copied=True))


APPS = (
    App(
        "covariance",
        "covariance matrix, float64",
        build,
        expert,
        {"small": {"data": (190, 170)}, "paper": {"data": (3000, 2600)}},
        doubles,
        on_gpu=on_gpu,
    ),
)
