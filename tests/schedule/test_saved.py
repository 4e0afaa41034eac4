"""A saved schedule may come from anywhere: whatever the text is, it is a schedule or refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pantile import schedule as pt
from pantile.errors import UserError
from pantile.schedule import Schedule

from .hostile import PLACES, TEXTS, filled


def saved(*directives: Any, stage: str = "f") -> str:
    return json.dumps({"format": 1, "stages": {stage: list(directives)}})


def assert_refused(text: Any) -> str:
    with pytest.raises(UserError) as caught:
        Schedule.from_json(text)
    message = str(caught.value)
    assert message.startswith(__file__)
    assert len(message) < 1000
    assert message.isprintable(), "no odd characters come through"
    return message


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_field_refuses_what_is_no_name(place: tuple[object, ...]) -> None:
    for text in TEXTS.values():
        # Some are expressions, which the pipeline will refuse.
        if place[0] != "specialize" or text not in ("0", "\ufb01"):
            assert_refused(saved(filled(place, text)))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_stages_and_verbs_refuse_it_too(text: str) -> None:
    assert_refused(saved(stage=text))
    assert_refused(saved([text, "x"]))


# Directives that are as good without what stands last in them.
WITHOUT_THEIR_LAST = [
    ("vectorize", "x", None),
    ("unroll", "x", None),
    ("parallel", "y", None),
    ("reorder", "x", None),
    ("reorder_storage", "x", None),
    ("update", None),
    ("clone_in", "g", "copy", None),
    ("copy_in", "g", "copy", None),
    ("copy_in", "g", "copy", "y", None),
]
WRONG: list[Any] = [None, True, False, 1.5, -1, 0.0, [], ["x"], {}, {"x": 1}, 10**30, -(10**30)]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_field_refuses_what_is_of_another_type(place: tuple[object, ...]) -> None:
    for value in WRONG:
        if value != {} or place not in WITHOUT_THEIR_LAST:
            assert_refused(saved(filled(place, value)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        (None, "the JSON object must be str, bytes or bytearray, not NoneType"),
        (b"\xff\xfe\xfa", "codec can't decode"),
        ("[" * 100_000, "its lists are nested too deeply"),
        ('{"format": 1, "stages": ' + '{"a": ' * 100_000, "its lists are nested too deeply"),
        ("[]", 'a schedule has "format": 1'),
        ('{"format": true, "stages": {}}', 'a schedule has "format": 1'),
        ('{"format": 1.0, "stages": {}}', 'a schedule has "format": 1'),
        ('{"format": 2, "stages": {}}', 'a schedule has "format": 1'),
        ('{"format": 1}', 'besides, it has "stages", an object with a list of directives for each'),
        ('{"format": 1, "stages": []}', 'besides, it has "stages"'),
        ('{"format": 1, "stages": {}, "more": 1}', 'besides, it has "stages"'),
        ('{"format": 1, "format": 1, "stages": {}}', "'format' occurs twice"),
        ('{"format": 1, "stages": {"f": [], "f": []}}', "'f' occurs twice"),
        ('{"format": 1, "stages": {"f": [["update", NaN]]}}', "NaN is not a number"),
        ('{"format": 1, "stages": {"f": [["update", -Infinity]]}}', "-Infinity is not a number"),
        ('{"format": 1, "stages": {"f": [["update", 1' + "0" * 5000 + "]]}}", "this is not a saved schedule"),
        ('{"format": 1, "stages": {"f": "xy"}}', "stage 'f' has 'xy' instead of a list of directives"),
        ('{"format": 1, "stages": {"f": null}}', "stage 'f' has None instead of a list"),
        (saved("xy"), '\'xy\' is not a directive, such as ["parallel", "y"]'),
        (saved([]), "[] is not a directive"),
        (saved([["parallel"], "y"]), "is not a directive"),
        (saved(["melt"]), "there is no directive 'melt'"),
        (saved(["_with", "split"]), "there is no directive '_with'"),
        (saved(["head"]), "there is no directive 'head'"),
        (saved(["verbs"]), "there is no directive 'verbs'"),
        (saved(["without_updates"]), "there is no directive 'without_updates'"),
        (saved(["__init__", "f"]), "there is no directive '__init__'"),
        (saved(["split", "x"]), "missing 3 required positional arguments"),
        (saved(["compute_root", "x"]), "takes 1 positional argument"),
        (saved(["vectorize", "x", None]), "has more than names and numbers, and a tail at its end"),
        (saved(["vectorize", "x", {"factor": 4}]), "has more than names and numbers"),
        (saved(["compute_root", {"tail": "auto"}]), "unexpected keyword argument 'tail'"),
        (saved(*[["compute_root"]] * 1001), "the stage has 1000 directives already"),
    ],
)
def test_what_is_no_saved_schedule_is_refused(text: Any, why: str) -> None:
    message = assert_refused(text)
    assert why in message


text = st.text(max_size=6)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=2),
    max_leaves=4,
)
directives = st.tuples(st.sampled_from(PLACES), anything).map(lambda p: filled(*p)) | anything


@given(st.dictionaries(text | st.just("f"), st.lists(directives, max_size=4) | anything, max_size=2))
def test_any_json_is_a_schedule_or_refused(stages: dict[str, Any]) -> None:
    try:
        schedule = Schedule.from_json(json.dumps({"format": 1, "stages": stages}))
    except UserError:
        return
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert eval(str(schedule), {"pt": pt}) == schedule


def test_what_only_changes_directives_is_none() -> None:
    with pytest.raises(UserError, match="with_factor"):
        Schedule.from_json('{"format": 1, "stages": {"f": [["split", "x", "a", "b", 4], ["with_factor", 0, 3, 8]]}}')
