"""Size classes: strategies that schedule by size are asked again for calls that are much larger or smaller."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import Found, Naive, Problem, Strategy

ASKED: list[tuple[int, ...]] = []  # the shapes that BySize was asked for


@dataclass(frozen=True)
class BySize(Strategy):
    name: ClassVar[str] = "by_size"
    by_size: ClassVar[bool] = True
    naive: Naive = field(default_factory=Naive)

    def find(self, problem: Problem) -> Found:
        ASKED.extend(problem.shapes.values())
        return self.naive.find(problem)


@pytest.fixture(autouse=True)
def _nobody_was_asked() -> None:
    ASKED.clear()


def doubled(**how: object) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[y, x] = img[y, x] * 2
    return pt.Pipeline(out, schedule=BySize(), **how)  # type: ignore[arg-type]


def run(pipeline: pt.Pipeline, *shape: int) -> None:
    img = np.ones(shape, np.float32)
    np.testing.assert_array_equal(pipeline(img=img), img * 2)


def test_each_class_has_a_schedule() -> None:
    pipeline = doubled()
    for shape in ((500, 500), (510, 510), (20, 20), (500, 490), (21, 20)):
        run(pipeline, *shape)
    assert ASKED == [(500, 500), (20, 20)]


def test_what_is_tuned_has_the_same_classes() -> None:
    classes = {doubled().problem(img=shape).size_class for shape in ((500, 500), (510, 510), (500, 490))}
    assert len(classes | {doubled().problem(img=(20, 20)).size_class}) == len(classes) + 1 == 2


def test_a_shape_or_lists_stand_for_an_array() -> None:
    pipeline = doubled()
    pipeline.compile(img=(40, 40))
    run(pipeline, 40, 40)
    pipeline(img=[[np.float32(1)] * 40] * 40)
    assert ASKED == [(40, 40)]


def test_what_is_said_to_be_expected_is_for_all_sizes() -> None:
    pipeline = doubled(estimates={"img": (500, 500)})
    run(pipeline, 20, 20)
    assert ASKED == [(500, 500)]


def test_all_that_was_found_is_pickled() -> None:
    pipeline = doubled()
    run(pipeline, 500, 500)
    run(pipeline, 20, 20)
    again = pickle.loads(pickle.dumps(pipeline))
    run(again, 500, 500)
    run(again, 20, 20)
    assert len(ASKED) == 2


def test_what_is_no_array_is_refused_as_ever() -> None:
    for wrong in (None, "picture", [[1.0], [1.0, 2.0]], object()):
        with pytest.raises(pt.UserError):
            doubled()(img=wrong)


def test_auto_is_by_size() -> None:
    assert pt.autoschedule.Auto.by_size and not pt.autoschedule.Greedy.by_size
