"""Sums over rows of a sparse matrix, whose lengths are data: each runs for one row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt
from pantile.analysis.loop_bounds import ragged
from pantile.machine import named

N1 = named("neoverse-n1")


def product() -> pt.Pipeline:
    """A sparse matrix times a vector, and twice that times another."""
    i, d = pt.vars("i d")
    value = pt.Input("value", "float32", ndim=1)
    start, column = (pt.Input(name, "int32", ndim=1) for name in ("start", "column"))
    x, out = pt.Input("x", "float32", shape=(None, 2)), pt.Func("out")
    every = pt.RDom((0, value.shape[0]), names="e", name="r")
    own = every.where((every.e >= start[i]) & (start[i + 1] > every.e))
    out[i, d] = pt.sum(value[own.e] * x[pt.within(column[own.e], 0, x.shape[0] - 1), d], over=own)
    return pt.Pipeline(out, shape=(start.shape[0] - 1, 2))


def matrix(rows: int) -> dict[str, Any]:
    """With rows of 0 to 6 elements."""
    rng = np.random.default_rng(0)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 7, rows))]).astype(np.int32)
    column = rng.integers(0, rows, start[-1]).astype(np.int32)
    return {
        "value": rng.random(start[-1], np.float32),
        "start": start,
        "column": column,
        "x": rng.random((rows, 2), np.float32),
    }


def test_what_data_decide() -> None:
    assert ragged(product().graph.stages[0].updates[0]) == {"r.e": frozenset({"i"})}
    i = pt.Var("i")
    img, out = pt.Input("img", "float32", ndim=1), pt.Func("out")
    r = pt.RDom((0, img.shape[0]), name="r")
    out[i] = pt.sum(img[r[0]], over=r.where((r[0] <= i) & (r[0] >= 0)))
    triangle = pt.Pipeline(out, shape=img.shape).graph.stages
    assert not any(ragged(d) for s in triangle for d in s.updates), "coordinates decide, not data"


def test_the_plain_schedule_takes_one_row_at_a_time() -> None:
    p = product().with_schedule("plain")
    (_, rows) = repr(p.schedule.on("out")).split(".update(0)")
    assert 'vectorize("i' not in rows and 'parallel("i"' in rows
    sizes = matrix(301)
    np.testing.assert_allclose(p(**sizes), p.reference(**sizes), rtol=1e-5)


def test_vectors_of_rows_would_run_over_the_whole_matrix() -> None:
    p = product()
    sizes = {n: a.shape for n, a in matrix(3000).items()}
    start = pt.on("out").compute_root().update(0)
    plain, vectors = (
        p.with_schedule(pt.Schedule(chain), machine=N1).predict(**sizes, num_threads=1).seconds
        for chain in (start.reorder("i", "d", "r.e"), start.vectorize("i", 4).reorder("i", "d", "r.e", "i_v"))
    )
    assert vectors > 20 * plain
    found = p.with_schedule("auto", estimates=sizes, machine=N1)
    assert found.predict(**sizes, num_threads=1).seconds < vectors / 10
