"""Size classes: strategies that schedule by size are asked again for calls that are much larger or smaller."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES, Found, Naive, Problem, Strategy

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


# ---- what was found for larger calls


@dataclass(frozen=True)
class Reusing(BySize):
    """Its schedule is as good as any for all sizes."""

    reuse_within: ClassVar[float] = 1.3


@dataclass(frozen=True)
class Serial(Reusing):
    """Its schedule is several times slower than the plain one, at all sizes."""

    def find(self, problem: Problem) -> Found:
        found = super().find(problem)
        return replace(found, schedule=pt.Schedule(pt.on("rows").compute_root(), pt.on("out").compute_root()))


def blurred(strategy: Strategy) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] + img[y, x + 1] + img[y, x + 2]
    out[y, x] = rows[y, x] + rows[y + 1, x] + rows[y + 2, x]
    shape = (img.shape[0] - 2, img.shape[1] - 2)
    return pt.Pipeline(out, shape=shape, schedule=strategy, machine=pt.machine.named("neoverse-n1"))


def test_a_smaller_call_runs_by_what_was_found_for_a_larger_one_and_by_its_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline = blurred(Reusing())
    pipeline.compile(img=(2002, 3002))
    img = np.arange(502.0 * 602, dtype=np.float32).reshape(502, 602)
    expected = pipeline.with_schedule("plain")(img=img)
    monkeypatch.setattr("pantile.scheduled_pipeline.compile_kernel", None)  # which would be a TypeError
    monkeypatch.setattr("pantile.runtime.cache.read", lambda name: None)
    np.testing.assert_array_equal(pipeline(img=img), expected)
    assert ASKED == [(2000, 3000)]


def test_explain_says_which_sizes_a_schedule_was_found_for() -> None:
    pipeline = blurred(Reusing())
    pipeline.compile(img=(2002, 3002))
    assert "reused" not in pipeline.explain()
    assert "found for img 2002 x 3002, and reused for smaller calls" in pipeline.explain(img=(502, 602))


def test_a_larger_call_asks_for_its_own() -> None:
    pipeline = blurred(Reusing())
    for shape in ((502, 602), (2002, 3002), (66, 66)):
        pipeline.compile(img=shape)
    assert ASKED == [(500, 600), (2000, 3000)]


def test_what_would_be_much_slower_is_not_reused() -> None:
    pipeline = blurred(Serial())
    for shape in ((2002, 3002), (502, 602)):
        pipeline.compile(img=shape)
    assert ASKED == [(2000, 3000), (500, 600)]


def test_other_numbers_of_channels_ask_for_their_own() -> None:
    y, x, c = pt.vars("y x c")
    img, out = pt.Input("img", "float32", ndim=3), pt.Func("out")
    out[y, x, c] = img[y, x, c] * 2
    pipeline = pt.Pipeline(out, schedule=Reusing(), machine=pt.machine.named("neoverse-n1"))
    for shape in ((900, 900, 4), (300, 300, 4), (300, 300, 3), (100, 100, 3)):
        pipeline.compile(img=shape)
    assert ASKED == [(900, 900, 4), (300, 300, 3)]


def test_what_larger_calls_alone_can_be_run_by_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some schedules read farther than what they are asked for does, which small arrays have no room for."""
    pipeline = blurred(Reusing())
    pipeline.compile(img=(2002, 3002))
    monkeypatch.setattr("pantile.calls.Calls.serves", lambda self, sort, given: False)
    pipeline.compile(img=(502, 602))
    assert ASKED == [(2000, 3000), (500, 600)]


def test_the_costs_of_a_smaller_call_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        pipeline = blurred(Reusing())
        pipeline.compile(img=(2002, 3002))
        pipeline.compile(img=(502, 602))
        monkeypatch.setattr("pantile.schedule_reuse._predicted_costs", None)  # which would be a TypeError
    assert ASKED == [(2000, 3000)] * 2


def test_all_that_is_reused_is_pickled() -> None:
    pipeline = blurred(Reusing())
    pipeline.compile(img=(2002, 3002))
    again = pickle.loads(pickle.dumps(pipeline))
    again.compile(img=(502, 602))
    assert ASKED == [(2000, 3000)]


def test_only_auto_reuses() -> None:
    assert {s for s in STRATEGIES.values() if s.reuse_within} == {pt.autoschedule.Auto}
