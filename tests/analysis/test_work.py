"""Bytes and operations of a call, counted by hand."""

from __future__ import annotations

import pytest

import pantile as pt
from pantile.apps import APPS

from ..apps.short import app_and_case


def test_blur_moves_and_adds() -> None:
    """Of each pixel: two additions and a division per stage; the first has two more rows."""
    work = APPS["blur"].build().work(img=(102, 202))
    assert work.bytes == 2 * (102 * 202 + 100 * 200)
    assert work.operations == {("int", 16): 3 * 200 * (102 + 100)}


def test_floats_are_fused_and_others() -> None:
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[y, x] = pt.maximum(2 * img[y, x] + 1, pt.sqrt(img[y, 2 * x]))
    work = pt.Pipeline(out, shape=(10, 20)).work(img=(30, 60))
    assert work.bytes == 4 * (10 * 39 + 10 * 20), "only what is read"
    assert work.operations == {("fma", 32): 2 * 200, ("float", 32): 2 * 200}


def test_reductions_count_their_domain() -> None:
    y, x = pt.vars("y x")
    a, b = pt.Input("a", "float64", ndim=2), pt.Input("b", "float64", ndim=2)
    k, product = pt.RDom((0, a.shape[1])), pt.Func("product")
    product[y, x] = pt.sum(a[y, k[0]] * b[k[0], x], over=k)
    work = pt.Pipeline(product, shape=(a.shape[0], b.shape[1])).work(a=(5, 7), b=(7, 11))
    assert work.bytes == 8 * (5 * 7 + 7 * 11 + 5 * 11)
    assert work.operations == {("fma", 64): 2 * 5 * 7 * 11}


def test_points_left_out_do_not_count() -> None:
    y, x = pt.vars("y x")
    a, total = pt.Input("a", "float32", ndim=2), pt.Func("total")
    k = pt.RDom((0, a.shape[0]))
    total[y, x] = pt.sum(a[k[0], x], over=k.where(k[0] <= y))
    work = pt.Pipeline(total, shape=a.shape).work(a=(100, 10))
    assert work.operations["fma", 32] == pytest.approx(100 * 101 / 2 * 10, rel=0.05)


def test_branches_count_where_coordinates_take_them() -> None:
    """Every other pixel is a square root, every fourth a sum, and data decides on the rest."""
    y, x = pt.vars("y x")
    a, out = pt.Input("a", "float32", ndim=2), pt.Func("out")
    by_data = pt.select(a[y, x] > 0, pt.exp(a[y, x]), pt.sin(a[y, x]))
    out[y, x] = pt.select(x % 2 == 0, pt.sqrt(a[y, x]), pt.select(y % 2 == 0, a[y, x] + 1, by_data))
    work = pt.Pipeline(out, shape=a.shape).work(a=(100, 100))
    assert work.operations["fma", 32] == pytest.approx(100 * 100 / 4, rel=0.15)
    assert work.operations["float", 32] == pytest.approx(100 * 100 * (1 / 2 + 4 / 4), rel=0.1)


def test_scatters_count_their_domain_only() -> None:
    (i,) = pt.vars("i")
    a, hist = pt.Input("a", "uint8", ndim=1), pt.Func("hist")
    r = pt.RDom((0, a.shape[0]))
    hist[i] = 0
    hist[a[r[0]] // 2] += 1
    work = pt.Pipeline(hist, shape=(128,)).work(a=(1000,))
    assert work.operations == {("int", 32): 1000, ("int", 8): 1000}


@pytest.mark.parametrize("name", APPS)
def test_every_app_is_some_work(name: str) -> None:
    app, _ = app_and_case(name)
    work = app.build().work(**app.sizes["small"])
    assert work.bytes > 0
    assert all(n > 0 for n in work.operations.values())
