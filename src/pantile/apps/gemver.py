"""Vectors and a matrix (PolyBench's gemver; in the post-tiling fusion paper).

    A^ = A + u1*v1' + u2*v2'        x^ = x + beta*A^'*y + z        w^ = w + alpha*A^*x^

The results are x^ and w^: PolyBench looks at w^ alone. A^ is cheaper to compute again than to keep.

The idea of the schedule: two passes over A, as fast as memory gives it. In the first, each task sums some rows into a
vector of its own; these are then added up.
"""

from __future__ import annotations

import pantile as pt
from pantile.target import Target

from .app import App, doubles


def build() -> pt.Pipeline:
    """a[i, j], u1[i], v1[j], u2[i], v2[j], w[i], x[j], y[i], z[j] -> x^[j], w^[i]."""
    i, j = pt.vars("i j")
    a = pt.Input("a", "float64", ndim=2)
    u1, u2, w, y = (pt.Input(name, "float64", ndim=1) for name in ("u1", "u2", "w", "y"))
    v1, v2, x, z = (pt.Input(name, "float64", ndim=1) for name in ("v1", "v2", "x", "z"))
    alpha, beta = pt.Param("alpha", "float64", default=1.5), pt.Param("beta", "float64", default=1.2)
    rows = pt.RDom((0, a.shape[0]), name="rows", names="i")
    columns = pt.RDom((0, a.shape[1]), name="columns", names="j")
    hat, down, across = pt.Func("hat"), pt.Func("down"), pt.Func("across")
    x_out, w_out = pt.Func("x_out"), pt.Func("w_out")
    hat[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    down[j] = pt.sum(hat[rows.i, j] * y[rows.i], over=rows)
    x_out[j] = x[j] + beta * down[j] + z[j]
    across[i] = pt.sum(hat[i, columns.j] * x_out[columns.j], over=columns)
    w_out[i] = w[i] + alpha * across[i]
    return pt.Pipeline([x_out, w_out], shape=[(a.shape[1],), (a.shape[0],)], name="gemver")


def expert(target: Target, cores: int) -> pt.Schedule:
    """64 rows per task, four at a time; in the second pass each is summed in some lanes at first."""
    line, lanes = target.line // 8, 2 * target.lanes(64)
    return pt.Schedule(
        pt.on("hat").compute_inline(),
        pt.on("down")
        .vectorize("j", line)
        .update()
        .split("rows.i", "task", "i", 64)
        .rfactor("task", "task")
        .vectorize("j", line)
        .reorder("j", "task", "j_v"),
        pt.on("down_task")
        .vectorize("j", line)
        .parallel("task")
        .update()
        .split("i", "i", "row", 4)
        .vectorize("j", line)
        .reorder("task", "i", "j", "row", "j_v")
        .unroll("row")
        .partition("i", "always")
        .parallel("task"),
        pt.on("x_out").vectorize("j", line),
        pt.on("w_out").split("i", "io", "ii", 64).parallel("io"),
        pt.on("across")
        .compute_at("w_out", "io")
        .update()
        .split("columns.j", "j", "lane", lanes)
        .rfactor("lane", "lane"),
        pt.on("across_lane")
        .compute_at("w_out", "io")
        .reorder_storage("i", "lane")
        .reorder("i", "lane")
        .vectorize("lane", lanes)
        .update()
        .split("i", "i", "row", 4)
        .reorder("i", "j", "row", "lane")
        .vectorize("lane", lanes)
        .unroll("row"),
    )


def on_gpu() -> pt.Schedule:
    """Two passes as well: blocks sum 64 rows of 128 columns, and then 128 threads each a row."""
    return pt.Schedule(
        pt.on("hat").compute_inline(),
        pt.on("down")
        .split("j", "jb", "tj", 64)
        .block("jb")
        .thread("tj")
        .update()
        .split("rows.i", "task", "i", 64)
        .rfactor("task", "task")
        .split("j", "jb", "tj", 64)
        .reorder("jb", "tj", "task")
        .block("jb")
        .thread("tj"),
        pt.on("down_task")
        .split("j", "jb", "tj", 128)
        .reorder("task", "jb", "tj")
        .block("task", "jb")
        .thread("tj")
        .update()
        .split("j", "jb", "tj", 128)
        .reorder("task", "jb", "tj", "i")
        .block("task", "jb")
        .thread("tj"),
        pt.on("x_out").split("j", "jb", "tj", 64).block("jb").thread("tj"),
        pt.on("w_out").split("i", "ib", "ti", 64).block("ib").thread("ti"),
        pt.on("across")
        .split("i", "ib", "ti", 64)
        .block("ib")
        .thread("ti")
        .update()
        .split("columns.j", "j", "lane", 128)
        .rfactor("lane", "lane")
        .split("i", "ib", "ti", 64)
        .reorder("ib", "ti", "lane")
        .block("ib")
        .thread("ti"),
        pt.on("across_lane")
        .reorder_storage("i", "lane")
        .reorder("i", "lane")
        .block("i")
        .thread("lane")
        .update()
        .reorder("i", "lane", "j")
        .block("i")
        .thread("lane"),
    )


def shapes(rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    """Of the matrix and the vectors beside it."""
    down, across = dict.fromkeys(("u1", "u2", "w", "y"), (rows,)), dict.fromkeys(("v1", "v2", "x", "z"), (columns,))
    return {"a": (rows, columns), **down, **across}


APPS = (
    App(
        "gemver",
        "rank-2 update of a matrix and two products by vectors, float64",
        build,
        expert,
        {"small": shapes(190, 170), "paper": shapes(4000, 4000)},
        doubles,
        on_gpu=on_gpu,
    ),
)
