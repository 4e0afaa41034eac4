"""Stages that are read under a condition: nothing is computed for iterations in which it fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr

y, x = pt.vars("y x")
img = pt.Input("img", "uint8", ndim=2)

READS: list[tuple[int, Callable[[], Expr]]] = [
    (-1, lambda: y > 0),
    (1, lambda: y < img.shape[0] - 1),
    (3, lambda: (y > 2) & (y < img.shape[0] - 3)),
    (-3, lambda: (y > 2) & (y < img.shape[0] - 3)),
]


@pytest.mark.parametrize("stored", [None, "yo", "yi"])
@pytest.mark.parametrize("f_at", ["yo", "yi"])
@pytest.mark.parametrize("read", range(len(READS)))
def test_what_is_not_there_is_not_read(read: int, f_at: str, stored: str | None) -> None:
    """img has no row for f[-1], which only the first iteration would need if its condition held."""
    offset, condition = READS[read]
    f, g, out = pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[y, x] = img[y, x] + 1
    g[y, x] = f[y, x] * 2
    out[y, x] = pt.select(condition(), g[y + offset, x], 3)
    g_plan = pt.on("g").compute_at("out", "yi")
    g_plan = g_plan.store_root() if stored is None else g_plan.store_at("out", stored)
    schedule = pt.Schedule(pt.on("out").split("y", "yo", "yi", 4), pt.on("f").compute_at("out", f_at), g_plan)
    p = pt.Pipeline(out, shape=img.shape, schedule=schedule, debug=True)
    pixels = np.arange(13 * 11, dtype="uint8").reshape(13, 11)
    np.testing.assert_array_equal(p(img=pixels), p.reference(img=pixels))
