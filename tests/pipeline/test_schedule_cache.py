"""What a strategy found is there for the next process, for the same question only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES, Found, Greedy, Problem
from pantile.runtime import cache

MACHINE = pt.machine.named("i7-6700")
MODELS = [name for name, s in STRATEGIES.items() if s.for_cpus and not s.measures]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path))


def pipeline(strategy: Any, size: tuple[int, int] = (480, 640), machine: pt.machine.Machine = MACHINE) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, rows, out = pt.Input("img", "float32", 2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = pt.edge(img)[y, x - 1] * img[y, x] + img[y, x]
    out[y, x] = pt.edge(img)[y, x] + rows[y, x]
    return pt.Pipeline(out, img.shape, schedule=strategy, estimates={"img": size}, machine=machine)


class Searched(Exception):
    """Somebody did."""


def no_search(monkeypatch: pytest.MonkeyPatch, strategy: type) -> None:
    def find(self: object, problem: Problem) -> Found:
        raise Searched

    monkeypatch.setattr(strategy, "find", find)


@pytest.mark.parametrize("strategy", MODELS)
def test_the_same_question_is_not_searched_again(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    first = pipeline(strategy)
    no_search(monkeypatch, STRATEGIES[strategy])
    second = pipeline(strategy)
    assert second.schedule == first.schedule
    assert second.explain() == first.explain()


def test_another_question_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline("greedy")
    no_search(monkeypatch, Greedy)
    pipeline(Greedy())
    for other in [
        lambda: pipeline("greedy", size=(481, 640)),
        lambda: pipeline("greedy", machine=pt.machine.named("neoverse-n1")),
        lambda: pipeline(Greedy(load_cost=11)),
        lambda: pipeline("greedy").with_options(strict=True),
    ]:
        with pytest.raises(Searched):
            other()


NOTHING = [b"", b"null", b"[]", b'["{}", {}]', b'["{\\"format\\": 1}", {"groups": 5}]', b"\xff"]


@pytest.mark.parametrize("content", NOTHING)
def test_what_is_no_schedule_is_searched_again(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    first = pipeline("greedy").schedule
    written = []
    monkeypatch.setattr(cache, "read", lambda name: content)
    monkeypatch.setattr(cache, "write", lambda name, data: written.append(data))
    assert pipeline("greedy").schedule == first
    assert written


def test_other_peoples_strategies_are_asked_each_time() -> None:
    asked = []

    class Mine(Greedy):
        def find(self, problem: Problem) -> Found:
            asked.append(problem)
            return super().find(problem)

    pipeline(Mine())
    pipeline(Mine())
    assert len(asked) == 2
