"""Means are right at any size; sums whose types may be too narrow for their domains warn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.lang.build import build

Y, X = pt.vars("y x")
LARGE = (4000, 6000)


def over(img: pt.Input) -> pt.RDom:
    return pt.RDom(*((0, n) for n in img.shape))


def whole(img: pt.Input, value: Any, *, where: Any = None) -> pt.Pipeline:
    """The mean of value(pixel) over a whole picture."""
    r, f = over(img), pt.Func("f")
    pixel = img[tuple(r)]
    f[()] = pt.mean(value(pixel), over=r if where is None else r.where(where(pixel)))
    return pt.Pipeline(f, shape=(), schedule="plain")


def check(p: pt.Pipeline, expected: float, rtol: float = 1e-6, **arrays: np.ndarray) -> None:
    for result in (p(**arrays), p.reference(**arrays)):
        np.testing.assert_allclose(result, expected, rtol=rtol)


def test_of_a_large_picture_of_small_integers() -> None:
    p = whole(pt.Input("img", "uint8", 2), lambda e: e)
    check(p, 230, img=np.broadcast_to(np.uint8(230), LARGE))


def test_of_squares_that_32_bits_do_not_sum() -> None:
    p = whole(pt.Input("img", "uint8", 2), lambda e: pt.cast("int32", e) ** 2)
    check(p, 62500, img=np.broadcast_to(np.uint8(250), (300, 400)))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_of_integers_that_64_bits_do_not_sum(value: int) -> None:
    p = whole(pt.Input("img", "int64", 2), lambda e: e)
    check(p, value, img=np.full((3, 5), value))


def test_of_as_many_floats_as_a_picture_has() -> None:
    row = np.random.default_rng(0).random(LARGE[1], np.float32)
    p = whole(pt.Input("img", "float32", 2), lambda e: e)
    check(p, row.mean(dtype=np.float64), img=np.broadcast_to(row, LARGE))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_of_floats_has_their_type(dtype: str) -> None:
    p = whole(pt.Input("img", dtype, 2), lambda e: e)
    picture = np.full((300, 400), 60000, dtype)  # of which float16 does not hold the sum of two
    assert p(img=picture).dtype == p.reference(img=picture).dtype == dtype
    check(p, 60000, img=picture)


def test_of_chosen_points_counts_them_in_a_type_that_holds_their_number() -> None:
    p = whole(pt.Input("img", "uint8", 2), lambda e: e, where=lambda e: e > 9)
    check(p, 20, img=np.array([[1, 10, 2], [30, 3, 4]], np.uint8))
    assert [s.dtypes[0].name for s in p.graph.stages] == ["uint64", "int64", "float32"]


@pytest.mark.parametrize(
    ("dtype", "points", "held"),
    [
        ("bool", 25, "int32"), ("uint8", 25, "uint32"), ("uint8", 1 << 24, "uint32"), ("uint8", 1 << 25, "uint64"),
        ("int16", 1 << 16, "int32"), ("int16", 1 << 17, "int64"), ("int32", 1, "int32"), ("int32", 2, "int64"),
        ("uint32", 1 << 32, "uint64"), ("uint32", 1 << 33, "float64"), ("int64", 1, "int64"), ("int64", 2, "float64"),
        ("bool", None, "int64"), ("uint16", None, "uint64"), ("int32", None, "float64"), ("uint64", None, "float64"),
        ("float16", 25, "float32"), ("float32", 25, "float32"), ("float32", 1 << 20, "float64"),
        ("bfloat16", None, "float64"), ("float64", 25, "float64"),
    ],
)  # fmt: skip
def test_types_are_as_wide_as_the_number_of_points_needs(dtype: str, points: int | None, held: str) -> None:
    img, f = pt.Input("img", dtype, 2), pt.Func("f")
    r = over(img) if points is None else pt.RDom((0, min(points, 1 << 20)), (0, max(1, points >> 20)))
    f[()] = pt.mean(img[tuple(r)], over=r)
    assert build(f, ()).stages[0].dtypes[0].name == held


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (lambda e: pt.cast("int32", e) * 1000 - 7, "int32"),
        (lambda e: (pt.cast("int32", e) - 128) ** 2, "int32"),
        (lambda e: pt.select(e > 3, pt.cast("int32", e), -1) * 40000, "int64"),
        (lambda e: pt.cast("uint32", e) - 1, "uint64"),  # it wraps
        (lambda e: pt.clamp(pt.cast("int32", e) * pt.cast("int32", e) * e * e, 0, 9), "int32"),
        (lambda e: pt.table(np.array([3, -70_000, 9]))[pt.minimum(e, 2)], "int64"),
    ],
)
def test_operations_tell_how_large_values_are(value: Any, held: str) -> None:
    img, r, f = pt.Input("img", "uint8", 2), pt.RDom((0, 50), (0, 50)), pt.Func("f")
    f[()] = pt.mean(value(img[tuple(r)]), over=r)
    assert build(f, ()).stages[0].dtypes[0].name == held


# ---- sums


def test_a_stated_type_is_what_a_sum_is_held_in() -> None:
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    r = over(img)
    f[()] = pt.sum(img[tuple(r)], over=r, dtype="uint64")
    p = pt.Pipeline(f, shape=(), schedule="plain")
    check(p, 230 * LARGE[0] * LARGE[1], rtol=0, img=np.broadcast_to(np.uint8(230), LARGE))
    assert pt.sum(img[tuple(r)], over=r, dtype=np.float64).dtype.name == "float64"


_PICTURE = pt.Input("img", "uint8", 2)
_SMALL = pt.RDom((-2, 5), (-2, 5))
_K = pt.RDom((0, _PICTURE.shape[1]))
_N = pt.Param("n", "int32")


def test_ordinary_sums_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    whole = over(_PICTURE)
    small = _PICTURE[Y + _SMALL[0], X + _SMALL[1]]
    pt.sum(small, over=_SMALL)
    pt.sum(pt.cast("int32", small), over=_SMALL)
    pt.sum(pt.cast("int32", small) ** 3, over=_SMALL)  # whatever it holds, the domain is small
    pt.sum(pt.Input("wide", "int32", 2)[Y + _SMALL[0], X], over=_SMALL)
    pt.sum(_PICTURE[Y, _K[0]], over=_K)
    pt.sum(pt.cast("int32", _PICTURE[Y, _K[0]]) * pt.cast("int8", _PICTURE[_K[0], X]), over=_K)
    pt.sum(_PICTURE[tuple(whole)] > 3, over=whole)  # counts pixels
    pt.sum(pt.cast("float32", _PICTURE[tuple(whole)]), over=whole)
    pt.sum(pt.cast("uint64", _PICTURE[tuple(whole)]), over=whole)
    window = pt.RDom((0, pt.clamp(_N, 0, 9)))
    pt.sum(_PICTURE[Y, X + window[0]], over=window)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("sum_", "message"),
    [
        (lambda: pt.sum(_PICTURE[tuple(over(_PICTURE))], over=over(_PICTURE)),
         r'pt.sum adds as many values as the call decides of img\[r.0, r.1\] in uint32, which wraps where the sum is '
         r'larger than 4,294,967,295; write pt.sum\(..., dtype="uint64"\), or dtype="uint32" if it never is'),
        (lambda: pt.sum(pt.Input("line", "uint8", 1)[pt.RDom((0, 1 << 24))[0]], over=pt.RDom((0, 1 << 25))),
         r"pt.sum adds 33,554,432 values of line\[r.0\] in uint32"),
        (lambda: pt.sum(pt.Input("line", "int16", 1)[_K[0]], over=pt.RDom((0, pt.Input("line", "int16", 1).shape[0]))),
         r'in int32.* dtype="int64"'),
    ],
)  # fmt: skip
def test_sums_over_domains_that_are_too_large_warn_on_their_line(sum_: Any, message: str) -> None:
    with pytest.warns(pt.DefinitionWarning, match=message) as caught:
        sum_()
    assert caught[0].filename == __file__
