"""`pantile.dataclass` against Python's: the same to all who use it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from pantile import dataclass as ours


def define(dataclass: Any) -> list[type]:
    @dataclass(frozen=True)
    class Range:
        """Frozen, with defaults, and something that is not compared."""

        lo: int
        hi: int = 7
        note: str = dataclasses.field(default="", compare=False, repr=False)
        sure: bool = dataclasses.field(default=False, kw_only=True)

    @dataclass
    class Notes:
        """Not frozen, with a list of its own, and checked."""

        lo: int
        found: list[int] = dataclasses.field(default_factory=list)

        def __post_init__(self) -> None:
            self.lo += 1

    @dataclass(frozen=True, eq=False)
    class Same:
        """Compared by identity."""

        lo: object

    @dataclass(frozen=True, repr=False)
    class Named:
        """With a text of its own."""

        lo: object

        def __repr__(self) -> str:
            return f"<{self.lo}>"

    @dataclass(eq=False, slots=True)
    class Node:
        """With slots, something that is not given, and something derived."""

        lo: int
        found: object = dataclasses.field(default=None, init=False)

    @dataclass(eq=False, slots=True)
    class Sum(Node):
        """Has the other's field first."""

        hi: int = 3

    return [Range, Notes, Same, Named, Node, Sum]


CLASSES = list(zip(define(ours.dataclass), define(dataclasses.dataclass), strict=True))
USES: list[Callable[[Any], Any]] = [
    lambda c: str(inspect.signature(c)).replace(str(dataclasses.MISSING), "<factory>").partition(" -> ")[0],
    lambda c: [repr(c(1)), repr(c(lo=2))],
    lambda c: [c(1) == c(1), c(1) == c(2), c(1) != c(1), c(1).__eq__(1)],
    lambda c: [c.__hash__ is None, c.__hash__ is object.__hash__],
    lambda c: hash(c(1)) == hash((1, 7, False)) if c.__name__ == "Range" else None,
    lambda c: [repr(dataclasses.replace(c(1), lo=5)), dataclasses.asdict(c(1))],
    lambda c: [f.name for f in dataclasses.fields(c)],
    lambda c: [repr(copy.copy(c(1))), repr(copy.deepcopy(c(1))), c.__match_args__, "__slots__" in vars(c)],
    lambda c: setattr(c(1), "lo", 3),
    lambda c: delattr(c(1), "lo"),
    lambda c: c(),
    lambda c: c(1, 2, 3, 4, 5),
    lambda c: c(1, other=3),
    lambda c: repr(dataclasses.dataclass(frozen=True)(type("Derived", (c,), {}))(1)),
]


def outcome(use: Callable[[Any], Any], cls: type) -> object:
    try:
        return use(cls)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("light", "python"), CLASSES, ids=[c.__name__ for c, _ in CLASSES])
def test_it_is_used_as_that_of_python(light: type, python: type, use: Callable[[Any], Any]) -> None:
    assert outcome(use, light) == outcome(use, python)


@ours.dataclass(frozen=True)
class Kept:
    """What pickles by name."""

    lo: int
    inside: object = None


def test_it_pickles() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, Kept(2)))) == Kept(1, Kept(2))


def test_what_holds_itself_is_shown() -> None:
    found: list[object] = []
    found.append(Kept(1, found))
    assert repr(found[0]) == "Kept(lo=1, inside=[...])"


def test_methods_are_written_when_they_are_first_asked_for() -> None:
    cls: Any = define(ours.dataclass)[0]
    methods = ("__init__", "__eq__", "__hash__")
    assert not any(inspect.isfunction(vars(cls)[m]) for m in methods)
    assert {cls(1): 2}[cls(1)] == 2
    assert all(inspect.isfunction(vars(cls)[m]) for m in methods)


@ours.hashed_once
@ours.dataclass(frozen=True)
class Long:
    """Remembers its hash."""

    parts: tuple[str, ...]
    note: str = dataclasses.field(default="", compare=False)


def test_hashes_that_are_remembered_stay_in_their_process() -> None:
    one, same, other = Long(("a", "b"), "first"), Long(("a", "b"), "second"), Long(("a",))
    assert {one: 1}[same] == 1 and hash(one) == hash(same) and other not in {one}
    assert "_hash" in vars(one)
    for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), dataclasses.replace(one)):
        assert again == one and "_hash" not in vars(again) and hash(again) == hash(one)


@ours.value()
class Many:
    """Frozen for the type checker alone."""

    lo: int
    hi: int = 7


@ours.value(eq=False)
class Same:
    """Compared by identity."""

    lo: int


def test_values_of_which_there_are_many_are_dataclasses_too() -> None:
    assert Many(1) == Many(lo=1, hi=7) != Many(1, 8) and {Many(1): 2}[Many(1)] == 2
    assert repr(dataclasses.replace(Many(1), hi=3)) == "Many(lo=1, hi=3)"
    assert Same(1) != Same(1) and dataclasses.asdict(Same(1)) == {"lo": 1}
