"""Places that data finds are right where 32 bits would not hold them; others stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.expr.types import INT64

from ..lowered import all_expressions
from .simulated import assert_agrees, blur, kernels, picture, x, y


def is_wide(p: pt.Pipeline) -> bool:
    return any(e.dtype is INT64 for k in kernels(p) for e in all_expressions(k.body))


def test_places_of_pictures_are_narrow() -> None:
    assert not is_wide(blur(clamped=True))


def at_data(dtype: str, factor: int = 1) -> pt.Pipeline:
    lut, at, out = pt.Input("lut", "float32", ndim=1), pt.Input("at", dtype, ndim=1), pt.Func("out")
    out[x] = lut[pt.clamp(pt.cast("int32", at[x]) * factor + x if factor > 1 else at[x] + x, 0, lut.shape[0] - 1)]
    return pt.Pipeline(out, shape=at.shape, target="cuda-sim")


def test_a_place_beyond_all() -> None:
    numbers = np.array([2**31 - 1, -(2**31), 5, -7, 2**31 - 2, 2**30, -(2**31) + 1, 3], np.int32)
    p = at_data("int32")
    assert is_wide(p)
    assert_agrees(p, lut=picture(50), at=numbers)


def test_small_types_stay_near() -> None:
    assert not is_wide(at_data("uint8"))
    assert_agrees(at_data("uint8"), lut=picture(50), at=np.arange(0, 256, 3, dtype=np.uint8))


def test_clamped_data_stays_near() -> None:
    """A table that data is looked up in, with a row of so many values for each of its entries."""
    table, at, out = pt.Input("table", "float32", shape=(None, 8)), pt.Input("at", "int32", ndim=1), pt.Func("out")
    out[y, x] = table[pt.clamp(at[y], 0, 40), x]
    p = pt.Pipeline(out, shape=(at.shape[0], 8), target="cuda-sim")
    assert not is_wide(p)
    assert_agrees(p, table=picture(41, 8), at=np.array([2**31 - 1, -(2**31), 5, -7, 40, 41], np.int32))


def test_a_coordinate_beside_wide_data() -> None:
    """What is compared with a coordinate may be any number of its 64 bits."""
    r, q = pt.RDom((-2, 5)), pt.Func("q")
    q[y, x] = pt.argmax(pt.cast("int64", y), over=r)
    found = pt.Pipeline(q, shape=(4, 3), target="cuda-sim")()
    np.testing.assert_array_equal(found[0], -2)
    np.testing.assert_array_equal(found[1], np.broadcast_to(np.arange(4)[:, None], (4, 3)))


def test_a_wide_condition() -> None:
    a, out = pt.Input("a", "int64", ndim=1), pt.Func("out")
    out[x] = pt.select(a[x] > x, 1, 0)
    p = pt.Pipeline(out, shape=a.shape, target="cuda-sim")
    assert_agrees(p, a=np.array([2**62, -(2**62), 2**32, -(2**32), 5, 4, 2**33 + 1], np.int64))


@pytest.mark.parametrize("step", [1, 2])
def test_vectors_of_wide_numbers(step: int) -> None:
    k, lut, out = pt.Param("k", "int64"), pt.Input("lut", "float32", ndim=1), pt.Func("out")
    far = pt.select(x >= 5, -2, k) + x * step
    out[x] = lut[pt.clamp(far, 0, 15)] + pt.select(far < 7, 10, 0)
    p = pt.Pipeline(out, shape=(16,), target="cuda-sim")
    q = p.with_schedule(pt.Schedule(pt.on("out").split("x", "xo", "xi", 4).block("xo").vectorize("xi")))
    for number in (2**62, -(2**62), 2**32, 2**31 - 3, 3):
        assert_agrees(q, lut=picture(16), k=number)


def test_clamped_data_stay_near() -> None:
    """What is limited by numbers needs no more bits, whether it was a float or an integer; what is no number is 0."""
    lut, at, out = pt.Input("lut", "float32", ndim=2), pt.Input("at", "float32", ndim=2), pt.Func("out")
    level = pt.cast("int32", pt.clamp(at[y, x], 0, 1) * 10 + 0.5)
    out[y, x] = lut[y, pt.within(level, 0, 10)]
    p = pt.Pipeline(out, shape=at.shape, target="cuda-sim")
    assert not is_wide(p)
    numbers = picture(5, 300)
    numbers[:, ::7] = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30])[:, None]
    assert_agrees(p, lut=picture(5, 11), at=numbers)


def test_floats_of_any_size_are_wide() -> None:
    lut, at, out = pt.Input("lut", "float32", ndim=1), pt.Input("at", "float32", ndim=1), pt.Func("out")
    out[x] = lut[pt.clamp(pt.cast("int64", at[x]) + x, 0, lut.shape[0] - 1)]
    p = pt.Pipeline(out, shape=at.shape, target="cuda-sim")
    assert is_wide(p)
    assert_agrees(p, lut=picture(50), at=np.array([1e18, -1e18, 3e9, 7, np.nan, np.inf], np.float32))
