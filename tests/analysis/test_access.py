"""Reads as scale * dim + an offset, where they are so."""

from __future__ import annotations

import pantile as pt
from pantile.analysis.access import accesses


def test_floats_have_no_form() -> None:
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    gain = pt.Param("gain", "float32")
    out[y, x] = img[y, pt.cast("int32", pt.maximum(gain, float("inf"))) & 7]
    (stage,) = pt.Pipeline(out, shape=(8, 8)).graph.stages
    (read,) = accesses(stage, stage.pure)
    assert [i is None for i in read.indices] == [False, True]
