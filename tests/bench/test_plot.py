"""What the chart shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pantile.bench.contender import Label
from pantile.bench.plot import baseline, draw, draw_heatmap, speeds
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
    base = baseline(RESULTS)
    assert (base.name, base.label) == ("halide manual", RIVAL)
    assert speeds(RESULTS, ["a", "b", "c"], OURS, base) == [2.0, 8.0, 0.0, pytest.approx(4.0)]
    assert speeds(RESULTS, ["a"], FAST, base) == [0.0, 0.0]


def test_without_rivals_they_are_relative_to_our_first_schedule() -> None:
    results = [Result("a", OURS, 2.0, 0, 0), Result("a", FAST, 1.0, 0, 0)]
    base = baseline(results)
    assert base.label == OURS
    assert speeds(results, ["a"], FAST, base) == [2.0, pytest.approx(2.0)]


def test_alone_they_are_relative_to_the_limit() -> None:
    results = [Result("a", OURS, 2.0, 0, 0, {"bound_ms": 0.5})]
    base = baseline(results)
    assert base.label is None
    assert speeds(results, ["a"], OURS, base) == [0.25, pytest.approx(0.25)]


@pytest.mark.parametrize("results", [RESULTS, RESULTS[-1:], [Result("a", OURS, 2.0, 0, 0, {"bound_ms": 0.5})]])
def test_chart(results: list[Result], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(tmp_path / "chart.png", results, "a caption")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_heatmap(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    slow = Label("pantile", "greedy", 2)
    results = [*RESULTS, *(Result(app, FAST, 1.0, 0, 0) for app in "abc"), Result("a", slow, 99.0, 0, 0)]
    draw_heatmap(tmp_path / "chart.png", results, "a caption")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
