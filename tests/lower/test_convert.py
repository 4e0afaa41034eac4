"""What sums of many terms convert is stored converted."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt


@pytest.mark.parametrize("narrow", ["bool", "uint8", "int16"])
def test_what_is_converted_twice_is_stored_converted_once(narrow: str) -> None:
    x = pt.Var("x")
    img, total = pt.Input("img", narrow, ndim=1), pt.Func("total")
    r = pt.RDom((0, 40))
    total[x] = pt.max(pt.cast("int64", pt.cast("uint16", pt.edge(img)[x + r[0]])) + r[0], over=r)
    p = pt.Pipeline(total, shape=img.shape)
    given = np.arange(50).astype(narrow)
    for q in (p, p.with_schedule(pt.Schedule(pt.on("img_edge").compute_root()))):
        np.testing.assert_array_equal(q(img=given), p.reference(img=given))
