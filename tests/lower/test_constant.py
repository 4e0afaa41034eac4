"""Vectors and unrolled loops without a factor: their extents are found by regions."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

Y, X = pt.vars("y x")
IMG = pt.Input("img", "int32", ndim=2)
TILES = pt.on("g").tile("y", "x", "yo", "xo", "yi", "xi", 8, 16)


def pipeline(*stages: pt.StageSchedule) -> pt.Pipeline:
    f, g = pt.Func("f"), pt.Func("g")
    f[Y, X] = IMG[Y, X] * 2
    g[Y, X] = f[Y, X] + f[Y + 1, X] + f[Y, X + 2]
    return pt.Pipeline(g, (IMG.shape[0] - 1, IMG.shape[1] - 2), schedule=pt.Schedule(*stages))


AT_TILES = pt.on("f").compute_at("g", "xo")
INFERRED = {
    "a vector": (TILES, AT_TILES.vectorize("x")),
    "copies": (TILES, AT_TILES.unroll("y").vectorize("x", 4).reorder("x", "y", "x_v")),
    "copies of vectors": (TILES, AT_TILES.reorder("x", "y").unroll("x").vectorize("y")),
    "blocks": (TILES, AT_TILES.split("x", "block", "in_block", 6).unroll("block")),
    "both dims as one loop": (TILES, AT_TILES.fuse("y", "x", "all").unroll("all")),
    "in a row": (TILES, pt.on("f").compute_at("g", "yi").vectorize("x")),
    "what is new in a row": (TILES, pt.on("f").store_at("g", "xo").compute_at("g", "yi").vectorize("x")),
}


@pytest.mark.parametrize("stages", INFERRED.values(), ids=INFERRED)
@pytest.mark.parametrize("shape", [(150, 70), (9, 19), (3, 5), (2, 3)])
def test_a_stage_at_tiles(stages: tuple[pt.StageSchedule, ...], shape: tuple[int, int]) -> None:
    p = pipeline(*stages)
    image = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    np.testing.assert_array_equal(p(img=image), p.reference(img=image))


def test_lanes_are_as_many_as_are_read() -> None:
    loops = pipeline(TILES, AT_TILES.vectorize("x")).loops()
    assert ", 1, 18)]" in loops and "for f.x" not in loops


def test_what_blocks_of_an_update_leave_over_runs_serially() -> None:
    """There the region is not constant, but the same schedule applies."""
    f, g, r = pt.Func("f"), pt.Func("g"), pt.RDom((0, 3), name="r")
    f[X] = X * 2
    g[X] = 0
    g[X] += f[X + r[0]] + f[X + 1]
    blocks = pt.on("g").update().split("x", "xo", "xi", 8).reorder("xo", "r.0", "xi").vectorize("xi")
    p = pt.Pipeline(g, (IMG.shape[0],), schedule=pt.Schedule(blocks, pt.on("f").compute_at("g", "xo").vectorize("x")))
    for n in (1, 7, 8, 29):
        image = np.zeros((n, 1), np.int32)
        np.testing.assert_array_equal(p(img=image), p.reference(img=image))


def test_all_of_a_stage_that_a_constant_shape_needs() -> None:
    f, g = pt.Func("f"), pt.Func("g")
    f[Y, X] = Y + X
    g[Y, X] = f[Y, X] + f[Y, 3 - X]
    p = pt.Pipeline(g, (5, 4), schedule=pt.Schedule(pt.on("f").compute_root().vectorize("x"), pt.on("g")))
    np.testing.assert_array_equal(p(), p.reference())


def test_an_extent_that_is_not_constant() -> None:
    match = r'pt.on\("f"\).vectorize\("x"\): the extent of loop x is not constant where f is computed: it is .*; split'
    with pytest.raises(pt.UserError, match=match) as refused:
        pipeline(pt.on("g"), pt.on("f").compute_at("g", "y").vectorize("x")).loops()
    assert refused.value.where.file == __file__


def test_more_lanes_than_there_may_be() -> None:
    wide = pt.on("g").split("x", "xo", "xi", 300)
    match = r'pt.on\("f"\).vectorize\("x"\): 1 copies of 302 lanes would be too much code where f is computed; split'
    with pytest.raises(pt.UserError, match=match):
        pipeline(wide, AT_TILES.vectorize("x")).loops()
