"""Comparing predictions with measurements: the numbers told, and the schedules that are tried."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from pantile.apps import APPS
from pantile.bench.console import Console
from pantile.bench.predictions import (
    MOST_POINTS,
    OnOneThread,
    PredictionResult,
    compare,
    draw,
    reduced,
    regret,
    spearman,
    table,
    variations,
)


def test_ranks_are_what_counts() -> None:
    assert spearman([1, 2, 3], [10, 20, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 2, 2], [1, 2, 3, 4]) == pytest.approx(0.894, abs=1e-3)  # equal ones share their ranks
    assert spearman([1, 1], [1, 2]) == 1


def test_table() -> None:
    results = [PredictionResult("a", "s", 1, 1), PredictionResult("a", "t", 3, 1.2), PredictionResult("b", "s", 1, 2.5)]
    lines = [" ".join(line.split()) for line in table(results)]
    assert lines[1] == "a 2 1.00 1.00 50 % 1.75 1.00 2.50"
    assert lines[3] == "all 3 1.00 1.00 33 % 1.00 0.40 2.50"
    assert regret([PredictionResult("a", "s", 2, 1), PredictionResult("a", "t", 1, 1.5)]) == 1.5


def test_shapes_are_reduced_alike() -> None:
    found = reduced({"img": (3, 2560, 1536), "lut": (40,)})
    assert found == {"img": (3, 640, 384), "lut": (40,)}
    assert reduced({"img": (70,) * 6}) == {"img": (70,) * 6} and MOST_POINTS < 70**6  # no axis is long


def test_schedules_differ_and_are_the_same_every_time() -> None:
    arguments = APPS["blur"].sizes["small"]
    found = [(how, p.schedule) for how, p in variations(APPS["blur"], arguments, 20)]
    assert len({s for _, s in found}) == len(found) == 20
    assert found == [(how, p.schedule) for how, p in variations(APPS["blur"], arguments, 20)]


def test_comparing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    found = compare([APPS["blur"]], 8, Console(), partial(OnOneThread, size="small"))
    assert len(found) == 8 and all(r.predicted_ms > 0 and r.measured_ms > 0 for r in found)
    draw(tmp_path / "chart.png", found, "blur")
    assert (tmp_path / "chart.png").stat().st_size > 0
