"""Descent: which of several changes are made, and in which order they are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pantile.autoschedule.search.descent import Descent

WORTH = 0.03
EITHER = {"little", "more"}  # changes that exclude each other


class Toy:
    """A state is what was changed, and each change leaves a part of the time."""

    def __init__(self, parts: Mapping[str, float], steps: int = 100) -> None:
        self.parts, self.steps = parts, steps
        self.evaluated: list[str] = []
        self.passed: list[str] = []  # since they were dear

    def descended(self) -> tuple[str, ...]:
        """What is changed in the end."""
        problem, candidates = cast(Any, self), cast(Any, None)
        descent = _Descent(problem, candidates, lambda: len(self.evaluated) >= self.steps, WORTH)
        end: Any = descent._improve(self.state(()), self.changes)
        return tuple(end.made)

    def state(self, made: tuple[str, ...]) -> Any:
        seconds = prod(self.parts[what] for what in made)
        return SimpleNamespace(candidate=SimpleNamespace(name="", schedule=None, seconds=seconds), made=made, rolls={})

    def changes(self, before: Any) -> Iterator[tuple[str, Any]]:
        for what in self.parts:
            if what not in before.made and not (what in EITHER and EITHER.intersection(before.made)):
                yield what, (*before.made, what)


class _Descent(Descent):
    """Of a toy, in the place of a problem."""

    def _evaluate(self, name: str, schedule: Any, how: Any, is_dear: bool = False) -> Any:
        toy: Any = self.problem
        (toy.passed if is_dear else toy.evaluated).append(how[-1])
        return None if is_dear else toy.state(how)


@pytest.fixture(autouse=True)
def no_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pantile.autoschedule.search.descent._cuts_rows", lambda before, after: False)


def test_the_best_is_made_whichever_comes_first() -> None:
    for parts in ({"little": 0.96, "more": 0.93}, {"more": 0.93, "little": 0.96}):
        assert Toy(parts).descended() == ("more",)


def test_others_are_made_on_top_of_it_and_what_is_not_worth_it_is_not() -> None:
    toy = Toy({"one": 0.96, "nothing": 0.99, "two": 0.93, "three": 0.95})
    assert toy.descended() == ("two", "three", "one")


def test_what_gains_much_is_made_at_once() -> None:
    toy = Toy({"much": 0.8, "most": 0.7})
    assert toy.descended() == ("much", "most") and toy.evaluated == ["much", "most"]


def test_what_was_dear_is_not_priced_again() -> None:
    toy = Toy({"dear": 1.5, "near": 1.01, "one": 0.95})
    assert toy.descended() == ("one",)
    assert toy.evaluated.count("dear") == 1 and toy.passed == ["dear"]
    assert toy.evaluated.count("near") == 2


@pytest.mark.parametrize(("steps", "made"), [(0, ()), (1, ("one",)), (2, ("two",)), (3, ("two", "one"))])
def test_it_ends_with_the_best_so_far(steps: int, made: tuple[str, ...]) -> None:
    assert Toy({"one": 0.96, "two": 0.93}, steps).descended() == made
