"""Neighbours that one load of each lane brings."""

from __future__ import annotations

import pytest

from pantile.expr.runs import runs
from pantile.expr.types import dtype

CASES = {
    "three floats": ((0, 1, 2), "float32", 8, [(0, 2), (2, 1)]),
    "six floats": ((0, 1, 2, 3, 4, 5), "float32", 4, [(0, 4), (4, 2)]),
    "floats apart": ((0, 2, 4), "float32", 4, [(0, 1), (2, 1), (4, 1)]),
    "lanes that do not fill registers": ((0, 1), "float32", 2, [(0, 1), (1, 1)]),
    "doubles": ((5, 6, 7), "float64", 2, [(5, 2), (7, 1)]),
    "a pixel of three bytes": ((3, 4, 5), "uint8", 16, [(3, 3)]),
    "two bytes": ((0, 1), "uint8", 16, [(0, 1), (1, 1)]),
    "words of two bytes": ((0, 1, 2, 3), "uint16", 8, [(0, 1), (1, 1), (2, 1), (3, 1)]),
}


@pytest.mark.parametrize("name", CASES)
def test_gapless_stretches_are_cut_into_the_longest_runs(name: str) -> None:
    offsets, kind, lanes, expected = CASES[name]
    found = runs(offsets, dtype(kind), lanes)
    assert sorted({(r.first, r.width) for r in found.values()}) == expected
    assert all(r.first <= k < r.first + r.width for k, r in found.items()) and sorted(found) == sorted(offsets)
