"""Weights that are a column times a row."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.algebra.weighted_sums import rank_one

from .examples import X, Y, agrees, stages, weighted

BINOMIAL = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1])


def test_factors_of_integers() -> None:
    assert rank_one([[2, 4], [3, 6]], 0) == ([2, 3], [1, 2])
    assert rank_one([[0, 0], [3, -6]], 0) == ([0, 3], [1, -2])
    assert rank_one([[1, 2], [2, 5]], 0) is None
    assert rank_one([[2, 3], [3, 4]], 0) is None
    assert rank_one([[0, 0], [0, 0]], 0) is None


def test_factors_of_floats() -> None:
    column, row = np.random.default_rng(0).random((2, 9))
    weights = np.outer(column, row).astype(np.float32).tolist()
    found = rank_one(weights, 2.0**-23)
    assert found is not None and abs(sum(found[1]) - 1) < 1e-12
    np.testing.assert_allclose(np.outer(*found), weights, rtol=1e-6)
    weights[3][4] *= 1 + 1e-5
    assert rank_one(weights, 2.0**-23) is None
    assert rank_one([[1.0, float("nan")], [1.0, 2.0]], 2.0**-23) is None


def test_a_table_of_floats() -> None:
    p = weighted((BINOMIAL / 256).astype(np.float32))
    assert stages(p) == ["out_rows", "out"]
    assert agrees(p, 1e-5)
    assert stages(p.with_options(strict=True)) == ["out"]


def test_a_table_of_integers_wraps_as_it_did() -> None:
    p = weighted(BINOMIAL.astype(np.int32) * 1000003, "int32", strict=True)
    assert stages(p) == ["out_rows", "out"]
    assert agrees(p)


def test_other_tables_are_kept() -> None:
    weights = BINOMIAL.astype(np.float32)
    weights[2, 2] = 35
    assert stages(weighted(weights)) == ["out"]
    assert stages(weighted(np.ones((2, 2), np.float32))) == ["out"]


def test_weights_that_are_an_input_are_not_known() -> None:
    src, kernel = pt.edge(pt.Input("img", "float32", 2)), pt.Input("k", "float32", 2)
    r, out = pt.RDom((0, 9), (0, 9)), pt.Func("out")
    out[Y, X] = pt.sum(src[Y + r[0], X + r[1]] * kernel[r[0], r[1]], over=r)
    assert stages(pt.Pipeline(out, shape=(40, 50))) == ["out"]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
def test_sums_that_are_written_out(dtype: str) -> None:
    src, out = pt.edge(pt.Input("img", dtype, ndim=2)), pt.Func("out")
    taps = [int(BINOMIAL[i, k]) * src[Y + i, X + k - 2] for i in range(5) for k in range(5)]
    out[Y, X] = 3 * sum(taps[1:], taps[0]) + src[Y, X + 9] - 1
    p = pt.Pipeline(out, shape=(40, 50))
    assert stages(p) == ["out_rows", "out"]
    assert agrees(p, 1e-5 if dtype == "float32" else 0)
    assert stages(p.with_options(strict=True)) == (["out"] if dtype == "float32" else ["out_rows", "out"])


def test_bytes_that_are_written_out_are_stored_in_16_bits() -> None:
    src, out = pt.edge(pt.Input("img", "uint8", ndim=2)), pt.Func("out")
    total = sum(int(BINOMIAL[i, k]) * pt.cast("int32", src[Y + i, X + k]) for i in range(5) for k in range(5))
    out[Y, X] = pt.cast("uint8", (total + 128) >> 8)
    p = pt.Pipeline(out, shape=(40, 50))
    assert p.rewritten.stage["out_rows"].dtypes[0].name == "uint16"
    assert agrees(p)


def test_a_cross_is_no_product() -> None:
    src, out = pt.edge(pt.Input("img", "float32", ndim=2)), pt.Func("out")
    across = sum(src[Y, X + k] for k in range(-8, 9))
    out[Y, X] = across + sum(src[Y + k, X] for k in range(-8, 9) if k)
    assert stages(pt.Pipeline(out, shape=(40, 50))) == ["out"]
