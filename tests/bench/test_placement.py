"""Inputs of benchmarks start on cache lines."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.bench.contender import on_a_line


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (64, 64)])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_equal_and_aligned(shape: tuple[int, ...], dtype: str) -> None:
    a = np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)
    copy = on_a_line(a)
    np.testing.assert_array_equal(copy, a)
    assert copy.dtype == a.dtype and copy.flags.c_contiguous and copy.ctypes.data % 64 == 0
