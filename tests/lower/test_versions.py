"""Loops that are built several times: for whole blocks and for what they leave over, for special cases and in general.

What is known of one version does not hold in another, and a stage stored inside a loop does not slide along it, even if
the loop has one iteration or is not there in that version. Every access is checked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import pytest

import pantile as pt

Y, X = pt.vars("y x")


def accumulated() -> pt.Pipeline:
    img = pt.Input("img", "float32", ndim=2)
    b, q = pt.Func("b"), pt.Func("q")
    b[Y, X] = img[Y, X] * 2.0
    q[Y, X] = 0.0
    q[Y, X] += b[Y, X]
    return pt.Pipeline(q, shape=img.shape)


def smoothed() -> pt.Pipeline:
    img = pt.Input("img", "float32", ndim=2)
    b, q = pt.Func("b"), pt.Func("q")
    b[Y, X] = img[Y, X] * 2.0
    q[Y, X] = b[Y, X] + b[Y + 1, X] + b[Y + 2, X + 1]
    return pt.Pipeline(q, shape=(img.shape[0] - 2, img.shape[1] - 1))


def assert_agrees(p: pt.Pipeline, schedule: pt.Schedule, sizes: Sequence[tuple[int, int]]) -> None:
    scheduled = p.with_schedule(schedule).with_options(debug=True)
    for size in sizes:
        img = np.arange(size[0] * size[1], dtype=np.float32).reshape(size)
        np.testing.assert_array_equal(scheduled(img=img), p.reference(img=img), err_msg=str(size))


SIZES = [(37, 11), (16, 3), (15, 5), (9, 4), (8, 2), (7, 3), (3, 7), (4, 2), (3, 2)]


@pytest.mark.parametrize("kind", ["unroll", "vectorize"])
@pytest.mark.parametrize("tail", ["guard", "shift", "peel"])
@pytest.mark.parametrize("site", ["y", "y_t", "x"])
def test_producers_in_what_blocks_leave_over(kind: str, tail: str, site: str) -> None:
    host = pt.on("q").split("y", "y1", "y2", 16).update(0)
    host = host.unroll("y", 8) if kind == "unroll" else host.reorder("x", "y").vectorize("y", 8)
    inner = {"unroll": "y_u", "vectorize": "y_v"}[kind] if site == "y_t" else site
    if kind == "vectorize" and site == "y_t":
        pytest.skip("nothing is computed at the lanes of a vector")
    assert_agrees(
        accumulated(), pt.Schedule(host, pt.on("b").compute_at("q", inner).split("y", "yo", "yi", 4, tail)), SIZES
    )


@pytest.mark.parametrize("site", ["yo", "yi", "x"])
def test_whole_blocks_apart_from_what_they_leave_over(site: str) -> None:
    """Loops of neither vectors nor copies, of which whole blocks have constant extents."""
    host = pt.on("q").split("y", "a", "b", 4, tail="peel").update(0).split("y", "yo", "yi", 8, tail="peel")
    p, schedule = accumulated(), pt.Schedule(host, pt.on("b").compute_at("q", site))
    assert_agrees(p, schedule, SIZES)
    assert re.search(r"for q\.u1\.yi in (\S+)\.\.\1 \+ 8:", p.with_schedule(schedule).loops())


def test_what_blocks_leave_over_needs_no_more() -> None:
    """The producer of the rest is computed over the rest, not over all rows again."""
    p = accumulated().with_schedule(pt.Schedule(pt.on("q").update(0).unroll("y", 8), pt.on("b").compute_at("q", "y")))
    assert "b: float32[((img.shape.1 + 15)//16*16 + 16)*(img.shape.0 - img.shape.0//8*8)]" in str(p.loops())


@pytest.mark.parametrize("condition", ["img.shape[0] >= 8", "img.shape[0] == 37", "img.shape[1] == 11"])
def test_special_cases_with_blocks(condition: str) -> None:
    host = pt.on("q").split("y", "yo", "yi", 4, tail="guard").unroll("x", 3, tail="guard").specialize(condition)
    for b in (pt.on("b").compute_at("q", "yi"), pt.on("b").store_at("q", "yo").compute_at("q", "yi")):
        assert_agrees(smoothed(), pt.Schedule(host, b.split("y", "b1", "b2", 2).split("x", "c1", "c2", 4)), SIZES)


@pytest.mark.parametrize("k", [-(2**56), -(2**33), -3, 0, 1, 5, 2**60])
def test_special_cases_that_a_call_is_not_need_no_memory(k: int) -> None:
    """What a version reads where its condition holds is not what it would read elsewhere."""
    y, x = pt.vars("y x")
    img, shift = pt.Input("img", "int32", 2), pt.Param("shift", "int64")
    f, g = pt.Func("f"), pt.Func("g")
    f[y, x] = pt.edge(img)[y, x] * 3
    g[y, x] = f[y + pt.cast("int32", pt.clamp(shift, 0, 15)), x] + shift
    special = pt.on("g").compute_root().specialize("shift >= 1")
    p = pt.Pipeline(g, shape=img.shape, schedule=pt.Schedule(special, pt.on("f").compute_at("g", "y").store_root()))
    pixels = np.arange(35, dtype=np.int32).reshape(5, 7)
    assert (p(img=pixels, shift=k) == p.reference(img=pixels, shift=k)).all()


def test_special_cases_that_never_are() -> None:
    """Code for images of at least one block contradicts the condition, so that no bound of that version means much."""
    img = pt.Input("img", "float32", ndim=2)
    b, c, q = pt.Func("b"), pt.Func("c"), pt.Func("q")
    b[Y, X] = img[Y, X] + img[Y, X + 1]
    c[Y, X] = b[Y, X] + b[Y, X + 2]
    q[Y, X] = c[Y, X] * 2.0
    schedule = pt.Schedule(
        pt.on("q").split("x", "xo", "xi", 8).split("xo", "x1", "x2", 2).specialize("img.shape[1] < 8"),
        pt.on("c").store_at("q", "y").compute_at("q", "x1"),
        pt.on("b").compute_root(),
    )
    assert_agrees(pt.Pipeline(q, shape=(img.shape[0], img.shape[1] - 3)), schedule, [(8, 34), (4, 11), (3, 5)])


@pytest.mark.parametrize("one", ["y3", "y2"])
def test_stored_in_a_loop_of_one_iteration(one: str) -> None:
    host = pt.on("q").split("y", "y1", "y2", 5, tail="guard").split("y2", "y2", "y3", 1)
    assert_agrees(smoothed(), pt.Schedule(host, pt.on("b").store_at("q", one).compute_at("q", "x")), SIZES)


def test_stored_where_the_rest_has_no_loop() -> None:
    """In the rest of a block of 8, its parts of 4 have no loop; what is stored there is new in each iteration."""
    host = pt.on("q").split("y", "yo", "yi", 8, tail="guard").split("yi", "ym", "yl", 4).unroll("yl").unroll("ym")
    for site in ("yo", "ym", "yl"):
        assert_agrees(smoothed(), pt.Schedule(host, pt.on("b").store_at("q", site).compute_at("q", "x")), SIZES)


@pytest.mark.parametrize("size", [(1, 13), (2, 5), (7, 9)])
def test_loops_without_iterations_do_not_start_early(size: tuple[int, int]) -> None:
    """A block of 9 rows, of which there is one: the loop over whole blocks has none, and nothing slides along it."""
    img = pt.Input("img", "float32", ndim=2)
    stages = [pt.edge(img), *(pt.Func(f"v{k}") for k in range(3))]
    for before, f in itertools.pairwise(stages):
        f[Y, X] = before[Y, X - 1] + before[Y, X + 1]
    p = pt.Pipeline(stages[-1], shape=(img.shape[0] + 3, 13))
    schedule = pt.Schedule(
        pt.on("v2"),
        pt.on("img_edge").compute_root(),
        pt.on("v0").compute_at("v1", "y1").store_root(),
        pt.on("v1").compute_at("v2", "x").store_root().split("y", "y1", "y2", 3).unroll("y1", 3),
    )
    assert_agrees(p, schedule, [size])


def test_indices_that_turn() -> None:
    """x % 4 is any of 0 .. 3 over a row, but in the few lanes where it is read it is 2: the others read nothing."""
    img = pt.Input("img", "float32", ndim=2)
    s, q, u, r = pt.Func("s"), pt.Func("q"), pt.Func("u"), pt.RDom((-2, 3))
    s[Y, X] = pt.edge(img)[Y, X] * 2.0
    q[Y, X] = 1.0
    q[Y, X] += pt.select(X >= -1, 3.0, s[Y, X % 4 + r[0]])
    u[Y, X] = q[Y, 3 * X - 2]
    p = pt.Pipeline(u, shape=(img.shape[0], 9))
    q_lanes = pt.on("q").compute_root().update(0).reorder("y", "r.0", "x").vectorize("x", 4)
    schedule = pt.Schedule(pt.on("u"), pt.on("s").compute_root(), q_lanes)
    assert_agrees(p, schedule, [(1, 1), (2, 5), (5, 17)])


@pytest.mark.parametrize("fused", [False, True])
def test_constants_of_what_blocks_leave_over(fused: bool) -> None:
    """In the rest of a row only column 1 of d is read, a constant; in whole blocks it is 0 and 1."""
    img = pt.Input("img", "float32", ndim=2)
    d, q = pt.Func("d", domain=((1, 3), (0, 2))), pt.Func("q")
    d[Y, X] = pt.constant(img, 1.0)[Y, X] * 2.0
    q[Y, X] = pt.edge(d)[Y, X]
    p = pt.Pipeline(q, shape=(3, img.shape[1]))
    d_loops = pt.on("d").compute_at("q", "x")
    schedule = pt.Schedule(
        pt.on("q").vectorize("x", 4, tail="guard"),
        d_loops.fuse("y", "x", "p") if fused else d_loops,
        pt.on("img_constant").compute_root(),
    )
    assert_agrees(p, schedule, SIZES)


@pytest.mark.parametrize("condition", ["img.shape[1] == 5", "img.shape[1] < 6"])
def test_what_a_version_reads_is_read_where_its_condition_holds(condition: str) -> None:
    """Five columns are constants in it, which lie before those of another picture, and behind them."""
    img, g, f, out = pt.Input("img", "float32", ndim=2), pt.Func("g"), pt.Func("f"), pt.Func("out")
    g[Y, X] = img[Y, X] * 2
    f[Y, X] = g[Y, img.shape[1] - 1 - X] + g[Y, X]
    out[Y, X] = f[Y, X] + 1
    p = pt.Pipeline(out, shape=img.shape)
    stages = pt.on("f").compute_at("out", "y").specialize(condition), pt.on("g").compute_at("out", "y")
    assert_agrees(p, pt.Schedule(pt.on("out").compute_root(), *stages), [(2, 1), (2, 4), (2, 5), (2, 9)])


def test_memory_where_a_version_would_read_nothing() -> None:
    """The sum has no terms in it, so that it reads nothing of `g`, which has a size all the same."""
    img, g, total = pt.Input("img", "int32", ndim=1), pt.Func("g"), pt.Func("total")
    g[X] = img[X] * 2
    total[X] = pt.sum(g[X], over=pt.RDom((1, img.shape[0] - 2)), dtype="int32")
    scheduled = pt.Schedule(
        pt.on("total").specialize("img.shape[0] < 4"), pt.on("g").compute_at("total", "x").store_root()
    )
    p = pt.Pipeline(total, shape=1).with_schedule(scheduled)
    for n in (1, 2, 3, 17):
        row = np.arange(n, dtype=np.int32)
        np.testing.assert_array_equal(p(img=row), p.reference(img=row))
