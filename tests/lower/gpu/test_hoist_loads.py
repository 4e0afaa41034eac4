"""Loads ahead of stores: what they decide about stays behind them."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

Y, X = pt.vars("y x")
IMG = pt.Input("img", "float32", ndim=2)


def scan(step: int, unrolled: int) -> pt.Pipeline:
    """Every value is made of one `step` rows above it and of its own."""
    f, out, r = pt.Func("f"), pt.Func("out"), pt.RDom((step, IMG.shape[0] - step), names="y")
    f[Y, X] = IMG[Y, X]
    f[r.y, X] = f[r.y, X] * 0.5 + f[r.y - step, X]
    out[Y, X] = f[Y, X] + 1
    schedule = pt.Schedule(
        pt.on("out").split("x", "xo", "xi", 32).reorder("xo", "xi", "y").block("xo").thread("xi"),
        pt.on("f").split("x", "xo", "xi", 32).reorder("xo", "xi", "y").block("xo").thread("xi")
        .update().split("x", "xo", "xi", 32).reorder("xo", "xi", "r.y").block("xo").thread("xi")
        .unroll("r.y", unrolled),
    )  # fmt: skip
    return pt.Pipeline(out, shape=IMG.shape, schedule=schedule, target="cuda-sim")


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("rows", [3, 5, 9, 40])
def test_scans(step: int, rows: int) -> None:
    img = np.random.default_rng(0).random((rows, 50), np.float32)
    p = scan(step, 4)
    np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5)


def test_all_rows_of_a_copy_are_loaded_first() -> None:
    shown = scan(1, 4).loops()
    assert shown.count("let f.ahead.") >= 3
    first = shown.index("let f.ahead.")
    body = shown[first : first + 2000].splitlines()
    assert ["ahead" in line.split("=")[0] for line in body[:4]] == [True, True, True, False]
