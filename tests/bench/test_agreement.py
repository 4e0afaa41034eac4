"""When results count as the same."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.bench.agreement import disagreement, inner

EPSILON = float(np.finfo(np.float32).eps)
EXACT, ROUNDED, STEPPED = pt.Rounding(), pt.Rounding(EPSILON), pt.Rounding(EPSILON, has_steps=True)
DIGITS = EPSILON**0.6


def test_integers_of_integers_agree_exactly() -> None:
    a = np.arange(6, dtype=np.uint16).reshape(2, 3)
    b = a.copy()
    assert disagreement([b], [a], [EXACT]) is None
    b[1, 0] = 4
    assert disagreement([b], [a], [EXACT]) == "4 instead of 3 at [1, 0]; 1 of 6 elements differ"


def test_floats_agree_up_to_rounding_of_the_largest() -> None:
    a = np.array([0.0, 100.0, np.nan, np.inf], dtype=np.float32)
    assert disagreement([a + np.float32(0.5 * DIGITS * 100)], [a], [ROUNDED]) is None
    assert disagreement([a + np.float32(1.2e-5 * 100)], [a], [ROUNDED]) is None  # as two elements of vgg16 do
    text = disagreement([a + np.float32(2 * DIGITS * 100)], [a], [ROUNDED])
    assert text is not None and text.endswith("at [0]; 2 of 4 elements differ")
    assert disagreement([a + np.float32(2 * DIGITS * 100)], [a], [ROUNDED], tolerance=1e-3) is None


def test_the_coarsest_type_that_takes_part_decides() -> None:
    a = np.array([0.0, 1.0])
    assert disagreement([a + 1e-6], [a], [ROUNDED]) is None
    assert disagreement([a + 1e-6], [a], [pt.Rounding(float(np.finfo(np.float64).eps))]) is not None
    assert disagreement([a + 1e-2], [a], [pt.Rounding(float(np.finfo(np.float16).eps))]) is None


def test_strict_floats_agree_exactly() -> None:
    a = np.array([1.0, np.nan, np.inf], np.float32)
    assert disagreement([a.copy()], [a], [EXACT]) is None
    assert disagreement([a * np.float32(1 + EPSILON)], [a], [EXACT]) is not None


def test_nan_is_no_number() -> None:
    assert (
        disagreement([np.array([np.nan])], [np.array([1.0])], [ROUNDED])
        == "nan instead of 1.0 at [0]; 1 of 1 elements differ"
    )


def test_shapes_types_and_numbers_of_outputs() -> None:
    a = np.zeros((2, 3), np.float32)
    assert disagreement([a.T], [a], [ROUNDED]) == "float32[3, 2] instead of float32[2, 3]"
    assert disagreement([a.astype(np.float64)], [a], [ROUNDED]) == "float64[2, 3] instead of float32[2, 3]"
    assert disagreement([a, a], [a], [ROUNDED]) == "2 outputs instead of 1"
    assert disagreement([a[:0]], [a[:0]], [ROUNDED]) is None


def test_integers_may_be_off_by_what_an_app_allows() -> None:
    a, b = np.array([0, 255, 7], np.uint8), np.array([1, 254, 7], np.uint8)
    assert disagreement([b], [a], [EXACT], off_by=1) is None
    text = disagreement([np.array([2, 255, 7], np.uint8)], [a], [EXACT], off_by=1)
    assert text == "2 instead of 0 at [0]; 1 of 3 elements differ"


@pytest.mark.parametrize("dtype", [np.uint8, bool])
def test_a_tenth_of_the_integers_that_are_made_of_floats_may_be_off_by_one(dtype: type) -> None:
    a = np.zeros(1000, dtype)
    b = a.copy()
    b[:100] = 1
    assert disagreement([b], [a], [STEPPED]) is None and disagreement([b], [a], [EXACT]) is not None
    b[:101] = 1
    assert disagreement([b], [a], [STEPPED]) == f"{b[0]} instead of {a[0]} at [0]; 101 of 1000 elements differ"


def test_counts_of_floats_differ_as_floats_would() -> None:
    a = np.array([1_000_000, 3], np.int32)
    b = a + np.array([40, -40], np.int32)
    assert disagreement([b], [a], [STEPPED]) is None and disagreement([b], [a], [EXACT]) is not None
    assert disagreement([a + np.array([200, 0], np.int32)], [a], [STEPPED]) is not None


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_one_of_ten_thousand_just_at_a_step_may_be_on_its_other_side(dtype: type) -> None:
    a = np.zeros((100, 200), dtype)
    b = a.copy()
    b[3, 4], b[5, 6] = 200, 100
    assert disagreement([b], [a], [STEPPED]) is None
    assert disagreement([b], [a], [EXACT]) is not None
    b[7, 8] = 50
    assert disagreement([b], [a], [STEPPED]) == f"{b[3, 4]} instead of {a[3, 4]} at [3, 4]; 3 of 20000 elements differ"


def test_floats_without_steps_all_agree() -> None:
    a = np.zeros((100, 200), np.float32)
    b = a.copy()
    b[3, 4] = 1
    assert disagreement([b], [a], [ROUNDED]) is not None


def test_only_rows_and_columns_at_edges_are_left_out() -> None:
    a, b = np.zeros((7, 9, 3), np.uint8), np.zeros((7, 9, 3), np.uint8)
    b[1], b[-2], b[:, 1], b[:, -2] = 1, 1, 1, 1
    assert disagreement(inner([b], 2), inner([a], 2), [EXACT]) is None
    assert inner([a], 2)[0].shape == (3, 5, 3) and inner([a], 0)[0] is a
    b[2, 2, 0] = 1
    assert disagreement(inner([b], 2), inner([a], 2), [EXACT]) is not None
