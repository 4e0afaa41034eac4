"""`pantile bench --ablate auto`: who takes part, and the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pantile as pt
from pantile.bench import main
from pantile.bench.ablation import AblationResult, table


def test_table() -> None:
    found = [AblationResult("a", 2.0, {"crossover": 3.0}), AblationResult("b", 1.0, {"crossover": 1.5, "kernel": 0.5})]
    lines = [" ".join(line.split()) for line in table(found)]
    assert lines[0] == "time without / with auto ms crossover kernel"
    assert lines[1:4] == ["a 2 1.50", "b 1 1.50 0.50", "geometric mean 1.50 0.71"]
    assert lines[4].startswith("an empty cell: the same schedule without it; so everywhere for algebra, cells")


def test_an_app(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    assert main(["blur", "--ablate", "auto", "--size", "small", "--repeat", "1", "--json", str(file)]) == 0
    (found,) = json.loads(file.read_text())["ablation"]
    assert found["app"] == "blur" and found["ms"] > 0
    assert "time without / with" in capsys.readouterr().out


def test_without_an_ingredient() -> None:
    auto = pt.autoschedule.Auto
    assert auto(without=("crossover", "kernel")) != auto()
    with pytest.raises(pt.UserError, match=r"Auto\(without=\('luck',\)\): pass a tuple"):
        auto(without=("luck",))
