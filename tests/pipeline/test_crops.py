"""What updates write outside of an output is dropped, as an assignment outside of a part of an array would be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt

X, BIN = pt.vars("x i")
IMG = pt.Input("img", "uint8", ndim=1)
BYTES = np.random.default_rng(0).integers(0, 256, 5000).astype("uint8")
COUNTS = np.bincount(BYTES, minlength=256)


def histogram(bins: int, **options: Any) -> pt.Pipeline:
    hist, r = pt.Func("hist"), pt.RDom((0, IMG.shape[0]), name="r")
    hist[BIN] = 0
    hist[IMG[r[0]]] += 1
    return pt.Pipeline(hist, (bins,), **options)


@pytest.mark.parametrize("bins", [1, 100, 255, 256, 300])
def test_a_shorter_histogram(bins: int) -> None:
    p = histogram(bins)
    expected = np.pad(COUNTS, (0, 300))[:bins]
    np.testing.assert_array_equal(p(img=BYTES), expected)
    np.testing.assert_array_equal(p.reference(img=BYTES), expected)
    out = np.full(bins, 7, "int32")
    assert p(img=BYTES, out=out) is out
    np.testing.assert_array_equal(out, expected)


IN_PARTS = pt.on("hist").vectorize("i", 8).update().split("r.0", "block", "in_block", 100).rfactor("block", "u")
SCHEDULES = {
    "by hand": pt.Schedule(IN_PARTS, pt.on("hist_u").update().parallel("u")),
    **{name: name for name in ("greedy", "dp", "naive")},
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_under_schedules(schedule: Any) -> None:
    p = histogram(100, schedule=schedule)
    np.testing.assert_array_equal(p(img=BYTES), COUNTS[:100])
    np.testing.assert_array_equal(p.with_options(debug=True)(img=BYTES), COUNTS[:100])


def test_code_is_the_same_where_nothing_lies_outside() -> None:
    """Whether something does may depend on the call."""
    n, f, r = pt.Param("n", "int32"), pt.Func("f"), pt.RDom((0, 5), name="r")
    f[X] = 1
    f[r[0] + n] += 10
    p = pt.Pipeline(f, (8,))
    for k in (0, 3, 4, 7, 100):
        expected = np.ones(105, "int32")
        expected[k : k + 5] += 10
        np.testing.assert_array_equal(p(n=k), expected[:8])
        np.testing.assert_array_equal(p.reference(n=k), expected[:8])
    assert "f.out" not in p.loops()


def test_a_scan_that_runs_beyond_the_end() -> None:
    f, r = pt.Func("f"), pt.RDom((0, IMG.shape[0]), name="r")
    f[X] = pt.cast("int32", pt.edge(IMG)[X])
    f[r[0] + 1] += f[r[0]]
    g = pt.Func("g")
    g[X] = f[X] * 2
    both = pt.Pipeline([f, g], [IMG.shape, IMG.shape])
    alone = pt.Pipeline(f, IMG.shape)
    expected = np.cumsum(BYTES[:50], dtype="int32")
    np.testing.assert_array_equal(alone(img=BYTES[:50]), expected)
    np.testing.assert_array_equal(both(img=BYTES[:50])[1], expected * 2)
