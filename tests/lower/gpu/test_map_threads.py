"""Points of thread loops are taken in turn by the threads of a block."""

from __future__ import annotations

import pytest

import pantile as pt
from pantile.expr.nodes import Const
from pantile.target.kinds import Kind

from .simulated import assert_agrees, blur, branches, kernels, loops, of_kind, picture, x, y


def extents(p: pt.Pipeline) -> dict[str, int]:
    """Points of each thread loop of the one kernel."""
    (kernel,) = kernels(p)
    found = {}
    for s in of_kind(kernel.body, Kind.THREAD):
        assert isinstance(s.extent, Const) and not of_kind(s.body, Kind.THREAD)
        found[s.var] = int(s.extent.value)
    return found


def tiled(rows: int, columns: int, *more: pt.schedule.StageSchedule, tail: str = "auto") -> pt.Pipeline:
    chain = pt.on("out").split("y", "yo", "yi", rows, tail=tail).split("x", "xo", "xi", columns, tail=tail)
    chain = chain.reorder("yo", "xo", "yi", "xi").block("yo", "xo").thread("yi", "xi")
    return blur(chain, *(more or (pt.on("rows").compute_at("out", "xo").thread("y", "x"),)))


def test_stages_of_other_extents_share_the_threads_of_the_block() -> None:
    p = tiled(8, 32)
    assert extents(p) == {"rows.y.thread": 10 * 32, "out.yi.thread": 8 * 32}
    assert kernels(p)[0].threads == 256
    (count,) = assert_agrees(p, img=picture(30, 70))
    assert count.threads == 256


@pytest.mark.parametrize(("rows", "columns", "threads"), [(1, 1, 32), (3, 5, 32), (5, 7, 64), (32, 32, 1024)])
def test_threads_are_whole_warps(rows: int, columns: int, threads: int) -> None:
    p = tiled(rows, columns)
    assert kernels(p)[0].threads == threads
    for shape in ((3, 3), (20, 45)):
        assert_agrees(p, img=picture(*shape))


def test_more_points_than_threads() -> None:
    """A loop inside of the block has more points than it has threads: each takes several."""
    p = tiled(2, 16, pt.on("rows").compute_at("out", "xo").thread("y", "x"))
    assert kernels(p)[0].threads == 32 < extents(p)["rows.y.thread"]
    assert_agrees(p, img=picture(11, 50))


@pytest.mark.parametrize("count", [32, 128, 512, 1024])
def test_as_many_threads_as_the_schedule_asks_for(count: int) -> None:
    """More than there are points, or fewer, of which each thread takes several; all of them reach the barrier."""
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 12, 32).block("yo", "xo").thread("yi", "xi")
    p = blur(tiles.threads(count), pt.on("rows").compute_at("out", "xo").thread("y", "x"))
    for shape in ((3, 3), (30, 70)):
        (counts,) = assert_agrees(p, img=picture(*shape))
        assert counts.threads == count and counts.barriers == counts.blocks


def test_more_warps_than_a_block_has_rows() -> None:
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "w", "lane", 3, 30).block("yo", "xo").warp("w").lane("lane")
    for count in (32, 256):
        p = blur(tiles.threads(count), pt.on("rows").compute_at("out", "w").lane("x"))
        (counts,) = assert_agrees(p, img=picture(20, 70))
        assert counts.threads == count


@pytest.mark.parametrize("tail", ["guard", "shift"])
def test_last_blocks(tail: str) -> None:
    """They are cut off, or moved inwards."""
    p = tiled(8, 16, tail=tail)
    for shape in ((3, 3), (10, 18), (11, 19), (17, 40), (25, 35)):
        assert_agrees(p, img=picture(*shape))


def test_what_is_cut_off_is_asked_by_each_thread() -> None:
    (kernel,) = kernels(tiled(8, 16, tail="guard"))
    assert any(branches(s) for s in of_kind(kernel.body, Kind.THREAD))


def test_extents_without_a_bound() -> None:
    """Each thread takes every so many-th iteration of the innermost loop."""
    p = blur(pt.on("out").block("y").thread("x"), pt.on("rows").compute_root().thread("y", "x"))
    (outer, inner) = kernels(p)
    assert (outer.threads, inner.threads) == (1024, 256)
    for shape in ((3, 3), (4, 255), (5, 258), (3, 259), (6, 600)):
        assert_agrees(p, img=picture(*shape))


def test_what_is_in_no_thread_loop_is_done_by_one() -> None:
    p = blur(pt.on("out").split("y", "yo", "yi", 4).block("yo"), pt.on("rows").compute_at("out", "yo"), height=1)
    with pytest.raises(pt.errors.UserError, match="has no constant size there"):
        assert_agrees(p, img=picture(5, 7))
    p = blur(
        pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 4, 4).block("yo", "xo"),
        pt.on("rows").compute_at("out", "xo"),
    )
    assert set(extents(p).values()) == {1}
    assert_agrees(p, img=picture(9, 14))


def test_vectors_and_copies_in_threads() -> None:
    chain = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 64).block("yo", "xo")
    p = blur(
        chain.split("xi", "xt", "xv", 4).thread("yi", "xt").vectorize("xv"),
        pt.on("rows").compute_at("out", "xo").split("y", "yt", "yu", 2).unroll("yu").thread("yt"),
    )
    for shape in ((3, 3), (12, 90)):
        assert_agrees(p, img=picture(*shape))


def test_several_values_of_a_stage() -> None:
    img, f, g = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("g")
    f[y, x] = (img[y, x] * 2.0, img[y, x] + 1.0)
    g[y, x] = f[y, x][0] + f[y, x + 1][1]
    p = pt.Pipeline(g, shape=(img.shape[0], img.shape[1] - 1), target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("g").tile("y", "x", "yo", "xo", "yi", "xi", 4, 8).block("yo", "xo").thread("yi", "xi"),
            pt.on("f").compute_at("g", "xo").thread("y", "x"),
        )
    )
    assert_agrees(p, img=picture(10, 21))
    assert loops(p, "map_threads") is not None


@pytest.mark.parametrize("size", [(1, 1), (5, 27), (4, 20), (3, 9)], ids=str)
def test_what_blocks_leave_over_is_summed_once(size: tuple[int, int]) -> None:
    """It is in fewer thread loops than whole blocks are: points that differ in the others alone are one."""
    a, r = pt.Input("a", "float32", ndim=3), pt.RDom((0, 3), name="r", names="k")
    sums, out = pt.Func("sums"), pt.Func("out")
    sums[y, x] = 0.0
    sums[y, x] += a[y, x, r.k]
    out[y, x] = sums[y, x] * 2
    schedule = pt.Schedule(
        pt.on("out").tile("y", "x", "yb", "xb", "yi", "xi", 4, 20).block("yb", "xb").thread("yi", "xi"),
        pt.on("sums")
        .compute_at("out", "xb")
        .store_in("shared")
        .thread("y", "x")
        .update()
        .split("x", "tx", "column", 8, tail="peel")
        .reorder("y", "tx", "r.k", "column")
        .thread("y", "tx"),
    )
    p = pt.Pipeline(out, shape=a.shape[:2], schedule=schedule, target="cuda-sim")
    assert_agrees(p, a=picture(*size, 3))
    assert "if sums.u1.y.thread%2 < 1:" in p.loops()
