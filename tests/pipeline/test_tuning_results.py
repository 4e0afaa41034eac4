"""schedule="tuned": the winner that was kept for the same question, and what auto finds where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile import tuning_results

from .examples import blur, picture

SIZES = {"img": (400, 600)}
WINNER = pt.Schedule(pt.on("across").compute_at("down", "yo"), pt.on("down").split("y", "yo", "yi", 8).parallel("yo"))


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path))
    return tmp_path


def kept(p: pt.Pipeline, threads: int | None = None, **sizes: Any) -> Path:
    winner = tuning_results.Winner(WINNER, "greedy, resized", 0.002, 0.003, 7)
    tuning_results.write(p.problem(**(sizes or SIZES)), threads or pt.get_num_threads(), winner)
    (file,) = tuning_results.files()
    return file


def test_the_winner_runs() -> None:
    p = blur()
    kept(p)
    q = p.with_schedule("tuned", estimates={"img": (390, 610)})  # of the same class
    assert q.schedule.on("down") == WINNER.on("down")
    assert "tuned for " in q.explain() and "greedy, resized: the fastest of 7, 2 ms when it was tuned" in q.explain()
    pixels = picture(390, 610)
    np.testing.assert_array_equal(q(img=pixels), p.reference(img=pixels))


HINT = (
    r"blur was not tuned for these sizes, \d+ threads and this machine, and runs under the schedule of auto; "
    "tune it with: "
)


def test_without_one_auto_runs_and_says_how_to_tune() -> None:
    with pytest.warns(tuning_results.NotTuned, match=HINT + r"pantile tune FILE.py:NAME --shape img=400x600") as told:
        p = blur(schedule="tuned", estimates=SIZES)
    assert told[0].filename.endswith("examples.py")
    assert p.schedule == blur(schedule="auto", estimates=SIZES).schedule
    assert "auto for " in p.explain() and "was not tuned" in p.explain()


@pytest.mark.parametrize(
    "other",
    [{"threads": 1 + pt.get_num_threads()}, {"img": (40, 60)}, {"img": (4000, 6000)}],
    ids=["threads", "smaller", "larger"],
)
def test_another_question_has_another_answer(other: dict[str, Any]) -> None:
    p = blur()
    kept(p, **other)
    assert tuning_results.read(p.problem(**SIZES), pt.get_num_threads()) is None


def damaged(fields: dict[str, Any]) -> list[bytes]:
    foreign = pt.Schedule(pt.on("nobody").compute_root()).to_json()
    illegal = pt.Schedule(pt.on("down").compute_at("across", "y")).to_json()
    other = [{"format": 2}, {"schedule": 5}, {"schedule": "{}"}, {"seconds": "soon"}, {"schedule": foreign}]
    changed = [json.dumps(fields | o).encode() for o in (*other, {"schedule": illegal})]
    return [b"", b"\xff", b"[]", b"null", b"[" * 100_000, json.dumps(fields).encode()[:-9], *changed]


def test_what_is_damaged_is_as_good_as_none() -> None:
    p = blur()
    file = kept(p)
    problem, threads = p.problem(**SIZES), pt.get_num_threads()
    assert tuning_results.read(problem, threads) is not None
    for content in damaged(json.loads(file.read_bytes())):
        file.write_bytes(content)
        assert tuning_results.read(problem, threads) is None, content[:80]
    file.unlink()
    file.symlink_to("/dev/zero")
    assert tuning_results.read(problem, threads) is None


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", "/dev/null")
    with pytest.raises(OSError, match="nothing can be saved: there is no folder for it that only you can write; name"):
        tuning_results.writable()
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(folder))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(OSError, match=f"{folder} cannot be written; name another folder with PANTILE_CACHE_DIR"):
        tuning_results.writable()
