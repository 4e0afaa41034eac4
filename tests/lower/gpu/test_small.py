"""Arrays smaller than blocks: variants of their own, whose bounds are minima and maxima of several."""

from __future__ import annotations

import numpy as np

import pantile as pt

from .simulated import assert_agrees, x, y


def test_blocks_and_edges_of_data_that_nobody_may_need() -> None:
    """What is copied for a block is where its rows are; at the edges, where it may be nothing at all, it is where 64
    bits say."""
    img = pt.Input("img", "int32", ndim=2)
    f = pt.Func("f")
    f[y, x] = pt.select(y >= 2, img[y, x], 7)
    p = pt.Pipeline(f, shape=img.shape, target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("f")
            .split("y", "yo", "yi", 4)
            .split("x", "xo", "xi", 8)
            .reorder("xo", "yo", "yi", "xi")
            .block("xo", "yo")
            .thread("yi", "xi"),
            pt.on("copy").compute_at("f", "yo").thread("u", "v").store_in("shared"),
            pt.on("img").copy_in("f", "copy", "u", "v"),
        )
    )
    for shape in ((2, 5), (3, 9), (5, 3)):
        assert_agrees(p, img=np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape))


def test_registers_that_one_thread_writes_and_others_read() -> None:
    """The blocks of rows that are too short have as many threads as there are points, a number that is no constant."""
    img, f, out, k = pt.Input("img", "int32", ndim=2), pt.Func("f"), pt.Func("out"), pt.RDom((0, 3))
    f[y, x] = pt.edge(img)[pt.cast("int32", y * 0.75) + 2, 1]
    out[y, x] = pt.sum(f[y, k[0]] * f[k[0], x], over=k)
    rows = pt.on("f").compute_root().split("x", "xo", "xi", 32).reorder("y", "xo", "xi").block("y", "xo").thread("xi")
    own = pt.on("img_edge").compute_at("f", "xo").split("d0", "do", "di", 64).reorder("d1", "do", "di").thread("di")
    schedule = pt.Schedule(rows, own.store_in("register"), pt.on("out").block("y").thread("x"))
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(schedule)
    assert_agrees(p, img=np.arange(10, dtype=np.int32).reshape(2, 5))
