"""The smaller and the larger one of two values are computed one after the other."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt

NETWORK = [(0, 1), (3, 4), (2, 4), (2, 3), (0, 3), (0, 2), (1, 4), (1, 3), (1, 2)]  # sorts five


def smallest_first(dtype: str) -> pt.Pipeline:
    """Five neighbours in order; all are used, the last one first."""
    x = pt.Var("x")
    img, out = pt.Input("img", dtype, ndim=1), pt.Func("out")
    v = [img[x + k] for k in range(5)]
    for i, j in NETWORK:
        v[i], v[j] = pt.minimum(v[i], v[j]), pt.maximum(v[i], v[j])
    out[x] = v[4] - v[0] + v[2]
    return pt.Pipeline(out, shape=(img.shape[0] - 4,), schedule=pt.Schedule(pt.on("out").vectorize("x", 16)))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_both_results_of_an_exchange_come_together(dtype: str) -> None:
    p = smallest_first(dtype)
    calls = re.findall(r"@llvm\.(\w*)(min|max)(?:imum)?\.v16\w+\(([^)]*)\)", p.llvm())
    operands = [args for _, _, args in calls]
    pairs = {args for args in operands if operands.count(args) == 2}
    assert len(pairs) >= 5
    assert all(operands.index(args) + 1 == len(operands) - 1 - operands[::-1].index(args) for args in pairs)
    img = np.random.default_rng(1).integers(0, 100, 99).astype(dtype)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))
