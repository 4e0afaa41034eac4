"""Values of a Func that nobody uses: what only they read is not needed once the Func is inlined."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES
from pantile.machine import named

from .problems import MODELS, TINY, problem_of

N1 = named("neoverse-n1")


def scan_for_nothing() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    scan, pair, out = pt.Func("scan"), pt.Func("pair"), pt.Func("out")
    r = pt.RDom((1, img.shape[0] - 1))
    scan[y, x] = img[y, x]
    scan[r[0], x] += scan[r[0] - 1, x]
    pair[y, x] = (scan[y, x] * 2, img[y, x] + 1)
    out[y, x] = pair[y, x][1] * 3
    return pt.Pipeline(out, shape=img.shape)


def stencils_for_nothing() -> pt.Pipeline:
    """A chain of stencils that only the unused value reads, beside one that is used."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    src = pt.edge(img)
    first, second, used, pair, out = map(pt.Func, ("first", "second", "used", "pair", "out"))
    first[y, x] = src[y, x - 1] * src[y, x + 1] + pt.sqrt(abs(src[y, x]))
    second[y, x] = first[y - 1, x] + first[y + 1, x] + first[y, x]
    used[y, x] = src[y - 1, x] * src[y + 1, x] + pt.sqrt(abs(src[y, x]))
    pair[y, x] = (second[y, x], used[y, x])
    out[y, x] = pair[y, x][1] + pair[y, x + 1][1]
    return pt.Pipeline(out, shape=img.shape)


def histogram_for_nothing() -> pt.Pipeline:
    """The unused value comes first in the Func, and second in the one that reads it."""
    y, x, i = pt.vars("y x i")
    img = pt.Input("img", "float32", ndim=2)
    hist, pair, swapped, out = map(pt.Func, ("hist", "pair", "swapped", "out"))
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    hist[i] = 0
    hist[pt.clamp(pt.cast("int32", img[r[0], r[1]] * 8), 0, 7)] += 1
    pair[y, x] = (hist[x % 8], img[y, x] * 2)
    swapped[y, x] = (pair[y, x][1], pair[y, x][0])
    out[y, x] = swapped[y, x][0] + 1
    return pt.Pipeline(out, shape=img.shape)


def product_for_nothing() -> pt.Pipeline:
    """What the unused value reads is dearer than all that reads the used one, and is inlined last."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    src = pt.edge(img)
    product, pair, used, out = map(pt.Func, ("product", "pair", "used", "out"))
    product[y, x] = src[y, x - 2] * src[y, x - 1]
    pair[y, x] = (product[y, x // 2 + 3], pt.cast("float32", pt.clamp(x, 0, 1)))
    used[y, x] = pair[y, x - 1][1]
    out[y, x] = used[y, x + 1] + used[y, x - 1]
    return pt.Pipeline(out, shape=img.shape)


@pytest.mark.parametrize("strategy", MODELS)
@pytest.mark.parametrize("build", [scan_for_nothing, stencils_for_nothing, histogram_for_nothing, product_for_nothing])
def test_values_that_nobody_uses(build: Callable[[], pt.Pipeline], strategy: str) -> None:
    pipeline = build()
    img = np.random.default_rng(0).random((70, 90), np.float32)
    chosen = pipeline.with_schedule(strategy, estimates={"img": (1500, 2000)}, machine=N1)
    assert str(chosen.explain())
    np.testing.assert_allclose(chosen(img=img), pipeline.reference(img=img), rtol=1e-5)


@pytest.mark.parametrize("strategy", MODELS)
def test_a_sum_over_nothing_whose_other_side_is_unknown(strategy: str) -> None:
    """It has no terms, whatever the other side is, and yet cannot be written out."""
    y, x = pt.vars("y x")
    img, n = pt.Input("img", "int32", ndim=2), pt.Param("n", "int32")
    total, out = pt.Func("total"), pt.Func("out")
    r = pt.RDom((0, pt.clamp(n, 0, 3)), (0, 0))
    total[y, x] = pt.sum(img[y, x] + r[0] + r[1], over=r)
    out[y, x] = total[y, x] + 1
    p = pt.Pipeline(out, shape=img.shape, schedule=strategy)
    np.testing.assert_array_equal(p(img=np.zeros((4, 9), np.int32), n=2), np.ones((4, 9), np.int32))


@pytest.mark.parametrize("strategy", MODELS)
def test_sums_that_only_other_tiles_need(strategy: str) -> None:
    """What the tile in the middle of a picture needs of them is nothing."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "int16", shape=(None, None, 2))
    src, squares, out = pt.edge(img), pt.Func("squares"), pt.Func("out")
    r = pt.RDom((0, 12), (0, 4))
    squares[y, x, c] = pt.sum(src[y + r[0], x // 2 + r[1], c] * src[y + r[0], x // 2 + r[1], c], over=r)
    out[y, x, c] = pt.select(x <= y + 7, src[y, x, c], squares[y // 2, x + 2, (c + 1) // 2])
    p = pt.Pipeline(out, shape=img.shape)
    given = np.random.default_rng(0).integers(-99, 99, (37, 2, 2), np.int16)
    found = STRATEGIES[strategy]().find(problem_of(p, TINY, img=given).with_graph(p.rewritten))
    np.testing.assert_array_equal(p.with_schedule(found.schedule)(img=given), p.reference(img=given))


@pytest.mark.parametrize("strategy", MODELS)
def test_an_update_of_one_place(strategy: str) -> None:
    x = pt.Var("x")
    img, marked, out = pt.Input("img", "int32", ndim=1), pt.Func("marked"), pt.Func("out")
    marked[x] = img[x]
    marked[3] += 5
    out[x] = marked[x] + marked[3]
    p = pt.Pipeline(out, shape=img.shape, schedule=strategy)
    given = np.arange(40, dtype=np.int32)
    np.testing.assert_array_equal(p(img=given), p.reference(img=given))
