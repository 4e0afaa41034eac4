"""Edges of rows that find much of what they read by data are little code."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.ir.nodes import For
from pantile.ir.visit import walk
from tests.lower.lowered import lowered


def table(taps: int) -> pt.Pipeline:
    """Values that are found by data, at both edges of a row as inside."""
    x = pt.Var("x")
    img, values = pt.Input("img", "uint8", ndim=1), pt.Input("values", "float32", shape=(256,))
    out = pt.Func("out")
    places = [pt.clamp(x + k, 0, img.shape[0] - 1) for k in range(taps)]
    out[x] = sum((values[img[p]] for p in places[1:]), values[img[places[0]]])
    return pt.Pipeline(out, shape=(img.shape[0],)).with_schedule(pt.Schedule(pt.on("out").vectorize("x", 8)))


@pytest.mark.parametrize(("taps", "kinds"), [(3, 0), (40, 1)])
def test_an_edge_that_finds_much_by_data_runs_lane_by_lane(taps: int, kinds: int) -> None:
    found = lowered(table(taps))["vectorize"]
    assert sum(isinstance(s, For) and s.var == "out.x_v" for s in walk(found)) == kinds


@pytest.mark.parametrize("size", [8, 50, 100])
def test_such_an_edge_computes_the_same(size: int) -> None:
    img = (np.arange(size) * 37 % 256).astype(np.uint8)
    values = np.arange(256, dtype=np.float32)
    places = np.minimum(np.arange(size)[:, None] + np.arange(40), size - 1)
    assert np.array_equal(table(40)(img=img, values=values), values[img[places]].sum(axis=1))
