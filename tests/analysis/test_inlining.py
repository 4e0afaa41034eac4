"""Inlining: what is written out grows with the different reads, not with the paths that lead to them."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.analysis.inlining import substituted
from pantile.expr.visit import walk


def chebyshev(count: int) -> pt.Pipeline:
    """t[k] = 2 img t[k - 1] - t[k - 2]: every stage is used twice."""
    (x,) = pt.vars("x")
    img = pt.Input("img", "float32", ndim=1)
    before, last = pt.Func("t0"), pt.Func("t1")
    before[x] = img[x] * 0.5
    last[x] = img[x] * before[x]
    for k in range(2, count):
        t = pt.Func(f"t{k}")
        t[x] = 2 * img[x] * last[x] - before[x]
        before, last = last, t
    return pt.Pipeline(last, shape=img.shape)


def nodes(p: pt.Pipeline) -> int:
    """Different nodes in what is left of a pipeline when all but its output is inlined."""
    graph = substituted(p.graph, [s.name for s in p.graph.stages if s.name not in p.graph.output])
    (stage,) = graph.stages
    return sum(1 for _ in walk(*stage.pure.values))


def test_a_recurrence_of_stages_read_twice_grows_steadily() -> None:
    few, more, most = (nodes(chebyshev(n)) for n in (20, 40, 60))
    assert most - more == more - few > 0


def test_a_chain_of_stencils_grows_with_the_places_that_are_read() -> None:
    """3^k reads, at 2k + 1 places."""

    def chain(count: int) -> pt.Pipeline:
        (x,) = pt.vars("x")
        f = pt.edge(pt.Input("img", "float32", ndim=1))
        for k in range(count):
            g = pt.Func(f"g{k}")
            g[x] = f[x - 1] + f[x] + f[x + 1]
            f = g
        return pt.Pipeline(f, shape=(100,))

    assert nodes(chain(16)) < 5 * nodes(chain(8))  # 4 times, and some


def test_thousands_of_stages_are_inlined() -> None:
    (x,) = pt.vars("x")
    img = pt.Input("img", "float32", ndim=1)
    f = img
    for k in range(3000):
        g = pt.Func(f"g{k}")
        g[x] = f[x] + 1
        f = g
    assert nodes(pt.Pipeline(f, shape=img.shape)) <= 2 * 3000 + 3


@pytest.mark.parametrize("inlined", [("place",), ("table",), ("place", "table"), ("place", "table", "shifted")])
def test_what_inlined_stages_are_indexed_by_may_be_inlined_too(inlined: tuple[str, ...]) -> None:
    (x,) = pt.vars("x")
    img = pt.Input("img", "uint8", ndim=1)
    place, table, shifted, out = (pt.Func(n) for n in ("place", "table", "shifted", "out"))
    place[x] = img[x] // 16
    table[x] = x * x + 1
    shifted[x] = table[place[x]] + place[x]
    out[x] = shifted[x] + table[place[x] + 1] + shifted[x + 1]
    p = pt.Pipeline(out, shape=(img.shape[0] - 1,))
    picture = np.random.default_rng(0).integers(0, 256, 50, np.uint8)
    schedule = pt.Schedule(*(pt.on(name).compute_inline() for name in inlined))
    np.testing.assert_array_equal(p.with_schedule(schedule)(img=picture), p.reference(img=picture))
