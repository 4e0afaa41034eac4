"""What the chart shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pantile.bench.contender import Label
from pantile.bench.plot import baseline, draw, speeds
from pantile.bench.result import Result

OURS, FAST, RIVAL = Label("pantile", "expert", 2), Label("pantile", "fast", 2), Label("halide", "manual", 2)
RESULTS = [
    Result("a", OURS, 2.0, 0, 0),
    Result("a", RIVAL, 4.0, 0, 0),
    Result("b", OURS, 1.0, 0, 0),
    Result("b", RIVAL, 8.0, 0, 0),
    Result("c", OURS, 1.0, 0, 0),
]


def test_speeds_are_relative_to_the_first_rival() -> None:
    assert baseline([OURS, FAST, RIVAL]) == RIVAL
    assert baseline([OURS, FAST]) == OURS
    assert speeds(RESULTS, ["a", "b", "c"], OURS, RIVAL) == [2.0, 8.0, 0.0, pytest.approx(4.0)]
    assert speeds(RESULTS, ["a"], FAST, RIVAL) == [0.0, 0.0]


def test_chart(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(tmp_path / "chart.png", RESULTS)
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
