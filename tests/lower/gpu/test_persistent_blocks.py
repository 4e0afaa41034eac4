"""As many blocks as a GPU holds, each of which computes several tiles."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.simulator import Counts

from ...fuzz import device_code
from .simulated import assert_agrees, blur, kernels, picture, x

TILES = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi").persistent()
SHARED = pt.on("rows").compute_at("out", "xo").thread("y", "x")


@pytest.fixture(params=[1, 3, 8, 1000])
def resident(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of blocks that the simulated GPU holds."""
    monkeypatch.setattr(device_code, "RESIDENT", request.param)
    return int(request.param)


def test_blocks_loop_over_tiles(resident: int) -> None:
    p = blur(TILES, SHARED)
    for shape in ((3, 3), (20, 70), (60, 130)):
        (counts,) = assert_agrees(p, img=picture(*shape))
        tiles = -(-(shape[0] - 2) // 8) * -(-(shape[1] - 2) // 32)
        assert counts.blocks == min(resident, tiles)


def test_threads_wait_before_the_next_tile() -> None:
    """What they compute for it is where others still read the tile before."""
    once = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")
    waits = [blur(tiles, SHARED).asm("sm_90").count("bar.sync") for tiles in (once, TILES)]
    assert waits == [1, 2]


def test_copies_ahead_and_sums(resident: int) -> None:
    i, j = pt.vars("i j")
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    k, dot = pt.RDom((0, a.shape[1]), name="r", names="k"), pt.Func("dot")
    dot[i, j] = pt.sum(a[i, k.k] * b[k.k, j], over=k)
    p = pt.Pipeline(dot, shape=(a.shape[0], b.shape[1]), target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("dot").copy_out("sums").tile("i", "j", "ib", "jb", "ti", "tj", 8, 16).block("ib", "jb")
            .thread("ti", "tj").persistent(),
            pt.on("sums").compute_at("dot", "jb").store_in("register").thread("i", "j")
            .update().split("r.k", "slice", "k", 8, tail="peel").reorder("slice", "i", "j", "k").thread("i", "j"),
            pt.on("b").copy_in("sums", "right", "k", "j"),
            pt.on("right").compute_at("sums", "slice").store_in("shared").thread("k", "j").compute_ahead(1),
        )
    )  # fmt: skip
    assert_agrees(p, a=picture(20, 21), b=picture(21, 40))


def test_atomic_updates(resident: int) -> None:
    img, counts, r = pt.Input("img", "uint8", ndim=1), pt.Func("counts"), pt.RDom((0, 700), names="x")
    counts[x] = 0
    counts[img[r.x]] += 1
    strips = pt.on("counts").thread("x").update().atomic().split("r.x", "strip", "rx", 64).block("strip").thread("rx")
    p = pt.Pipeline(counts, shape=(256,), target="cuda-sim").with_schedule(pt.Schedule(strips.persistent()))
    found: list[Counts] = assert_agrees(p, img=np.arange(700).astype(np.uint8))
    assert [c.blocks for c in found] == [1, min(resident, 11)]


def test_alike_kernels_are_one(resident: int) -> None:
    img, f, g, h = pt.Input("img", "float32", ndim=1), pt.Func("f"), pt.Func("g"), pt.Func("h")
    f[x] = img[x] * 2.0
    g[x] = f[x] * 2.0
    h[x] = g[x] * 2.0
    alike = [pt.on(s.name).split("x", "xo", "xi", 32).block("xo").thread("xi").persistent() for s in (f, g, h)]
    p = pt.Pipeline(h, shape=img.shape, target="cuda-sim").with_schedule(pt.Schedule(*alike))
    assert len(kernels(p)) == 1
    assert [c.blocks for c in assert_agrees(p, img=picture(200))] == [min(resident, 7)] * 3


def test_the_report_has_the_blocks_of_the_machine() -> None:
    """An H200 of 132 multiprocessors, of which each holds eight blocks of 256 threads."""
    report = blur(TILES, SHARED).predict(img=(4002, 6402))
    assert [k.blocks for k in report.kernels] == [132 * 8]  # type: ignore[union-attr]
