"""What a test needs to know of an app beyond what the app itself says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """An app's mathematics, and shapes to try it at.

    `formula` takes the inputs by name and returns the output (a tuple for several). It is written from the mathematics
    in NumPy or SciPy, in double precision where the app has floats, and uses nothing of Pantile.
    """

    formula: Callable[..., Array | tuple[Array, ...]]
    odd: tuple[Shapes, ...]  # at least three: tiny ones, primes, less than a vector or a tile
    large: Shapes  # some whole tiles and a bit of every loop of the expert schedule, yet quick
    planes: frozenset[str] = frozenset()  # inputs whose first axis is channels: also tried interleaved
    tolerance: float = 1e-5  # of floats, relative to the largest magnitude
    off_by: int = 0  # what integers may differ by, where the documents allow it
    reference: bool = True  # whether the reference evaluator is quick enough at the smallest shapes
    # So many stages that code for every size takes minutes to compile: fewer tests, unless PANTILE_FUZZ=long.
    slow: bool = False

    def assert_agrees(self, inputs: Mapping[str, Array], found: Array | tuple[Array, ...]) -> None:
        """Integers agree exactly, floats to what single precision leaves of the largest value."""
        expected = _tuple(self.formula(**inputs))
        assert len(_tuple(found)) == len(expected)
        for f, e in zip(_tuple(found), expected, strict=True):
            assert f.shape == e.shape
            if f.dtype.kind == "f":
                scale = np.max(np.abs(e), initial=0, where=np.isfinite(e))
                np.testing.assert_allclose(f, e, rtol=self.tolerance, atol=self.tolerance * scale)
            else:
                assert np.abs(f.astype(np.int64) - e.astype(np.int64)).max(initial=0) <= self.off_by


def _tuple(arrays: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return arrays if isinstance(arrays, tuple) else (arrays,)
