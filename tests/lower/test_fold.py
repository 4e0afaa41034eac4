"""Folded storage."""

from __future__ import annotations

import numpy as np

import pantile as pt

Y, X = pt.vars("y x")


def test_a_stage_of_which_nothing_is_needed() -> None:
    img = pt.Input("img", "uint8", ndim=2)
    unused, out = pt.Func("unused"), pt.Func("out")
    unused[Y, X] = pt.edge(img)[Y, X] + 1
    out[Y, X] = pt.select(Y < 0, unused[Y, X], 3)
    p = pt.Pipeline(out, shape=(4, 5), schedule=pt.Schedule(pt.on("unused").compute_root()))
    assert (p(img=np.zeros((4, 5), "uint8")) == 3).all()
