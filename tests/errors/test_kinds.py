"""What an error is to those who catch it, and to those who read its traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt

from .pipelines import IMG, X, Y, defined, picture, pipeline, with_param

PACKAGE = os.path.dirname(pt.__file__) + os.sep


class Broken:
    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.read()

    def read(self) -> Any:
        raise LookupError("no such file")


OF_WRONG_TYPE: dict[str, Callable[[], object]] = {
    "dtype of an array": lambda: pipeline()(img=picture(dtype="float64")),
    "no array": lambda: pipeline()(img=Broken()),
    "no array as output": lambda: pipeline()(img=picture(), out="result"),
    "a param": lambda: with_param("int32")(img=picture(), p=2.5),
    "number of threads": lambda: pipeline()(img=picture(), num_threads="two"),
    "by position": lambda: pipeline()(picture()),
    "an unknown name": lambda: pipeline()(img=picture(), gain=2),
    "a missing input": lambda: pipeline()(),
    "an operand": lambda: IMG[Y, X] + "one",
    "an index": lambda: IMG[Y, 0.5],
    "an index of an array": lambda: np.arange(9)[IMG[Y, X]],
    "a Func that is called": lambda: defined()(Y, X),
    "what is sampled": lambda: pt.sample(IMG[Y, X], Y, X),  # type: ignore[arg-type]
    "an output of a pipeline": lambda: pt.Pipeline("f"),  # type: ignore[arg-type]
    "a pixel type": lambda: pt.cast("string", IMG[Y, X]),
    "an option": lambda: pipeline(strict="yes"),
}
OF_WRONG_VALUE: dict[str, Callable[[], object]] = {
    "shape of an array": lambda: pipeline()(img=picture(8, 9, 3)),
    "a param out of range": lambda: with_param("uint8")(img=picture(), p=300),
    "a number out of range": lambda: IMG[Y, X] + 300,
    "reading outside": lambda: pipeline(lambda img: img[Y + 1, X])(img=picture()),
    "a strategy": lambda: pipeline(schedule="best"),
    "a directive": lambda: pt.on("f").split("x", "xo", "xi", 0),
    "a saved schedule": lambda: pt.Schedule.from_json("{}"),
    "a second definition": lambda: defined().__setitem__((Y,), 1),
}
MISTAKES = OF_WRONG_TYPE | OF_WRONG_VALUE


def raised(mistake: Callable[[], object]) -> pt.UserError:
    with pytest.raises(pt.UserError) as caught:
        mistake()
    return caught.value


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_one_of_pythons_kinds(what: str) -> None:
    error = raised(MISTAKES[what])
    assert isinstance(error, ValueError)
    assert isinstance(error, TypeError) == isinstance(error, pt.UserTypeError) == (what in OF_WRONG_TYPE)


def of_pantile(error: BaseException | None) -> list[str]:
    frames = traceback.extract_tb(None if error is None else error.__traceback__)
    return [f"{f.filename}:{f.lineno}" for f in frames if f.filename.startswith(PACKAGE)]


@pytest.mark.parametrize("what", MISTAKES)
def test_a_traceback_ends_at_what_was_called(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_VERIFY", "0")
    error = raised(MISTAKES[what])
    frames = traceback.extract_tb(error.__traceback__)
    assert len(of_pantile(error)) == 1 and frames[-1].filename.startswith(PACKAGE)
    assert frames[-2].filename.startswith(os.path.dirname(__file__))
    shown = "".join(traceback.format_exception(error))
    assert shown.count(PACKAGE) == 1 and "During handling of the above exception" not in shown


def test_an_index_of_an_array_is_one_wherever_frames_lie() -> None:
    """Frames that somebody keeps, as debuggers do, have no place in memory that those of later calls could have."""
    kept: list[Any] = []
    sys.setprofile(lambda frame, *_: kept.append(frame))
    try:
        with pytest.raises(pt.UserTypeError, match="make it a table first"):
            OF_WRONG_TYPE["an index of an array"]()
    finally:
        sys.setprofile(None)
    assert kept


def test_what_users_functions_raise_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_VERIFY", "0")
    error = raised(OF_WRONG_TYPE["no array"])
    assert isinstance(error.__cause__, LookupError) and not of_pantile(error.__cause__)
    assert [f.name for f in traceback.extract_tb(error.__cause__.__traceback__)] == ["__array__", "read"]


def test_functions_of_users_that_pantile_calls_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_VERIFY", "0")

    def step(f: Any) -> Any:
        return f[Y, X] + "one"

    error = raised(lambda: pt.iterate(defined(), step, times=2))
    assert "step" in [f.name for f in traceback.extract_tb(error.__traceback__)]
    assert len(of_pantile(error)) == 1


def test_those_who_look_for_a_mistake_of_ours_see_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_VERIFY", "1")
    assert len(of_pantile(raised(OF_WRONG_TYPE["dtype of an array"]))) > 2


def test_internal_errors_keep_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_VERIFY", "0")
    p = pipeline()

    def fail(*_: object) -> None:
        raise pt.InternalError("a rule is broken")

    monkeypatch.setattr(p._calls, "_prepare", fail)
    with pytest.raises(pt.InternalError) as caught:
        p(img=np.ones((3, 4), "uint8"))
    assert len(of_pantile(caught.value)) > 1
