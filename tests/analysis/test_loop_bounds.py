"""Which conditions become bounds of loops."""

from __future__ import annotations

import pytest

from pantile.analysis.loop_bounds import bounding, only_bounds
from pantile.expr.build import logical_and
from pantile.expr.nodes import Expr, Load, coordinate
from pantile.expr.types import INDEX, dtype

ROW, COLUMN, TERM = (coordinate(name) for name in "ijk")
DATA = Load(INDEX, 1, "start", (ROW,))
PIXEL = Load(dtype("float32"), 1, "img", (ROW,))


@pytest.mark.parametrize("condition", [TERM > ROW, 16 * COLUMN + TERM <= ROW, TERM - ROW >= 2 * COLUMN + 3, TERM < 7])
def test_inequalities_between_sums_of_coordinates_do(condition: Expr) -> None:
    assert bounding(condition) == [condition] and only_bounds(condition)


@pytest.mark.parametrize("condition", [TERM % 2 < ROW, TERM * ROW <= COLUMN, TERM >= DATA, PIXEL > 0])
def test_other_conditions_do_not(condition: Expr) -> None:
    assert bounding(condition) == [] and not only_bounds(condition)


def test_of_several_those_that_do_are_told_apart() -> None:
    both = logical_and(TERM > ROW, TERM >= DATA)
    assert [str(c) for c in bounding(both)] == [str(TERM > ROW)] and not only_bounds(both)
    assert bounding(None) == []
