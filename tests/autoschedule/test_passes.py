"""Sums of pictures, in passes over tiles: which stages are such sums, and what becomes of them."""

from __future__ import annotations

import numpy as np

import pantile as pt
from pantile.autoschedule import STRATEGIES
from pantile.autoschedule.search.passes import passes

from .problems import ORDINARY, chain, matrix_product, problem_of


def matched() -> pt.Pipeline:
    """Each pixel with those around it, weighted by how alike three rows of both are."""
    y, x, d = pt.vars("y x d")
    img = pt.Input("img", "float32", ndim=2)
    source = pt.edge(img)
    apart, rows, total, out = pt.Func("apart"), pt.Func("rows"), pt.Func("total"), pt.Func("out")
    apart[d, y, x] = pt.abs(source[y, x] - source[y, x + d])
    rows[d, y, x] = apart[d, y - 1, x] + apart[d, y, x] + apart[d, y + 1, x]
    r = pt.RDom((-2, 5), name="r")
    total[y, x] = pt.sum(source[y, x + r[0]] / (1 + rows[r[0], y, x]), over=r)
    out[y, x] = total[y, x] * 0.5
    return pt.Pipeline(out, shape=img.shape)


def test_what_terms_are_made_of_rolls_down_the_tile() -> None:
    p = matched()
    problem = problem_of(p, ORDINARY, img=(2000, 3000))
    start = STRATEGIES["greedy"]().find(problem).schedule.replace(pt.on("rows").compute_root())
    start = start.replace(pt.on("apart").compute_root(), pt.on("total").compute_root())
    (found,) = passes(problem, start, "total")
    assert '.compute_at("out", "x_o")' in repr(found.on("total"))
    assert '.reorder("r.0", "y", "x", "y_r", "x_v")' in repr(found.on("total"))
    assert '.compute_at("total", "y").store_at("total", "r.0")' in repr(found.on("apart"))
    assert '.compute_at("total", "y")' in repr(found.on("rows")) and ".store_at" not in repr(found.on("rows"))
    img = np.random.default_rng(0).random((41, 83), np.float32)
    np.testing.assert_allclose(p.with_schedule(found)(img=img), p.reference(img=img), rtol=1e-5)
    seconds = [p.with_schedule(s, machine=ORDINARY).predict(img=(2000, 3000)).seconds for s in (start, found)]
    assert seconds[1] < 0.5 * seconds[0]


def test_other_sums_are_left_alone() -> None:
    for p, sizes in ((chain(3), {"img": (200, 300)}), (matrix_product(), {"a": (200, 300), "b": (300, 200)})):
        problem = problem_of(p, ORDINARY, **sizes)
        start = STRATEGIES["naive"]().find(problem).schedule
        assert not any(list(passes(problem, start, s.name)) for s in problem.graph.stages)
