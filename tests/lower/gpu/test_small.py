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
