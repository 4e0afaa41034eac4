"""Descent: which of several changes are made, and in which order they are looked at."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pantile.autoschedule.search.descent import Descent

WORTH = 0.03
# What each change leaves of the time; those of "either" exclude each other.
GAINS = {"little": 0.96, "more": 0.93, "nothing": 0.99, "dear": 1.5}
EITHER = {"little", "more"}


class Made(Descent):
    """Prices that changes multiply."""

    def _priced(self, name: str, schedule: Any, how: Any, is_dear: bool = False) -> Any:
        looked_at.append(how[-1])
        return None if is_dear else state(how)


looked_at: list[str] = []


def state(made: tuple[str, ...]) -> Any:
    seconds = 1.0
    for what in made:
        seconds *= gains[what]
    return SimpleNamespace(candidate=SimpleNamespace(name="", schedule=None, seconds=seconds), made=made, rolls={})


gains: dict[str, float] = {}


def changes(before: Any) -> Iterator[tuple[str, Any]]:
    for what in gains:
        if what not in before.made and not (what in EITHER and EITHER.intersection(before.made)):
            yield what, (*before.made, what)


def made(monkeypatch: pytest.MonkeyPatch, of: dict[str, float], steps: int = 100) -> tuple[str, ...]:
    looked_at.clear()
    gains.clear()
    gains.update(of)
    monkeypatch.setattr("pantile.autoschedule.search.descent._cuts_rows", lambda before, after: False)
    descent = Made(None, None, lambda: len(looked_at) >= steps, WORTH)  # type: ignore[arg-type]
    return descent._improved(state(()), changes).made


def test_the_best_is_made_whichever_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(monkeypatch, {"little": 0.96, "more": 0.93}) == ("more",)
    assert made(monkeypatch, {"more": 0.93, "little": 0.96}) == ("more",)


def test_others_are_made_on_top_of_it_and_what_is_not_worth_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(monkeypatch, {"one": 0.96, "nothing": 0.99, "two": 0.93, "three": 0.95}) == ("two", "three", "one")


def test_what_gains_much_is_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(monkeypatch, {"much": 0.8, "most": 0.7}) == ("much", "most")
    assert looked_at[0] == "much" and looked_at[1] == "most"


def test_what_was_dear_is_not_priced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for, and passed."""
    assert made(monkeypatch, {"dear": 1.5, "one": 0.95}) == ("one",)
    assert looked_at.count("dear") == 2


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_it_ends_with_the_best_so_far(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    expected = {0: (), 1: ("one",), 2: ("two",), 3: ("two", "one")}
    assert made(monkeypatch, {"one": 0.96, "two": 0.93}, steps) == expected[steps]
