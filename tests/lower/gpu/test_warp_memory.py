"""Shared memory of a warp: what its lanes compute of a stage lies there, and only they wait for each other."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.ir.instructions import Effect, effect_of
from pantile.ir.nodes import Alloc, Stmt
from pantile.ir.visit import walk
from pantile.schedule.directives import StageSchedule
from pantile.target.kinds import Memory

from ...long import LONG
from .simulated import assert_agrees, blur, kernels, picture, x, y

SIZES = ((40, 90), (19, 50), (4, 5), (33, 131)) if LONG else ((19, 50), (4, 5))
IMG = pt.Input("img", "float32", ndim=2)


def tiles(rows: int = 4, height: int = 8, width: int = 32) -> StageSchedule:
    """Warps of so many rows."""
    s = pt.on("out").tile("y", "x", "yo", "xo", "yi", "lane", height, width).split("yi", "w", "row", rows)
    return s.reorder("yo", "xo", "w", "row", "lane").block("yo", "xo").warp("w").lane("lane")


def in_warp(stage: str, at: str = "w") -> StageSchedule:
    return pt.on(stage).compute_at("out", at).store_in("shared").lane("y", "x")


def warp_barriers(s: Stmt) -> int:
    return sum(effect_of(i) is Effect.WARP_BARRIER for i in walk(s))


def assert_in_warps(p: pt.Pipeline, waits: int, blocks_wait: int = 0) -> None:
    """Right at all sizes; lanes wait in so many places (edges of blocks have code of their own), blocks so often."""
    for size in SIZES:
        for count in assert_agrees(p, img=picture(*size)):
            assert count.barriers == blocks_wait * count.blocks
    assert warp_barriers(kernels(p)[-1].body) == waits


def chain(*schedule: StageSchedule) -> pt.Pipeline:
    """Three stages."""
    f, g, out = pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[y, x] = IMG[y, x] * 2 + IMG[y, x + 1]
    g[y, x] = f[y, x] + f[y + 1, x + 1] * 3
    out[y, x] = g[y, x] + g[y + 1, x] + g[y + 2, x + 2]
    p = pt.Pipeline(out, shape=(IMG.shape[0] - 3, IMG.shape[1] - 4), target="cuda-sim")
    return p.with_schedule(pt.Schedule(*schedule))


def test_the_blur_of_one_overlapped_tile_per_warp() -> None:
    """Tiles of 8 by 4 points, blocks of 16 by 8 threads: lanes are 16 by 2 of them, and a warp has 128 by 8 points."""
    out = pt.on("out").tile("y", "x", "yo", "xo", "wy", "xi", 32, 128).split("wy", "w", "yi", 8)
    out = out.split("yi", "yt", "yl", 2).split("xi", "xt", "xl", 16).reorder("yo", "xo", "w", "yt", "xt", "yl", "xl")
    p = blur(out.block("yo", "xo").warp("w").lane("yl", "xl"), in_warp("rows"))
    for size in ((200, 300), (97, 259), (33, 131), (10, 140), (3, 3)):
        (count,) = assert_agrees(p, img=picture(*size))
        assert count.barriers == 0
        if size == (200, 300):
            assert (count.threads, count.shared_bytes) == (128, 4 * 10 * 128 * 4)
    asm = p.asm("sm_90")
    assert "bar.warp.sync" in asm
    assert "bar.sync" not in asm


def test_each_warp_has_a_piece() -> None:
    p = chain(tiles(2), in_warp("g"), in_warp("f"))
    (kernel,) = kernels(p)
    parts = {(i.buffer, i.memory, str(i.offset), i.apart) for i in walk(kernel.body) if isinstance(i, Alloc)}
    assert parts == {("f", Memory.SHARED, "0", 1408), ("g", Memory.SHARED, "768", 1408)}, "5 x 35 and 4 x 34 floats"
    assert kernel.shared == 4 * 1408


def test_lanes_wait_before_they_read_and_before_they_store_again() -> None:
    inlined = pt.on("f").compute_inline()
    assert_in_warps(chain(tiles(), in_warp("g"), in_warp("f")), 2 * 2)
    assert_in_warps(chain(tiles(), in_warp("g"), inlined), 2)
    assert_in_warps(chain(tiles(), pt.on("g").compute_at("out", "w").store_in("shared").lane("x"), inlined), 2)


@pytest.mark.parametrize("unrolls", [False, True])
def test_windows_that_slide_in_a_warp(unrolls: bool) -> None:
    slides = pt.on("g").store_at("out", "w").compute_at("out", "row").store_in("shared").lane("y", "x")
    p = chain(tiles().unroll("row") if unrolls else tiles(), slides, pt.on("f").compute_inline())
    for size in SIZES:
        assert all(c.barriers == 0 for c in assert_agrees(p, img=picture(*size)))
    (kernel,) = kernels(p)
    (elements,) = {str(i.size) for i in walk(kernel.body) if isinstance(i, Alloc)}
    assert int(elements) == 3 * 34, "three rows of a window"


def test_the_same_bytes_for_one_iteration_after_another() -> None:
    p = chain(tiles().unroll("row"), in_warp("g", "row"), in_warp("f"))
    for size in SIZES:
        assert all(c.barriers == 0 for c in assert_agrees(p, img=picture(*size)))
    at = {str(i.offset) for i in walk(kernels(p)[0].body) if isinstance(i, Alloc) and i.buffer.startswith("g")}
    assert len(at) == 1


def test_more_iterations_than_warps() -> None:
    """Stages of a block whose own warps are more than it has, each with a stage in its memory."""
    g = pt.on("g").compute_at("out", "xo").split("y", "w", "r", 3, tail="guard").split("x", "xo", "l", 16, tail="guard")
    g = g.reorder("w", "xo", "r", "l").warp("w").lane("l").store_in("shared")
    f = pt.on("f").compute_at("g", "w").store_in("shared").lane("y", "x")
    assert_in_warps(chain(tiles(8), g, f), 2 * 2, blocks_wait=1)
    one_warp = pt.on("out").split("x", "xo", "lane", 32).reorder("xo", "y", "lane").block("xo").warp("y").lane("lane")
    p = chain(one_warp, in_warp("g", "y"), pt.on("f").compute_inline())
    for size in SIZES:
        assert_agrees(p, img=picture(*size))


@pytest.mark.parametrize("tail", ["peel", "guard"])
def test_what_is_left_over_of_warps(tail: str) -> None:
    """One warp does it, with memory of its own."""
    out = (
        pt.on("out")
        .split("y", "yo", "row", 3)
        .split("x", "xo", "xm", 100, tail="guard")
        .split("xm", "w", "xi", 40, tail)
    )
    out = out.split("xi", "xt", "lane", 20).unroll("xt").reorder("yo", "xo", "w", "row", "xt", "lane")
    p = chain(out.block("yo", "xo").warp("w").lane("lane"), in_warp("g"), in_warp("f"))
    for size in SIZES:
        assert_agrees(p, img=picture(*size))


def test_beside_registers_of_lanes() -> None:
    p = chain(tiles(2, width=30).unroll("row"), pt.on("g").compute_at("out", "w").lane("x").unroll("y"), in_warp("f"))
    assert_in_warps(p, 2)


@pytest.mark.parametrize("lanes", [("y", "x"), ("x",), ()])
def test_updates(lanes: tuple[str, ...]) -> None:
    """Lanes that have nothing left to do leave alone what others change."""
    f, out, r = pt.Func("f"), pt.Func("out"), pt.RDom((0, 3), names="k")
    f[y, x] = 0.0
    f[y, x] += IMG[y, x + r.k]
    out[y, x] = f[y, x] + f[y + 1, x + 3]
    p = pt.Pipeline(out, shape=(IMG.shape[0] - 1, IMG.shape[1] - 5), target="cuda-sim")
    summed = in_warp("f").update().lane(*lanes) if lanes else in_warp("f")
    p = p.with_schedule(pt.Schedule(tiles(), summed))
    for size in ((19, 50), (7, 40)):
        assert all(c.barriers == 0 for c in assert_agrees(p, img=picture(*size)))


def test_edges() -> None:
    f, out, around = pt.Func("f"), pt.Func("out"), pt.edge(IMG)
    f[y, x] = around[y - 1, x] + around[y + 1, x] * 2
    out[y, x] = f[y, x - 1] + f[y, x + 1] + f[y - 1, x]
    p = pt.Pipeline(out, shape=IMG.shape, target="cuda-sim").with_schedule(pt.Schedule(tiles(), in_warp("f")))
    assert_in_warps(p, 2)


def test_more_than_a_block_has_is_refused() -> None:
    wide = pt.on("out").tile("y", "x", "yo", "xo", "wy", "xi", 256, 256).split("wy", "w", "yi", 16)
    wide = wide.split("xi", "xt", "xl", 32).reorder("yo", "xo", "w", "yi", "xt", "xl").block("yo", "xo")
    p = chain(wide.warp("w").lane("xl"), in_warp("g"), pt.on("f").compute_inline())
    text = (
        "would need 299,008 bytes of memory that its threads share, 18,688 for each of its 16 warps; a GPU has 232,448"
    )
    with pytest.raises(UserError, match=text):
        p.loops()


def test_registers_are_for_one_point_per_lane() -> None:
    """Lanes take points in turn only of what lies in memory."""
    with pytest.raises(UserError, match=re.escape("lanes of a warp cannot share g")):
        chain(tiles(), pt.on("g").compute_at("out", "w").lane("y", "x"), in_warp("f")).loops()


def test_atomic_updates_of_a_warp() -> None:
    i = pt.Var("i")
    photo, counts, out = pt.Input("photo", "uint8", ndim=2), pt.Func("counts"), pt.Func("out")
    r = pt.RDom((0, photo.shape[1]), names="x")
    counts[y, i] = 0
    counts[y, pt.cast("int32", photo[y, r.x]) // 16] += 1
    out[y, i] = counts[y, i] * 2
    p = pt.Pipeline(out, shape=(photo.shape[0], 16), target="cuda-sim").with_schedule(pt.Schedule(
        pt.on("out").split("y", "yo", "w", 4).reorder("yo", "w", "i").block("yo").warp("w").lane("i"),
        pt.on("counts").compute_at("out", "w").store_in("shared").lane("i")
        .update().atomic().split("r.x", "step", "u", 32).lane("u"),
    ))  # fmt: skip
    dots = np.random.default_rng(0).integers(0, 256, (10, 70), dtype=np.uint8)
    (count,) = assert_agrees(p, photo=dots)
    assert count.barriers == 0
