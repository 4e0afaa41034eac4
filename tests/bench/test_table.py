"""Ratios, means and what else the table shows."""

from __future__ import annotations

import pytest

from pantile.bench.contender import Label
from pantile.bench.result import Result, geometric_mean, ratio
from pantile.bench.table import render

OURS, ALONE, RIVAL = Label("pantile", "expert", 2), Label("pantile", "expert", 1), Label("halide", "manual", 2)


def result(app: str, label: Label, ms: float, **extra: object) -> Result:
    return Result(app, label, ms, 0.25, 0.0, {"median_ms": ms, **extra})


RESULTS = [result("a", ALONE, 3.8), result("a", OURS, 2.0), result("a", RIVAL, 4.0), result("b", OURS, 9.0)]


def test_ratio_needs_both() -> None:
    assert ratio(RESULTS, "a", OURS, RIVAL) == 0.5
    assert ratio(RESULTS, "b", OURS, RIVAL) is None


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_whole_text() -> None:
    lines = [" ".join(line.split()) for line in render(RESULTS).splitlines()]
    assert lines == [
        "app system schedule threads ms median compile s schedule s expert/this",
        "a pantile expert 1 3.800 3.800 0.250 0.0000",
        "a pantile expert 2 2.000 2.000 0.250 0.0000",
        "a halide manual 2 4.000 4.000 0.250 0.0000 0.50",
        "b pantile expert 2 9.000 9.000 0.250 0.0000",
        "",
        "time over time (< 1: ours is faster) threads apps mean",
        "pantile expert / halide manual 2 1 0.500",
        "",
        "a, pantile expert, 2 threads: 1.90 times as fast as one",
    ]


def test_what_was_asked_for_besides() -> None:
    text = render([result("a", OURS, 2.0, overhead_us=12.34, passes_s={"inline": 0.001, "llvm": 0.2})])
    assert "a, pantile expert, 2 threads: a call costs 12.3 us beyond its kernel" in text
    assert "a, expert: milliseconds per pass: inline 1.0, llvm 200.0" in text
