"""Directions in which expressions move, against their values."""

from __future__ import annotations

from hypothesis import given

from pantile.analysis.monotonic import directions
from pantile.expr.nodes import Expr, coordinate

from .indices import Point, affine, boxes, cases, indices, points, value

NAMES = "xy"
COORDINATES = [coordinate(n) for n in NAMES]


def assert_it_moves_so(e: Expr, at: Point, name: str) -> None:
    step = value(e, {**at, name: at[name] + 1}) - value(e, at)
    assert step == 0 or (1 if step > 0 else -1) in directions(e, name), (at, name)


@cases(40)
@given(indices(COORDINATES), boxes(NAMES))
def test_no_value_moves_otherwise(e: Expr, box: dict[str, tuple[int, int]]) -> None:
    for at in points(box):
        for name in NAMES:
            assert_it_moves_so(e, at, name)


@cases(20)
@given(affine(COORDINATES))
def test_clamped_quotients_are_monotonic(e: Expr) -> None:
    assert all(len(directions(e, name)) < 2 for name in NAMES)
