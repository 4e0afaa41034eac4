"""NumPy's functions and scalars in expressions: what they mean, and that they mean the same as on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr
from pantile.expr.numpy_functions import FUNCTIONS, UFUNCS
from pantile.lang.build import build
from pantile.reference import evaluate

X = pt.Var("x")
FLOATS, WHOLE = pt.Input("floats", "float32", 1), pt.Input("whole", "int32", 1)
A, B = FLOATS[X], WHOLE[X]
floats = np.concatenate([np.linspace(-0.9, 0.9, 37), [-2.5, 2.5, 7, -8.25, 0.0]]).astype(np.float32)
whole = (np.arange(len(floats)) - 9).astype(np.int32)

ON_INTEGERS = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.invert,
               getattr(np, "bitwise_count", None)}  # fmt: skip


def value(e: Any) -> np.ndarray:
    f = pt.Func("f")
    f[X] = e + 0 * A if e.dtype.is_float else pt.select(A == A, e, e)
    given = {i.name: {"floats": floats, "whole": whole}[i.name] for i in build(f, (len(floats),)).inputs}
    result: np.ndarray = evaluate(build(f, (len(floats),)), given, {})[0]
    return result


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_every_ufunc_means_the_same_as_on_arrays(ufunc: np.ufunc) -> None:
    (a, array) = (B, whole) if ufunc in ON_INTEGERS else (A, floats)
    second = (3, 3) if ufunc in ON_INTEGERS else (A * 2 + 1, floats * 2 + 1)
    with np.errstate(all="ignore"):
        if ufunc.nin == 1:
            got, expected = value(ufunc(a)), ufunc(array)
        else:
            got, expected = value(ufunc(a, second[0])), ufunc(array, second[1])
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda a, i: np.where(a > 0.5, a, i),
    lambda a, i: np.where(i, a, -a),
    lambda a, i: np.clip(a, -0.5, 0.25),
    lambda a, i: np.clip(i, None, 5),
    lambda a, i: np.clip(a, a_min=0, a_max=None),
    lambda a, i: np.round(a),
    lambda a, i: np.around(4 * a, 0),
    lambda a, i: np.fix(a),
    lambda a, i: np.select([a > 0.5, a > 0], [a, 2 * a], default=-1),
    lambda a, i: np.logical_and(i, a > 0),
    lambda a, i: np.float32(2) * a - np.float64(0.5) / (a + np.array(3.0)),
    lambda a, i: np.float64(0.5) < a,
    lambda a, i: np.int64(7) // (i * i + np.int8(1)),
    lambda a, i: np.power(a, np.int64(3)) + a ** np.int8(2),
    lambda a, i: abs(i) + np.abs(i),
]


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # from NumPy 2.5 on
@pytest.mark.parametrize("call", CALLS)
def test_other_functions_and_scalars_mean_the_same_as_on_arrays(call: Callable[[Any, Any], Any]) -> None:
    np.testing.assert_allclose(value(call(A, B)), call(floats, whole), rtol=1e-5, atol=1e-6)


def test_every_function_of_the_table_is_tried() -> None:
    assert {f.__name__ for f in FUNCTIONS} == {"where", "clip", "round", "around", "fix", "select"}


def test_rounding_of_python() -> None:
    for got, expected in (
        (round(A), np.rint),
        (math.floor(A), np.floor),
        (math.ceil(A), np.ceil),
        (math.trunc(A), np.trunc),
    ):
        np.testing.assert_array_equal(value(got), expected(floats))


U8, F16, F64 = (pt.Input(f"in_{t}", t, 1)[X] for t in ("uint8", "float16", "float64"))
KERNEL = np.linspace(0, 1, 7).reshape(7, 1)  # as cv2.getGaussianKernel gives it


@pytest.mark.parametrize(
    ("e", "dtype"),
    [
        (KERNEL[2] * A, "float32"), (A * KERNEL[2], "float32"), (KERNEL[2, 0] * A, "float32"),
        (np.array(0.5) * F16, "float16"), (KERNEL[2] * U8, "float32"), (np.float64(2) * F64, "float64"),
        (np.int64(3) * U8, "uint8"), (np.uint8(3) * B, "int32"), (pt.clamp(U8, np.int64(3), np.int32(9)), "uint8"),
        (pt.select(A > 0, KERNEL[0], KERNEL[1]) * A, "float32"), (pt.select(A > 0, np.uint8(1), np.uint8(2)), "uint8"),
        (pt.lerp(F16, F16, np.float64(0.5)), "float16"), (pt.case((A > 0, np.float64(2)), otherwise=A), "float32"),
        (pt.within(B, np.int64(0), np.int64(9)), "int32"), (pt.cast("float64", 0.1) * A, "float64"),
        (pt.mul_shift(U8, np.int64(3), np.int64(2)), "uint8"), (np.float64(1) + np.float32(2) * A, "float32"),
    ],
)  # fmt: skip
def test_scalars_are_weak(e: Expr, dtype: str) -> None:
    assert e.dtype.name == dtype


def test_a_cast_number_is_exact() -> None:
    f = pt.Func("f")
    f[X] = pt.cast("float64", 0.1)
    assert evaluate(build(f, (1,)), {}, {})[0][0] == 0.1


def test_expressions_fill_arrays_of_objects() -> None:
    mixed = np.array([[0.5, 0.25]]) @ np.array([A, B])
    assert mixed.shape == (1,)
    assert mixed[0].dtype.name == "float32"


def test_mean() -> None:
    r = pt.RDom((0, FLOATS.shape[0]))
    for e, array in ((FLOATS[r[0]], floats), (WHOLE[r[0]], whole)):
        f = pt.Func("f")
        f[X] = pt.mean(e, over=r)
        name = "floats" if array is floats else "whole"
        extra = {} if array is floats else {"floats": floats}
        got = evaluate(build(f, (1,)), {name: array, **extra}, {})[0]
        assert got.dtype == np.float32
        np.testing.assert_allclose(got[0], array.mean(), rtol=1e-5)


def test_mean_of_chosen_points() -> None:
    r = pt.RDom((0, FLOATS.shape[0]))
    f = pt.Func("f")
    f[X] = pt.mean(FLOATS[r[0]], over=r.where(FLOATS[r[0]] > 0))
    p = pt.Pipeline(f, shape=(1,))
    np.testing.assert_allclose(p(floats=floats)[0], floats[floats > 0].mean(), rtol=1e-5)
    assert np.isnan(p(floats=-np.abs(floats))[0])
