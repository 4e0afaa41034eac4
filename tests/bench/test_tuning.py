"""Tuning: what is tried, who counts, and what is kept. Times are made up: each schedule takes what a table says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.bench import tuning
from pantile.bench.tuning import Trial, Tuning

SIZES = {"img": np.zeros((200, 300), np.float32)}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path))


class Clock:
    """Time passes only where somebody says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def pipeline() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, f, g = pt.Input("img", "float32", 2), pt.Func("f"), pt.Func("g")
    f[y, x] = pt.edge(img)[y, x - 1] + pt.edge(img)[y, x + 1]
    g[y, x] = f[y - 1, x] + f[y + 1, x]
    return pt.Pipeline(g, img.shape, machine=pt.machine.named("neoverse-n1"))


def tuned(monkeypatch: pytest.MonkeyPatch, time: Callable[[Trial], float], seconds: float = 16) -> Tuning:
    """A run in which every trial takes what `time` says, and a second to find that out."""
    clock = Clock()

    def timed(self: Trial, budget: float) -> None:
        clock.now += 1.0
        self.seconds = time(self)

    monkeypatch.setattr(Trial, "time", timed)
    found = Tuning(pipeline(), SIZES, seconds, 1, clock=clock)
    found.run()
    return found


def test_the_fastest_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, lambda t: 1.0 if t.name == "auto's choice" else 0.5)
    winner = found.winner()
    assert winner is not None and winner.name != "auto's choice"
    assert (winner.seconds, winner.auto_seconds, winner.tried) == (0.5, 1.0, len(found.trials))
    assert len({t.schedule for t in found.trials}) == len(found.trials) > 3
    assert any(t.name.endswith(", resized") for t in found.trials)


def test_a_gain_that_is_noise_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, lambda t: 1.0 if t.name == "auto's choice" else 0.995, seconds=10)
    winner = found.winner()
    assert winner is not None and winner.name == "auto's choice"


def test_wrong_results_cannot_win(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, *["differs"] * 1000])
    monkeypatch.setattr(Tuning, "_climb", lambda self: None)
    monkeypatch.setattr(tuning, "disagreement", lambda *_: next(answers))
    found = tuned(monkeypatch, lambda t: 1.0 if t.name == "auto's choice" else 0.1, seconds=10)
    winner = found.winner()
    assert winner is not None and (winner.name, winner.tried) == ("auto's choice", 1)
    assert len(found.trials) > 1 and all(t.wrong == "differs" for t in found.trials[1:])


def test_pixels_that_rounding_takes_to_the_other_side_of_a_step_are_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline from bytes to bytes by floats in between, none of which is stored."""
    y, x = pt.vars("y x")
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    f[y, x] = pt.cast("uint8", img[y, x] * 0.1 + 0.5)
    p = pt.Pipeline(f, machine=pt.machine.named("neoverse-n1"))
    monkeypatch.setattr(Trial, "time", lambda self, budget: setattr(self, "seconds", 1.0))
    found = Tuning(p, {"img": np.full((200, 300), 50, np.uint8)}, 10, 1, clock=Clock())

    class Rounded:
        rounding = p.rounding

        def __init__(self, off_by: int) -> None:
            self.off_by = off_by

        def __call__(self, **arguments: Any) -> np.ndarray:
            result = p(**arguments)
            result[3, 4:14] += self.off_by
            return result

    for off_by in (0, 1, 2):
        found._measure(str(off_by), pt.Schedule(), Rounded(off_by))
    wrong = "7 instead of 5 at [3, 4]; 10 of 60000 elements differ"
    assert [t.wrong for t in found.trials] == [None, None, wrong]


def test_the_time_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [len(tuned(monkeypatch, lambda t: 1.0, seconds).trials) for seconds in (1, 9)]
    assert tried[0] == 2 < tried[1] < 6


def test_the_best_so_far_outlives_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def time(self: Trial, budget: float) -> None:
        if len(found.trials) == 3:
            raise KeyboardInterrupt
        self.seconds = 1.0 if self is found.trials[0] else 0.5

    found = Tuning(pipeline(), SIZES, 300, 1, clock=Clock())
    monkeypatch.setattr(Trial, "time", time)
    assert found.winner() is None
    with pytest.raises(KeyboardInterrupt):
        found.run()
    winner = found.winner()
    assert winner is not None and (winner.seconds, winner.auto_seconds, winner.tried) == (0.5, 1.0, 2)
