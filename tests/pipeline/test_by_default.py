"""What runs where no schedule is named: `auto`, or what PANTILE_SCHEDULE says."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import Auto, Problem
from pantile.schedule_cache import NotFound

Y, X = pt.vars("y x")
PICTURE = np.random.default_rng(0).integers(0, 256, (300, 400), dtype=np.uint8)


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PANTILE_SCHEDULE")


def blur(name: str = "out", **how: Any) -> pt.Pipeline:
    img, rows, out = pt.Input("img", "uint8", ndim=2), pt.Func("rows"), pt.Func(name)
    rows[Y, X] = pt.cast("uint16", img[Y, X]) + img[Y, X + 1] + img[Y, X + 2]
    out[Y, X] = rows[Y, X] + rows[Y + 1, X] + rows[Y + 2, X]
    return pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 2), **how)


def agrees(p: pt.Pipeline, picture: np.ndarray[Any, Any] = PICTURE) -> bool:
    return bool((p(img=picture) == p.reference(img=picture)).all())


def found_by(p: pt.Pipeline) -> str | None:
    return None if p.report is None else p.report.strategy


def test_auto_schedules_at_the_first_call() -> None:
    p = blur()
    assert agrees(p)
    assert found_by(p) == "auto"
    assert p.schedule == blur(schedule="auto", estimates={"img": PICTURE.shape}).schedule
    assert "auto for " in p.explain()


def test_before_the_first_call_there_is_a_schedule_for_a_usual_picture_to_look_at() -> None:
    p, usual = blur(), blur(estimates={"img": (1080, 1920)})
    assert (p.schedule, p.loops(), p.explain()) == (usual.schedule, usual.loops(), usual.explain())
    p(img=PICTURE)
    assert p.schedule == blur(estimates={"img": PICTURE.shape}).schedule and "300x400" in p.explain()


def test_nothing_is_to_be_seen_where_nothing_is_usual() -> None:
    img, gain, out = pt.Input("img", "float32", ndim=2), pt.Param("gain", "float32"), pt.Func("out")
    out[Y, X] = img[Y, X] * gain
    with pytest.raises(pt.UserError, match=r"out is scheduled \(auto\) at its first call"):
        pt.Pipeline(out, shape=img.shape).loops()
    with pytest.raises(pt.UserError, match=r"out is scheduled \(auto\) at its first call"):
        blur(schedule="auto").loops()


def test_what_is_expected_is_scheduled_at_once() -> None:
    assert found_by(blur(estimates={"img": (300, 400)})) == "auto"
    assert found_by(blur(estimates={"img": (300, 400)}).with_options(strict=True)) == "auto"


def test_a_schedule_by_hand_is_completed_plainly() -> None:
    p = blur(schedule=pt.Schedule(pt.on("rows").compute_root()))
    assert agrees(p) and p.report is None
    assert p.schedule.on("out") == blur(schedule="plain").schedule.on("out")


def test_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_SCHEDULE", "greedy")
    assert agrees(p := blur()) and found_by(p) == "greedy"
    assert found_by(blur(schedule="auto", estimates={"img": (300, 400)})) == "auto"
    monkeypatch.setenv("PANTILE_SCHEDULE", "dp")
    assert found_by(blur(estimates={"img": (300, 400)})) == "dp"
    assert found_by(blur(estimates={"img": (300, 400)}, target="cuda-sim")) == "auto"  # dp knows no GPUs
    monkeypatch.setenv("PANTILE_SCHEDULE", "plain")
    assert blur().schedule == blur(schedule="plain").schedule == blur(schedule=pt.Schedule()).schedule
    assert blur().report is None
    monkeypatch.setenv("PANTILE_SCHEDULE", "fastest")
    with pytest.raises(pt.UserError, match="PANTILE_SCHEDULE='fastest' is not a schedule; set it to one of 'plain', "):
        blur()


def test_copies_run_as_the_pipeline_does(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(blur("copied"))
    monkeypatch.setenv("PANTILE_SCHEDULE", "plain")
    assert agrees(p := pickle.loads(data))
    assert found_by(p) == "auto"


def fails(failure: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(self: Auto, problem: Problem) -> None:
        raise failure

    monkeypatch.setattr(Auto, "find", find)


def test_a_search_that_fails_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    fails(KeyError("rows"), monkeypatch)
    p = blur("unfound")
    with pytest.warns(
        NotFound, match=r"unfound runs under the plain schedule, because auto failed \(KeyError: 'rows'\)"
    ) as told:
        assert agrees(p)
    assert told[0].filename == __file__
    assert p.schedule == blur("unfound", schedule="plain").schedule
    assert "unfound runs under the plain schedule" in p.explain()
    with pytest.warns(NotFound):
        agrees(p.with_options(debug=True))
    with pytest.raises(KeyError):  # it was asked for
        agrees(p.with_schedule("auto"))


def test_a_search_that_is_interrupted_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        fails(KeyboardInterrupt(), patch)
        p = blur("interrupted")
        with pytest.raises(KeyboardInterrupt):
            p(img=PICTURE)
    assert agrees(p) and found_by(p) == "auto"


def test_threads_search_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[str] = []
    find = Auto.find
    monkeypatch.setattr(Auto, "find", lambda self, problem: searches.append(problem.graph.name) or find(self, problem))
    p = blur("shared")
    threads = [threading.Thread(target=p, kwargs={"img": PICTURE}) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert searches == ["shared"]


def test_small_pictures_are_not_searched_for() -> None:
    p = blur("small")
    assert agrees(p, PICTURE[:9, :11])
    assert p.report is not None and p.report.counts["schedules evaluated"] == 1
    assert agrees(p, PICTURE[:2, :2]), "there is nothing to compute"
    assert agrees(p), "and another size class is searched for"
    large = p.problem(img=(3000, 4000))
    assert Auto().find(large).report.counts["schedules evaluated"] > 1


def test_what_is_no_size_is_refused_as_ever() -> None:
    with pytest.raises(pt.UserError, match="masked"):
        blur().compile(img=(np.ma.masked, 5))
    with pytest.raises(pt.UserError, match=r"Input 'img' .* is missing"):
        blur()()


@pytest.mark.parametrize("how", [{"strict": True}, {"algebra": False}, {"machine": pt.machine.named("i7-6700")}])
def test_options_go_with_it(how: dict[str, Any]) -> None:
    assert agrees(blur(**how))


@pytest.mark.filterwarnings("error")
def test_auto_schedules_for_gpus_too() -> None:
    for p in (blur(target="cuda-sim"), blur().with_options(target="cuda-sim")):
        assert agrees(p)
        assert found_by(p) == "auto" and ".block(" in str(p.schedule)
        assert isinstance(p.with_options(target="host")._scheduling.requested, Auto)
    with pytest.raises(pt.UserError, match="schedule='dp' finds schedules for CPUs, and"):
        blur(target="cuda-sim").with_schedule("dp")
