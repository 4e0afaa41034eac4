"""Block loops directly inside each other are one, whose variable is the number of a block."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

from .simulated import assert_agrees, blur, kernels, picture, x, y

c = pt.Var("c")


@pytest.mark.parametrize("shape", [(3, 3), (10, 34), (11, 35), (40, 70)])
def test_two_loops(shape: tuple[int, int]) -> None:
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32, tail="guard")
    p = blur(tiles.block("yo", "xo").thread("yi", "xi"), pt.on("rows").compute_inline())
    (count,) = assert_agrees(p, img=picture(*shape))
    blocks = -(-(shape[0] - 2) // 8) * -(-(shape[1] - 2) // 32)
    assert count.blocks == blocks if min(shape) >= 40 else count.blocks >= blocks, "small pictures have smaller blocks"


def planes(*more: str) -> pt.Pipeline:
    img, out = pt.Input("img", "float32", ndim=3), pt.Func("out")
    out[c, y, x] = img[c, y, x] * 2.0 + c
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 4, 8)
    asked = tiles.reorder("c", "yo", "xo", "yi", "xi").block("c", "yo", "xo").thread("yi", "xi")
    return pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(pt.Schedule(asked))


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 9, 17), (5, 4, 8), (2, 1, 40)])
def test_three_loops(shape: tuple[int, int, int]) -> None:
    (count,) = assert_agrees(planes(), img=np.random.default_rng(1).random(shape, np.float32))
    assert count.blocks >= shape[0]


def test_no_pixels_are_no_blocks() -> None:
    p = planes()
    assert p(img=np.zeros((0, 4, 4), np.float32)).shape == (0, 4, 4)
    assert p(img=np.zeros((3, 4, 0), np.float32)).shape == (3, 4, 0)


def test_extents_that_depend_on_blocks_outside() -> None:
    """Blocks beyond the extent of theirs do nothing. Here the second split cuts what the first leaves of a row."""
    img, out = pt.Input("img", "float32", ndim=1), pt.Func("out")
    out[x] = img[x] + 1.0
    chain = pt.on("out").split("x", "xo", "xi", 24, tail="guard").split("xi", "xm", "xt", 5, tail="guard")
    p = pt.Pipeline(out, target="cuda-sim").with_schedule(pt.Schedule(chain.block("xo", "xm").thread("xt")))
    for n in (1, 4, 5, 6, 23, 24, 25, 49, 100):
        counts = assert_agrees(p, img=picture(n))
        assert len(counts) == 1


def test_loops_of_one_iteration() -> None:
    """Whatever is made of their variables is a number."""
    img, out = pt.Input("img", "float32", ndim=3), pt.Func("out")
    out[c, y, x] = img[c, y, x] * 2.0
    chain = pt.on("out").split("x", "xo", "xi", 8).reorder("y", "c", "xo", "xi").block("y", "c", "xo").thread("xi")
    p = pt.Pipeline(out, shape=(1, 7, 20), target="cuda-sim").with_schedule(pt.Schedule(chain))
    assert kernels(p)
    assert_agrees(p, img=np.random.default_rng(1).random((1, 7, 20), np.float32))
