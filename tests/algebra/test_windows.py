"""Reductions over windows of several loops, one loop at a time."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

from .examples import X, Y, agrees, stages, window, windowed

INTEGERS = ("uint8", "int8", "uint16", "int32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_integers_are_the_same(kind: str, dtype: str) -> None:
    p = windowed(kind, dtype)
    assert stages(p) == ["box_rows", "box"]
    assert agrees(p)


@pytest.mark.parametrize("kind", ["any", "all"])
def test_conditions(kind: str) -> None:
    img, box, r = pt.Input("img", "uint8", ndim=2), pt.Func("box"), window(7, 9)
    box[Y, X] = getattr(pt, kind)(pt.edge(img)[Y + r.y, X + r.x] > (4 if kind == "any" else 250), over=r)
    p = pt.Pipeline(box, shape=(40, 50))
    assert stages(p) == ["box_rows", "box"]
    assert agrees(p)


def test_floats_are_summed_in_another_order() -> None:
    p = windowed("mean", "float32", (9, 5))
    assert stages(p) == ["box_sum_rows", "box_sum", "box"]
    assert agrees(p, 1e-5)


def test_strict_floats_are_not_but_the_largest_of_them_is_the_same() -> None:
    assert stages(windowed("sum", "float32", strict=True)) == ["box"]
    p = windowed("max", "float32", strict=True)
    assert stages(p) == ["box_rows", "box"]
    assert agrees(p)


def test_sums_wrap_as_they_did() -> None:
    img, box, r = pt.Input("img", "uint8", ndim=2), pt.Func("box"), window(7, 7)
    box[Y, X] = pt.cast("uint8", Y)
    box[Y, X] += pt.edge(img)[Y + r.y, X + r.x]
    p = pt.Pipeline(box, shape=(40, 50))
    assert stages(p) == ["box_rows", "box"]
    assert agrees(p)


def test_bytes_are_stored_in_16_bits() -> None:
    rows = {n: windowed(sides=(n, n)).rewritten.stage["box_rows"].dtypes[0].name for n in (9, 257, 258)}
    assert rows == {9: "uint16", 257: "uint16", 258: "uint32"}


def test_small_windows_are_kept() -> None:
    assert stages(windowed(sides=(3, 3))) == ["box"]
    assert stages(windowed("max", sides=(2, 9))) == ["box"]
    assert stages(windowed(sides=(1, 33))) == ["box"]


def test_steps_and_squares() -> None:
    img, box, r = pt.Input("img", "uint8", ndim=2), pt.Func("box"), window(7, 9)
    read = pt.cast("int32", pt.edge(img)[2 * Y + r.y - 3, X // 2 + r.x])
    box[Y, X] = pt.sum(read * read, over=r)
    p = pt.Pipeline(box, shape=(20, 50))
    assert stages(p) == ["box_rows", "box"]
    assert agrees(p)


def test_three_loops_become_three_stages() -> None:
    x, y, z = pt.vars("x y z")
    img, box, r = pt.Input("img", "int32", ndim=3), pt.Func("box"), pt.RDom((0, 5), (0, 6), (0, 7), names="z y x")
    box[z, y, x] = pt.sum(img[z + r.z, y + r.y, x + r.x], over=r)
    p = pt.Pipeline(box, shape=(4, 10, 20))
    assert stages(p) == ["box_rows", "box_rows1", "box"] or stages(p) == ["box_rows1", "box_rows", "box"]
    data = np.random.default_rng(0).integers(-(2**31), 2**31, (8, 15, 26), np.int32)
    np.testing.assert_array_equal(p(img=data), p.reference(img=data))


def test_channels_come_first() -> None:
    """A loop that moves nothing may come first, if the others do."""
    img, box = pt.Input("img", "uint8", shape=(None, None, 3)), pt.Func("box")
    r = pt.RDom((0, 3), (0, 3), (0, 3), names="y x c")
    box[Y, X] = pt.sum(img[Y + r.y, X + r.x, r.c], over=r)
    p = pt.Pipeline(box, shape=(10, 20))
    assert stages(p) == ["box_rows", "box"]
    data = np.random.default_rng(0).integers(0, 256, (12, 22, 3), np.uint8)
    np.testing.assert_array_equal(p(img=data), p.reference(img=data))


def kept() -> dict[str, pt.Func]:
    """Windows that are none."""
    img, r = pt.edge(pt.Input("img", "int32", ndim=2)), window(9, 9)
    found = {}

    def case(name: str, value: pt.Expr, over: pt.RDom = r) -> None:
        found[name] = pt.Func("box")
        found[name][Y, X] = pt.sum(value, over=over)

    case("a condition", img[Y + r.y, X + r.x], r.where(r.y != r.x))
    case("a loop beside the index", img[Y + r.y, X + r.x] * (r.y * r.y + r.x))
    case("a coordinate beside the index", img[Y + r.y, X + r.x] * (Y + X))
    case("both loops in one index", img[Y + r.y + r.x, X + r.x])
    case("another step", img[Y + 2 * r.y, X + 2 * r.x])
    case("two distances", img[Y + r.y, X + r.x] - img[2 * Y + r.y, 2 * X + r.x])
    return found


@pytest.mark.parametrize("name", kept())
def test_other_reductions_are_kept(name: str) -> None:
    p = pt.Pipeline(kept()[name], shape=(40, 50))
    assert stages(p) == ["box"]
    assert agrees(p)
