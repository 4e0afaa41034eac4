"""`pantile bench` from arguments to table and JSON, on a small app beside made-up rivals."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile import machine
from pantile.apps import APPS, GROUPS
from pantile.autoschedule import Greedy
from pantile.bench import command, extras, main, scheduling, session
from pantile.bench.contender import Task
from pantile.bench.rivals.registry import RIVALS
from tests.bench.fakes import TWICE, FakeContender, rival, unavailable

QUICK = ["twice", "--size", "small", "--threads", "2", "--repeat", "1"]
KEYS = ["app", "system", "schedule", "threads", "ms", "compile_s", "schedule_s"]


@pytest.fixture(autouse=True)
def _app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APPS, "twice", TWICE)
    monkeypatch.setattr(machine, "detect", lambda: machine.named("neoverse-n1"))


def bench(tmp_path: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit status and the results of a quick run."""
    file = tmp_path / "results.json"
    status = main([*QUICK, *options, "--json", str(file)])
    document = json.loads(file.read_text())
    assert list(document) == ["run", "machine", "results"]
    return status, document["results"]


def test_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake, entered = rival(lambda img: 2 * img)
    monkeypatch.setitem(RIVALS, "fake", fake)
    status, results = bench(tmp_path, "--schedule", "expert,naive", "--rivals", "fake")
    assert status == 0
    assert all(list(r)[: len(KEYS)] == KEYS for r in results)
    assert [(r["app"], r["system"], r["schedule"], r["threads"]) for r in results] == [
        ("twice", "pantile", "expert", 2),
        ("twice", "pantile", "naive", 2),
        ("twice", "fake", "best", 2),
    ]
    assert results[0]["ms"] > 0 and results[0]["compile_s"] > 0
    assert (results[2]["ms"], results[2]["compile_s"], results[2]["schedule_s"]) == (4.0, 0.5, 0.25)
    assert results[0]["bound_by"] == "memory"
    assert results[0]["of_bound"] == results[0]["bound_ms"] / results[0]["ms"]
    assert [c.closed for c in entered] == [True]
    told = capsys.readouterr()
    assert "fake best / pantile expert" in told.out
    assert "note: 1 app, 3 contenders: about a minute" in told.err


def test_a_rival_that_computes_something_else_is_an_error_and_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, entered = rival(lambda img: 2 * img + (img == img[1, 2]))
    monkeypatch.setitem(RIVALS, "fake", fake)
    status, results = bench(tmp_path, "--rivals", "fake")
    assert status == 1
    assert [r["system"] for r in results] == ["pantile"]
    assert "error: twice: fake best, 2 threads disagrees with pantile expert, 2 threads: " in capsys.readouterr().err
    assert not entered[0].log


def test_a_rival_that_is_not_installed_is_skipped_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, _ = rival(lambda img: 2 * img)
    missing = replace(fake, require=unavailable("install it with `pip install fake`"))
    monkeypatch.setitem(RIVALS, "fake", missing)
    status, results = bench(tmp_path, "--rivals", "fake")
    assert status == 0
    assert [r["system"] for r in results] == ["pantile"]
    assert "note: fake skipped: install it with `pip install fake`\n" in capsys.readouterr().err


def test_a_schedule_that_a_rival_lacks_is_skipped_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, _ = rival(lambda img: 2 * img)
    monkeypatch.setitem(RIVALS, "fake", replace(fake, enter=unavailable("no such plugin")))
    assert bench(tmp_path, "--rivals", "fake")[0] == 0
    assert "note: twice: fake best, 2 threads skipped: no such plugin\n" in capsys.readouterr().err


def test_a_rival_without_the_app_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, entered = rival(lambda img: 2 * img, schedules=("one", "two"))
    monkeypatch.setitem(RIVALS, "fake", replace(fake, apps=frozenset()))
    assert bench(tmp_path, "--rivals", "fake")[0] == 0
    assert capsys.readouterr().err.count("note: fake has no twice\n") == 1
    assert not entered


def test_one_schedule_of_a_rival(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, entered = rival(lambda img: 2 * img, schedules=("one", "two"))
    monkeypatch.setitem(RIVALS, "fake", fake)
    bench(tmp_path, "--rivals", "fake:two")
    assert [c.label.schedule for c in entered] == ["two"]


def test_our_own_failure_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = replace(TWICE, expert=lambda target, cores: pt.Schedule(pt.on("thrice").parallel("y")))
    monkeypatch.setitem(APPS, "twice", wrong)
    status, results = bench(tmp_path, "--schedule", "expert,plain")
    assert status == 1
    assert [r["schedule"] for r in results] == ["plain"]
    assert "error: twice: pantile expert: " in capsys.readouterr().err


def test_scaling_overhead_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "ROUNDS", 1)
    _, results = bench(tmp_path, "--scaling", "--overhead", "--passes")
    assert [r["threads"] for r in results] == [1, 2]
    assert "passes_s" not in results[0]
    assert results[1]["passes_s"]["llvm"] > 0
    assert isinstance(results[1]["overhead_us"], float)


def test_check_compares_with_the_reference_and_times_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, entered = rival(lambda img: 3 * img)
    monkeypatch.setitem(RIVALS, "fake", fake)
    assert bench(tmp_path, "--check", "--rivals", "fake") == (1, [])
    messages = capsys.readouterr().err
    assert "note: twice: pantile expert, 2 threads agrees with the reference\n" in messages
    assert "error: twice: fake best, 2 threads disagrees with the reference: " in messages
    assert not entered[0].log


def test_compile_times_are_not_those_of_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path / "cache"))
    bench(tmp_path)
    assert os.environ["PANTILE_CACHE_DIR"] == str(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_chart_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert bench(tmp_path, "--plot", str(tmp_path / "chart.png"))[0] == 0
    assert "note: no chart: matplotlib draws it; install it with `pip install matplotlib`\n" in capsys.readouterr().err


def test_a_rival_that_computes_something_similar_is_timed_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, entered = rival(lambda img: 3 * img)

    def enter(task: Task) -> FakeContender:
        fake.enter(task)
        entered[0].differs = "thrice"
        return entered[0]

    monkeypatch.setitem(RIVALS, "fake", replace(fake, enter=enter))
    status, results = bench(tmp_path, "--rivals", "fake")
    assert status == 0
    assert results[1]["differs"] == "thrice"
    told = capsys.readouterr()
    assert "note: twice: fake best, 2 threads is not compared: thrice\n" in told.err
    assert "* twice, fake: thrice" in told.out


def test_without_names_only_apps_that_a_rival_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake, _ = rival(lambda img: 2 * img)
    monkeypatch.setitem(RIVALS, "fake", fake)
    assert main([*QUICK[1:], "--rivals", "fake"]) == 0
    assert "note: 1 app, 2 contenders: " in capsys.readouterr().err


def test_a_group_of_apps_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    monkeypatch.setattr(session.Session, "measure", lambda self: measured.append(self.app.name) or [])
    main(["twice", "everyday"])
    assert measured == ["twice", *GROUPS["everyday"]]
    measured.clear()
    main([])
    assert "twice" in measured and not set(measured) & set(GROUPS["everyday"])


def test_where_nobody_wrote_a_schedule_auto_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APPS, "twice", replace(TWICE, expert=None))
    assert [r["schedule"] for r in bench(tmp_path)[1]] == ["auto"]
    assert [r["schedule"] for r in bench(tmp_path, "--schedule", "expert,naive,auto")[1]] == ["auto", "naive"]


def test_edges_with_rules_of_their_own_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_at(y: int, x: int) -> int:
        fake, _ = rival(lambda img: np.where(np.arange(img.size).reshape(img.shape) == 7 * y + x, -1, 2 * img))
        monkeypatch.setitem(RIVALS, "fake", fake)
        return bench(tmp_path, "--rivals", "fake")[0]

    monkeypatch.setitem(APPS, "twice", replace(TWICE, margin=1))
    assert (wrong_at(0, 3), wrong_at(2, 6), wrong_at(1, 1)) == (0, 0, 1)


def test_stopping_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stopped(session.Session):
        def measure(self) -> list[Any]:
            if self.app.name == "blur":
                raise KeyboardInterrupt
            return super().measure()

    monkeypatch.setattr(command, "Session", Stopped)
    status, results = bench(tmp_path, "blur")
    assert (status, [r["app"] for r in results]) == (1, ["twice"])
    assert "error: stopped; these results were measured before\n" in capsys.readouterr().err


def test_a_size_of_some_apps_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(APPS, "wide", replace(TWICE, name="wide", sizes={**TWICE.sizes, "huge": {"img": (3, 50)}}))
    assert [r["app"] for r in bench(tmp_path, "wide", "--size", "huge")[1]] == ["wide"]
    assert "note: twice has no size 'huge'; there are small, paper\n" in capsys.readouterr().err


def test_what_does_not_fit_into_memory_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "free_bytes", lambda: 100)
    assert bench(tmp_path) == (0, [])
    assert "note: twice skipped: size 'small' takes about 0.0 GB with 1 contenders, and " in capsys.readouterr().err


def test_checks_are_small_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[str] = []
    monkeypatch.setattr(session.Session, "measure", lambda self: sizes.append(self.settings.size) or [])
    main(["twice", "--check"])
    main(["twice"])
    assert sizes == ["small", "paper"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["thrice"], "'thrice' is not an app; did you mean twice? There are "),
        (["--schedule", "best"], "'best' is not a schedule; there are expert, plain, naive"),
        (["--rivals", "tvm"], "'tvm' is not a rival; there are halide"),
        (["--rivals", "halide:best"], "'best' is not a schedule of it; there are manual, mullapudi2016, adams2019"),
        (["--json", "nowhere/a.json"], "'nowhere/a.json' cannot be written"),
        (["--rival-limit", "0"], "'0' is not a number of seconds"),
        (["--threads", "0"], "'0' is not a whole number of at least 1"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_scheduling_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(scheduling.PUBLISHED["kernel"], "twice", 0.25)  # type: ignore[index]
    file = tmp_path / "times.json"
    assert main(["twice", "--scheduling", "--size", "small", "--json", str(file)]) == 0
    results = json.loads(file.read_text())["scheduling"]
    assert [r["schedule"] for r in results] == list(scheduling.STRATEGIES)
    assert all(0 < r["seconds"] < 60 for r in results)
    assert [r["schedule"] for r in results if r.get("published_s") == 0.25] == ["kernel"]
    told = capsys.readouterr().out.splitlines()
    assert told[-3].split() == ["s", *scheduling.STRATEGIES]
    assert "(0.25)" in told[-2] and told[-1].startswith("longest")


def test_scheduling_times_for_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    """A GPU need not be at hand, nor an app have a size for one."""
    assert main(["twice", "--scheduling", "--target", "cuda"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "for H" in told[0] and told[-3].split() == ["s", *scheduling.FOR_GPUS]
    assert {"auto", "greedy", "autogpu", "polymage_gpu", "posttile"} == set(scheduling.FOR_GPUS)


def test_scheduling_is_timed_though_it_was_found_before(monkeypatch: pytest.MonkeyPatch) -> None:
    find, searches = Greedy.find, []
    monkeypatch.setattr(Greedy, "find", lambda self, problem: searches.append(problem) or find(self, problem))
    for _ in range(2):
        searches.clear()
        assert main(["twice", "--scheduling", "--schedule", "greedy", "--size", "small"]) == 0
        assert len(searches) > 1


def test_schedules_that_need_no_search_have_no_scheduling_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twice", "--scheduling", "--schedule", "expert", "--size", "small"]) == 1
    assert "expert is written by hand" in capsys.readouterr().err
