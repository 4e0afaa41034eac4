"""debug=True: broken promises are reported instead of reading somebody else's memory."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

from .examples import X, blur, picture


def promised(low: int, high: int) -> pt.Pipeline:
    img, at, f = pt.Input("img", "int32", 1), pt.Input("at", "int32", 1), pt.Func("f")
    f[X] = img[pt.within(at[X], low, high)]
    return pt.Pipeline(f, at.shape, debug=True)


def test_a_promise_that_holds() -> None:
    pixels, at = picture(10, dtype="int32"), np.array([0, 9, 5, 5, 3], "int32")
    assert np.array_equal(promised(0, 9)(img=pixels, at=at), pixels[at])


@pytest.mark.parametrize("index", [-1, 10, 12345])
def test_a_promise_that_does_not(index: int) -> None:
    at = np.array([0, 9, index, 5, 3], "int32")
    text = rf"Input 'img' \(from .*test_debug.py:\d+\) is read at element {index} of its memory, .* elements 0 .. 9;"
    with pytest.raises(pt.RunError, match=text):
        promised(0, 9)(img=picture(10, dtype="int32"), at=at)


def test_a_scatter_outside_a_func() -> None:
    at, count, f, r = pt.Input("at", "int32", 1), pt.Func("count"), pt.Func("f"), pt.RDom((0, 5))
    count[X] = 0
    count[pt.within(at[r[0]], 0, 9)] += 1
    f[X] = count[X] * 2
    p = pt.Pipeline(f, (10,), debug=True)
    assert p(at=np.array([1, 1, 2, 9, 0], "int32")).tolist() == [2, 4, 2, 0, 0, 0, 0, 0, 0, 2]
    with pytest.raises(pt.RunError, match=r"Func 'count' \(defined at .*\) is (read|written) at element 10 "):
        p(at=np.array([1, 1, 2, 10, 0], "int32"))


def test_ordinary_pipelines_pass() -> None:
    p, pixels = blur(debug=True), picture(40, 70)
    assert np.array_equal(p(img=pixels), p.reference(img=pixels))
