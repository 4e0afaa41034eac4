"""Element-wise functions: types of results, weak numbers, and values on the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Const, Expr
from pantile.lang.build import build
from pantile.reference import evaluate

X = pt.Var("x")
U8, I8, U16, I16, I32, F16, F32, F64 = (
    pt.Input(f"in_{t}", t, 1)[X] for t in ("uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64")
)


def value(e: Any, **arrays: np.ndarray) -> np.ndarray:
    """What the reference computes for `e` over the length of the arrays."""
    f = pt.Func("f")
    f[X] = e
    length = len(next(iter(arrays.values()))) if arrays else 1
    result: np.ndarray = evaluate(build(f, (length,)), arrays, {})[0]
    return result


@pytest.mark.parametrize(
    ("e", "dtype"),
    [
        (U8 + 1, "uint8"), (U8 + 1.5, "float32"), (F16 * 2, "float16"), (F16 + U16, "float16"), (F64 * 0.5, "float64"),
        (U8 / 2, "float32"), (U8 + I8, "int16"), (U8 + U16, "uint16"), (I32 // 2, "int32"), (U8 > 3, "bool"),
        (np.float32(2) * F16, "float16"), (np.int16(2) * U8, "uint8"), (2 * F64, "float64"), (X + 1, "int32"),
        (pt.popcount(U8), "uint8"), (pt.popcount(I32), "int32"), (pt.cbrt(I32), "float32"), (pt.cbrt(F64), "float64"),
        (pt.sqrt(U8), "float32"), (pt.sqrt(F16), "float16"), (pt.floor(U8), "uint8"), (U8**2, "uint8"),
        (F32**2, "float32"), (I32**-1, "float32"), (F32**0.5, "float32"), (pt.pow(U8, F32), "float32"),
        (pt.select(U8 > 3, 1, 0), "int32"), (pt.select(U8 > 3, U8, 0), "uint8"), (pt.clamp(U8, 1, 9), "uint8"),
        (pt.case((X < 1, U8), (X < 2, 255), otherwise=0), "uint8"), (pt.case((X < 1, U8), otherwise=0.5), "float32"),
        (pt.within(U8, 0, 9), "uint8"), (pt.within(U8, 0, X), "int32"), (pt.lerp(F16, F16, 0.25), "float16"),
        (pt.lerp(U8, U8, F32), "float32"), (pt.absd(I16, I16), "uint16"), (pt.absd(F32, 1), "float32"),
        (pt.halving_add(U8, 3), "uint8"), (pt.saturating_add(I8, U8), "int16"), (pt.mul_shift(I16, I16, 15), "int16"),
        (pt.bits("int16", U16), "int16"), (pt.cast("bfloat16", F32), "bfloat16"), (pt.abs(U8), "uint8"),
        (abs(I16), "int16"), (pt.saturating_cast("uint8", I32), "uint8"), (pt.rounding_cast("int16", F32), "int16"),
    ],
)  # fmt: skip
def test_types(e: Expr, dtype: str) -> None:
    assert e.dtype.name == dtype


def test_casts() -> None:
    ints = np.array([-300, -1, 0, 200, 255, 256, 70000], dtype=np.int32)
    assert value(pt.cast("uint8", I32), in_int32=ints).tolist() == [212, 255, 0, 200, 255, 0, 112]
    assert value(pt.saturating_cast("uint8", I32), in_int32=ints).tolist() == [0, 0, 0, 200, 255, 255, 255]
    assert value(pt.saturating_cast("int8", U8), in_uint8=np.array([3, 200], np.uint8)).tolist() == [3, 127]
    floats = np.array([-1.7, 0.5, 1.5, 2.7, 300, np.nan], dtype=np.float32)
    assert value(pt.cast("uint8", F32), in_float32=floats).tolist() == [0, 0, 1, 2, 255, 0]
    assert value(pt.rounding_cast("uint8", F32), in_float32=floats).tolist() == [0, 0, 2, 3, 255, 0]


def test_the_first_case_that_holds_wins() -> None:
    e = pt.case((X < 2, 10), ((X >= 1) & (X < 4), 20), otherwise=-1)
    f = pt.Func("f")
    f[X] = e
    assert evaluate(build(f, (6,)), {}, {})[0].tolist() == [10, 10, 20, 20, -1, -1]


def test_powers_multiply() -> None:
    ints = np.array([-3, 2, 7], dtype=np.int32)
    for n in range(1, 10):
        np.testing.assert_array_equal(value(I32**n, in_int32=ints), ints**n)


def test_fixed_point() -> None:
    a = np.array([0, 255, 254, 100], dtype=np.uint8)
    assert value(pt.halving_add(U8, 255), in_uint8=a).tolist() == [127, 255, 254, 177]
    assert value(pt.rounding_halving_add(U8, 255), in_uint8=a).tolist() == [128, 255, 255, 178]
    assert value(pt.saturating_sub(U8, 101), in_uint8=a).tolist() == [0, 154, 153, 0]
    assert value(pt.rounding_mul_shift(U8, 3, 2), in_uint8=a).tolist() == [0, 191, 191, 75]


def test_numbers_alone_fold() -> None:
    assert isinstance(pt.minimum(3, 4), Const)
    assert isinstance(pt.cast("uint8", 3), Const)


def test_set_bits_are_counted_in_twos_complement() -> None:
    ints = np.array([0, 1, 255, -1, -(2**31), 2**31 - 1], np.int32)
    assert value(pt.popcount(I32), in_int32=ints).tolist() == [0, 1, 8, 32, 1, 31]
    assert value(pt.popcount(I8), in_int8=np.array([-1, -128, 127], np.int8)).tolist() == [8, 1, 7]
    for number, count in ((-1, 32), (255, 8)):
        constant = pt.popcount(number)
        assert isinstance(constant, Const) and constant.value == count


def test_cube_roots_keep_their_sign() -> None:
    floats = np.array([27, -8, 0, -0.0, np.inf, -1e-30], np.float32)
    np.testing.assert_allclose(value(pt.cbrt(F32), in_float32=floats), [3, -2, 0, -0.0, np.inf, -1e-10], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint64"])
@pytest.mark.parametrize("target", [None, "cuda-sim"])
def test_set_bits_are_counted_by_compiled_code(dtype: str, target: str | None) -> None:
    img, f = pt.Input("img", dtype, 1), pt.Func("f")
    squares = pt.table(np.arange(np.iinfo(dtype).bits + 1) ** 2)  # as many as there are counts
    f[X] = (pt.popcount(img[X] ^ img[0]), squares[pt.popcount(img[X])])
    p = pt.Pipeline(f, shape=img.shape, schedule="plain", target=target)
    info = np.iinfo(dtype)
    given = np.random.default_rng(0).integers(info.min, info.max, 67, dtype, endpoint=True)
    for got, expected in zip(p(img=given), p.reference(img=given), strict=True):
        np.testing.assert_array_equal(got, expected)
