"""Every operation on edge values of every type, against Python's own numbers."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from pantile.expr.nodes import ARITHMETIC, BITWISE, COMPARISON, FIXED_POINT, FLOATING, OPS, SELECT
from pantile.expr.types import ALL, BFLOAT16, BOOL, FLOAT32, FLOAT64, INT8, UINT8, DType
from pantile.reference.operations import (
    TABLE,
    apply,
    convert,
    from_bfloat_bits,
    held,
    reinterpret,
    rounded,
    to_bfloat_bits,
)

from . import oracle

INTEGERS = [t for t in ALL if t.is_int]
FLOATS = [t for t in ALL if t.is_float]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 3.5, -2.5, 1e-30, 1e30, 65519.0, 127.5, -128.9, 1e-45]
SPECIAL += [math.inf, -math.inf, math.nan]


def edge_values(t: DType) -> list[float]:
    if t.is_bool:
        return [False, True]
    if t.is_float:
        with np.errstate(over="ignore"):
            return [oracle.fit(v, t) for v in SPECIAL]
    return sorted({t.min, t.min + 1, t.max // 3, t.max - 1, t.max, 0, 1, 2, 3, 7, max(t.min, -1), max(t.min, -3)})


def cases(op: str) -> list[DType]:
    if op in FIXED_POINT or op in ("shl", "shr", "popcount"):
        return INTEGERS
    if op in FLOATING:
        return FLOATS
    if op in BITWISE:
        return [*INTEGERS, BOOL]
    return [*INTEGERS, *FLOATS] if op in ARITHMETIC else list(ALL)


def arguments(op: str, t: DType) -> list[tuple[float, ...]]:
    values = edge_values(t)
    if op in ("mul_shift", "rounding_mul_shift"):
        return list(product(values, values, [0, 1, 5, t.bits - 1]))
    if op in SELECT:
        return list(product([False, True], values, values))
    return list(product(values, repeat=OPS[op]))


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit for bit; any NaN equals any NaN."""
    if a.dtype != b.dtype:
        return False
    if a.dtype.kind == "f":
        signs = [np.signbit(v) & ~np.isnan(v) for v in (a, b)]
        return np.array_equal(a, b, equal_nan=True) and np.array_equal(*signs)
    return np.array_equal(a, b)


def as_array(values: list[float], t: DType) -> np.ndarray:
    return np.array(values, dtype=object).astype(held(t))


def test_every_operation_has_a_meaning() -> None:
    assert set(TABLE) == set(OPS)


ELSEWHERE = ("fma", "within")


@pytest.mark.parametrize(("op", "t"), [(op, t) for op in OPS if op not in ELSEWHERE for t in cases(op)], ids=str)
def test_operation(op: str, t: DType) -> None:
    points = arguments(op, t)
    types = [BOOL, t, t] if op in SELECT else [t] * OPS[op]
    columns = [as_array(list(c), of) for c, of in zip(zip(*points, strict=True), types, strict=True)]
    result_type = BOOL if op in COMPARISON else DType("uint", t.bits) if op == "absd" and t.is_int else t
    with np.errstate(all="ignore"):
        found = apply(op, t, *columns)
        expected = as_array([oracle.apply(op, t, list(p)) for p in points], result_type)
    assert equal(found, expected)


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("to", ALL, ids=str)
def test_conversion(source: DType, to: DType) -> None:
    values = edge_values(source)
    with np.errstate(all="ignore"):
        found = convert(as_array(values, source), source, to)
        expected = as_array([oracle.cast(v, source, to) for v in values], to)
    assert equal(found, expected)


@pytest.mark.parametrize("op", ["add", "min", "floordiv", "shl", "shr", "abs", "neg"])
def test_scalars_wrap_like_arrays(op: str) -> None:
    with np.errstate(all="ignore"):
        low = apply(op, INT8, *[np.asarray(-128, np.int8)] * OPS[op])
    assert low.dtype == np.int8
    assert low == oracle.apply(op, INT8, [-128] * OPS[op])


def test_bfloat16_rounds_to_nearest_even() -> None:
    assert to_bfloat_bits(np.float32([1.0, 1.00390625, 1.01171875, -0.0, np.inf])).tolist() == [
        0x3F80,
        0x3F80,
        0x3F82,
        0x8000,
        0x7F80,
    ]
    bits = np.arange(1 << 16, dtype=np.uint16)
    back = to_bfloat_bits(from_bfloat_bits(bits))
    nan = np.isnan(from_bfloat_bits(bits))
    assert np.array_equal(back[~nan], bits[~nan])
    assert np.array_equal(back[nan], bits[nan] | 0x40)


def test_float64_rounds_to_bfloat16_once() -> None:
    just_above_a_tie = 1 + 2.0**-8 + 2.0**-40  # rounding to float32 first would lose what breaks the tie
    assert rounded(np.float64([just_above_a_tie]), BFLOAT16) == 1 + 2.0**-7


def test_reinterpretation() -> None:
    assert reinterpret(np.float32([1.0]), FLOAT32, DType("uint", 32)) == 0x3F800000
    assert reinterpret(np.float32([1.0]), BFLOAT16, DType("int", 16)) == 0x3F80
    assert reinterpret(np.uint16([0x4000]), DType("uint", 16), BFLOAT16) == 2.0
    assert reinterpret(np.uint8([200]), UINT8, INT8) == -56


def test_fused_multiply_add_rounds_once() -> None:
    a = np.float32([1 + 2.0**-12, 1 + 2.0**-23, 3.0, -0.0, np.inf])
    c = np.float32([2.0**-80, -1.0, 4.0, 0.0, 1.0])
    found = apply("fma", FLOAT32, a, a, c)
    exact = [1 + 2.0**-11 + 2.0**-23, 2.0**-22, 13.0, 0.0, np.inf]
    assert np.array_equal(found, np.float32(exact))
    big = np.float64([1 + 2.0**-52])
    assert apply("fma", FLOAT64, big, big, -big) == 2.0**-52 + 2.0**-104
    assert apply("fma", BFLOAT16, np.float32([3.0]), np.float32([0.5]), np.float32([2.0**-20])) == 1.5
