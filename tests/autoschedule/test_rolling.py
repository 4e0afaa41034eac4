"""Groups that roll down strips: how they start."""

from __future__ import annotations

import pytest

import pantile as pt
from pantile.autoschedule.search.groups import StageGroup
from pantile.autoschedule.search.rolling import Roll, variations

from .problems import ORDINARY, problem_of

y, x = pt.vars("y x")
img = pt.Input("img", "float32", ndim=2)
CASES = {
    "enlarged": (img[y, x // 2] + 1.0, (1, 4)),
    "reduced": (img[y, 2 * x] + img[y, 2 * x + 1], (1, 4)),
    "enlarged both ways": (img[y // 2, x // 2] + 1.0, (2, 2)),  # two rows have a row in common
    "summed": (img[y, x] + img[y + 1, x], (2, 2)),
    "copied": (img[y, x] + 1.0, (2, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_that_are_resized_go_one_by_one_in_whole_lines(case: str) -> None:
    value, expected = CASES[case]
    out = pt.Func("out")
    out[y, x] = value
    p = pt.Pipeline(out, shape=(img.shape[0] // 2, img.shape[1] // 2))
    roll = Roll.of(problem_of(p, ORDINARY, img=(2000, 3000)), StageGroup("out", (), ()))
    assert (roll.rows, roll.vectors) == expected


def test_rows_go_one_after_the_other_before_there_is_one_at_a_time() -> None:
    """Both may be cheaper by much; what is found first is then taken, and leads elsewhere."""
    out = pt.Func("out")
    out[y, x] = img[y, x] + img[y + 1, x]
    p = pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1]))
    problem = problem_of(p, ORDINARY, img=(2000, 3000))
    named = [name for name, _ in variations(problem, Roll.of(problem, StageGroup("out", (), ())))]
    assert named.index("row by row") < named.index("1 rows at a time")


@pytest.mark.parametrize(("dtype", "fewest"), [("float32", True), ("uint8", False)])
def test_vectors_do_not_get_so_short_that_small_elements_fall_apart(dtype: str, fewest: bool) -> None:
    small, out = pt.Input("small", dtype, ndim=2), pt.Func("out")
    out[y, x] = pt.cast("float32", small[y, x]) + 1.0
    problem = problem_of(pt.Pipeline(out, shape=small.shape), ORDINARY, small=(2000, 3000))
    named = [name for name, _ in variations(problem, Roll.of(problem, StageGroup("out", (), ())))]
    assert ("1 vectors at a time" in named) == fewest
