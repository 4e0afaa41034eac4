"""Folded storage."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

Y, X = pt.vars("y x")


def test_a_stage_of_which_nothing_is_needed() -> None:
    img = pt.Input("img", "uint8", ndim=2)
    unused, out = pt.Func("unused"), pt.Func("out")
    unused[Y, X] = pt.edge(img)[Y, X] + 1
    out[Y, X] = pt.select(Y < 0, unused[Y, X], 3)
    p = pt.Pipeline(out, shape=(4, 5), schedule=pt.Schedule(pt.on("unused").compute_root()))
    assert (p(img=np.zeros((4, 5), "uint8")) == 3).all()


ROWS_IN_LANES = {
    "vector": lambda g: g.reorder("x", "y").vectorize("y", 4, tail="guard"),
    "split": lambda g: g.split("y", "yo", "yi", 2).reorder("x", "yo", "yi").vectorize("yi"),
    "fused": lambda g: g.tile("y", "x", "yo", "xo", "yi", "xi", 2, 1).fuse("yi", "xi", "t").vectorize("t", 4),
}


@pytest.mark.parametrize("kind", ROWS_IN_LANES)
def test_rows_that_are_lanes_of_a_vector_are_all_kept(kind: str) -> None:
    """One new row per step would do with a circle of one, and that has no room for a vector of rows."""
    img = pt.Input("img", "uint16", ndim=2)
    g, out = pt.Func("g"), pt.Func("out")
    g[Y, X] = pt.edge(img)[Y, X] + 1
    out[Y, X] = g[(2 * Y - 1) // 3, X]
    rows = ROWS_IN_LANES[kind](pt.on("g").compute_at("out", "yi").store_at("out", "y"))
    p = pt.Pipeline(out, shape=img.shape, schedule=pt.Schedule(pt.on("out").split("y", "y", "yi", 5), rows))
    pixels = np.arange(64, dtype="uint16").reshape(8, 8)
    np.testing.assert_array_equal(p(img=pixels), p.reference(img=pixels))
