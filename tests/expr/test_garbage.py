"""Python's garbage collector is as it was after compiling."""

from __future__ import annotations

import gc

import pytest

from pantile.expr.garbage import rare_collections


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
