"""Tables: arrays that are constants of a pipeline."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Const

Y, X = pt.vars("y x")
IMG = pt.Input("img", "uint8", 2)
PHOTO = np.random.default_rng(0).integers(0, 256, (37, 53), dtype=np.uint8)
CURVE = np.linspace(0, 1, 256, dtype=np.float32) ** 2
KERNEL = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.uint16)


def weighted(strategy: str | None = None) -> pt.Pipeline:
    curve, kernel, src = pt.table(CURVE), pt.table(KERNEL, "kernel"), pt.edge(IMG)
    r = pt.RDom((0, 3), (0, 3), names="y x")
    f = pt.Func("f")
    f[Y, X] = curve[IMG[Y, X]] + pt.sum(kernel[r.y, r.x] * src[Y + r.y - 1, X + r.x - 1], over=r) / 16
    return pt.Pipeline(f, schedule=strategy)


@pytest.mark.parametrize("strategy", [None, "greedy", "posttile", "dp"])
def test_tables_are_read_like_inputs(strategy: str | None) -> None:
    p = weighted(strategy)
    padded = np.pad(PHOTO.astype(np.float64), 1, mode="edge")
    sums = sum(KERNEL[i, j] * padded[i : i + 37, j : j + 53] for i in range(3) for j in range(3))
    expected = CURVE[PHOTO] + sums / 16
    np.testing.assert_allclose(p(img=PHOTO), expected, rtol=1e-5)
    np.testing.assert_allclose(p.reference(img=PHOTO), expected, rtol=1e-5)


def test_nobody_passes_a_table() -> None:
    p = weighted()
    assert repr(p) == "<Pipeline f(img: uint8[:, :]) -> f: float32[:, :]>"
    assert "table table: float32[256]" in str(p)
    assert "table kernel: uint16[3, 3]" in str(p)
    p.compile(img=(100, 120))
    assert p.work(img=(100, 120)).bytes > 256 * 4


def test_a_table_is_a_copy_that_keeps_its_type() -> None:
    array = np.arange(256, dtype=np.int16)[::-1]
    table = pt.table(array)
    f = pt.Func("f")
    f[Y, X] = table[IMG[Y, X]]
    p = pt.Pipeline(f)
    expected = array[PHOTO]
    array[:] = 0
    result = p(img=PHOTO)
    assert result.dtype == np.int16
    np.testing.assert_array_equal(result, expected)
    assert not table.array.flags.writeable


def test_other_byte_orders_and_lists() -> None:
    f = pt.Func("f")
    f[Y, X] = pt.table(CURVE.astype(">f4"))[IMG[Y, X]] * pt.table([True, False])[X % 2]
    expected = CURVE[PHOTO] * (np.arange(53) % 2 == 0)
    np.testing.assert_array_equal(pt.Pipeline(f)(img=PHOTO), expected)


def test_constant_places_are_constants() -> None:
    e = pt.table(KERNEL)[1, np.int64(1)]
    assert isinstance(e, Const)
    assert (e.dtype.name, e.value) == ("uint16", 4)


def test_a_boundary_condition_of_a_table() -> None:
    f = pt.Func("f")
    f[X] = pt.mirror(pt.table(CURVE))[X - 3]
    result = pt.Pipeline(f, shape=(262,))()
    np.testing.assert_array_equal(result, np.pad(CURVE, 3, mode="reflect"))


def test_pipelines_of_other_values_share_code_but_not_values() -> None:
    def scaled(values: np.ndarray) -> pt.Pipeline:
        f = pt.Func("f")
        f[Y, X] = pt.table(values)[IMG[Y, X]]
        return pt.Pipeline(f)

    first, second = scaled(CURVE), scaled(CURVE + 1)
    np.testing.assert_array_equal(first(img=PHOTO), CURVE[PHOTO])
    np.testing.assert_array_equal(second(img=PHOTO), (CURVE + 1)[PHOTO])


def test_an_output_does_not_take_its_shape_from_a_table() -> None:
    f = pt.Func("f")
    f[X] = pt.table(CURVE)[X]
    with pytest.raises(pt.UserError, match=r"the shape of output Func 'f' .* is not known"):
        pt.Pipeline(f)
