"""Arithmetic in 16 bits: only where nothing wraps, and with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt

X = pt.Var("x")
BYTES = np.array([0, 1, 2, 3, 7, 127, 128, 129, 200, 254, 255] * 8, np.uint8)
Value = Callable[[Any, Any], Any]


def pipeline(value: Value, dtype: str = "uint8", wide: str = "int32") -> pt.Pipeline:
    a, b, f = pt.Input("a", dtype, 1), pt.Input("b", dtype, 1), pt.Func("f")
    f[X] = value(pt.cast(wide, a[X]), pt.cast(wide, b[X]))
    return pt.Pipeline(f)


FITTING: dict[str, Value] = {
    "sum": lambda a, b: (a + b + 1) // 2,
    "difference": lambda a, b: pt.clamp(a - b, 0, 255),
    "product": lambda a, b: (a * 128 + b * 127) >> 8,
    "negative": lambda a, b: -a - b,
    "quotient": lambda a, b: (a - b) // 3 + (a - b) % 7,
    "magnitude": lambda a, b: abs(a - b) * 2,
    "choice": lambda a, b: pt.select(a < b, a * 3, b - 5),
    "far shift": lambda a, b: ((a - b) >> 20) + ((a + b) >> 16),
    "float": lambda a, b: pt.cast("float32", a - b) * 0.5,
    "wider": lambda a, b: pt.cast("int64", a + b) * 1_000_000_007,
    "wrapped": lambda a, b: pt.cast("uint8", a - b),
}
TOO_LARGE: dict[str, Value] = {
    "product": lambda a, b: (a * a + b * b) // 2,
    "constant": lambda a, b: a + 65536 - b,
    "mixed": lambda a, b: a * 256 - b * 2,
    "division": lambda a, b: a // (b + 70000),
}


def assert_agrees(p: pt.Pipeline, left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> None:
    a, b = (m.ravel() for m in np.meshgrid(left, right))
    assert (p(a=a, b=b) == p.reference(a=a, b=b)).all()


@pytest.mark.parametrize("name", FITTING)
def test_small_numbers(name: str) -> None:
    p = pipeline(FITTING[name])
    assert "int16" in p.loops()
    assert_agrees(p, BYTES, np.arange(256, dtype=np.uint8))


@pytest.mark.parametrize("name", TOO_LARGE)
def test_numbers_that_may_be_larger_stay(name: str) -> None:
    p = pipeline(TOO_LARGE[name])
    assert "int32" in p.loops()
    assert_agrees(p, BYTES, np.arange(256, dtype=np.uint8))


@pytest.mark.parametrize(
    ("dtype", "wide"), [("int8", "int32"), ("int16", "int32"), ("uint16", "uint32"), ("int8", "int64")]
)
@pytest.mark.parametrize("name", [*FITTING])
def test_other_types(name: str, dtype: str, wide: str) -> None:
    p = pipeline(FITTING[name], dtype, wide)
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, -129, -128, -1, 0, 1, 127, 128, 255, info.max - 1, info.max]
    values = np.array([v for v in ends if info.min <= v <= info.max] * 9, dtype)
    assert_agrees(p, values, values)


def test_negative_numbers_of_an_unsigned_type_wrap() -> None:
    """The cast of a user is no extension: what it makes of -1 needs 32 bits."""
    a, f = pt.Input("a", "int8", 1), pt.Func("f")
    f[X] = pt.cast("uint32", a[X]) // 3 + 1
    p = pt.Pipeline(f)
    values = np.arange(-128, 128).astype(np.int8)
    assert (p(a=values) == p.reference(a=values)).all()


def test_sums_of_bytes_are_narrow() -> None:
    a, f = pt.Input("a", "uint8", 1), pt.Func("f")
    r = pt.RDom((0, 9))
    f[X] = pt.cast("uint8", pt.sum(a[X + r[0]], over=r) // 9)
    p = pt.Pipeline(f, (a.shape[0] - 8,))
    assert "uint16" in p.loops() and "uint32" not in p.loops()
    assert (p(a=BYTES) == p.reference(a=BYTES)).all()
