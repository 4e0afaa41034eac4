"""When results count as the same."""

from __future__ import annotations

import numpy as np

from pantile.bench.agreement import disagreement, inner

ROUNDING = 1e-5


def test_integers_agree_exactly() -> None:
    a = np.arange(6, dtype=np.uint16).reshape(2, 3)
    b = a.copy()
    assert disagreement([b], [a], ROUNDING) is None
    b[1, 0] = 9
    assert disagreement([b], [a], ROUNDING) == "9 instead of 3 at [1, 0]; 1 of 6 elements differ"


def test_floats_agree_up_to_rounding_of_the_largest() -> None:
    a = np.array([0.0, 100.0, np.nan, np.inf], dtype=np.float32)
    assert disagreement([a + np.float32(0.5 * ROUNDING * 100)], [a], ROUNDING) is None
    text = disagreement([a + np.float32(2 * ROUNDING * 100)], [a], ROUNDING)
    assert text is not None and text.endswith("at [0]; 2 of 4 elements differ")


def test_nan_is_no_number() -> None:
    assert (
        disagreement([np.array([np.nan])], [np.array([1.0])], ROUNDING)
        == "nan instead of 1.0 at [0]; 1 of 1 elements differ"
    )


def test_shapes_types_and_numbers_of_outputs() -> None:
    a = np.zeros((2, 3), np.float32)
    assert disagreement([a.T], [a], ROUNDING) == "float32[3, 2] instead of float32[2, 3]"
    assert disagreement([a.astype(np.float64)], [a], ROUNDING) == "float64[2, 3] instead of float32[2, 3]"
    assert disagreement([a, a], [a], ROUNDING) == "2 outputs instead of 1"
    assert disagreement([a[:0]], [a[:0]], ROUNDING) is None


def test_integers_may_be_off_by_what_an_app_allows() -> None:
    a, b = np.array([0, 255, 7], np.uint8), np.array([1, 254, 7], np.uint8)
    assert disagreement([b], [a], ROUNDING, off_by=1) is None
    text = disagreement([np.array([2, 255, 7], np.uint8)], [a], ROUNDING, off_by=1)
    assert text == "2 instead of 0 at [0]; 1 of 3 elements differ"


def test_only_rows_and_columns_at_edges_are_left_out() -> None:
    a, b = np.zeros((7, 9, 3), np.uint8), np.zeros((7, 9, 3), np.uint8)
    b[1], b[-2], b[:, 1], b[:, -2] = 1, 1, 1, 1
    assert disagreement(inner([b], 2), inner([a], 2), ROUNDING) is None
    assert inner([a], 2)[0].shape == (3, 5, 3) and inner([a], 0)[0] is a
    b[2, 2, 0] = 1
    assert disagreement(inner([b], 2), inner([a], 2), ROUNDING) is not None
