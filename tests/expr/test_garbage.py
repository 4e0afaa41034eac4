"""Python's garbage collector is as it was after compiling."""

from __future__ import annotations

import gc

import pytest

import pantile as pt
from pantile.expr.depth import rare_collections


@pytest.mark.parametrize("usual", [(700, 10, 10), (0, 10, 10), (1_000_000, 5, 5)])
def test_thresholds_are_restored(usual: tuple[int, int, int]) -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(*usual)
        with rare_collections(), rare_collections():
            inside = gc.get_threshold()
            assert inside[0] >= usual[0] and (inside[0] == 0) == (usual[0] == 0)
        assert gc.get_threshold() == usual
    finally:
        gc.set_threshold(*before)


def test_compiling_leaves_little_for_it() -> None:
    """What refers to itself stays until Python looks through all objects: that took a tenth of the time."""

    def left(stages: int) -> int:
        pipeline = chain(stages)
        gc.collect()
        pipeline.llvm()
        return gc.collect()

    gc.disable()
    gc.collect()
    gc.freeze()  # what other tests have left is not looked through again and again
    try:
        left(2)
        assert left(12) - left(2) < 10 * 40  # it was 600 per stage
    finally:
        gc.unfreeze()
        gc.enable()


def chain(stages: int) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    f = pt.edge(img)
    for k in range(stages):
        g = pt.Func(f"f{k}")
        g[y, x] = (f[y, x - 1] + f[y, x] * 2 + f[y, x + 1]) * 0.25
        f = g
    return pt.Pipeline(f, shape=img.shape)
