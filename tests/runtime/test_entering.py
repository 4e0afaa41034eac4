"""Calls that are entered by native code: only where all arrays are what they were, and as if they were not."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.runtime import entering

Y, X = pt.vars("y x")
IMG = np.arange(48, dtype="float32").reshape(6, 8)


def pipeline(**options: Any) -> pt.Pipeline:
    img, gain, f = pt.Input("img", "float32", 2), pt.Param("gain", "float32", 2), pt.Func("f")
    lut = pt.table(np.arange(8, dtype="float32") * 100)
    f[Y, X] = img[Y, X] * gain + lut[X % 8]
    return pt.Pipeline(f, schedule="plain", **options)


def expected(img: Any, gain: float = 2) -> Any:
    return np.asarray(img) * np.float32(gain) + 100 * (np.arange(img.shape[1], dtype="float32") % 8)


def test_structures_are_what_they_are_said_to_be() -> None:
    assert entering.function() is not None or sys.implementation.name != "cpython"


class Same(np.ndarray[Any, Any]):
    pass


def others() -> dict[str, Any]:
    locked = IMG.copy()
    locked.flags.writeable = False
    return {
        "shape": IMG[:5], "another axis": IMG[:, :7], "strides": np.asfortranarray(IMG), "reversed": IMG[::-1],
        "a row repeated": np.broadcast_to(IMG[0], IMG.shape), "more axes": IMG[None], "type": IMG.astype("float64"),
        "type of the same size": IMG.view("int32"), "byte order": IMG.astype(">f4"), "flags": locked,
        "misaligned": np.zeros(6 * 8 * 4 + 1, "uint8")[1:].view("float32").reshape(6, 8), "class": IMG.view(Same),
        "a list": IMG.tolist(), "nothing": None, "no array": object(), "empty": IMG[:0], "a type": np.ndarray,
    }  # fmt: skip


@pytest.fixture
def entered() -> pt.Pipeline:
    p = pipeline()
    p(img=IMG)
    assert p._calls.latest is not None and p._calls.latest.enter is not None
    return p


def test_a_call_like_the_one_before(entered: pt.Pipeline) -> None:
    calls, latest = entered._calls, entered._calls.latest
    assert latest is not None
    for img in (IMG, IMG + 1, np.pad(IMG, 3)[3:-3, 3:-3].copy()):
        for gain in (2, 0.5, np.float64(3)):
            (found,) = calls._run_like(latest, {"img": img, "gain": gain}, 2) or [None]
            np.testing.assert_array_equal(found, expected(img, float(gain)))
    assert latest.clock.timed.calls == 10


def outcome(p: pt.Pipeline, img: Any) -> object:
    try:
        return p(img=img).tolist()
    except pt.UserError as error:
        return str(error).partition(")")[2]


@pytest.mark.parametrize("what", others())
def test_what_is_otherwise_is_not_entered(entered: pt.Pipeline, what: str) -> None:
    other, latest = others()[what], entered._calls.latest
    assert latest is not None
    assert entered._calls._run_like(latest, {"img": other}, 2) is None
    assert latest.clock.timed.calls == 1
    assert outcome(entered, other) == outcome(pipeline(), other)
    np.testing.assert_array_equal(entered(img=IMG), expected(IMG))


def test_an_array_that_changes_in_place(entered: pt.Pipeline) -> None:
    img = IMG.copy()
    for shape in ((6, 8), (8, 6), (4, 12), (6, 8)):
        img.shape = shape
        np.testing.assert_array_equal(entered(img=img), expected(img))


def test_names_and_numbers_are_checked(entered: pt.Pipeline) -> None:
    for wrong in ({"img": IMG, "gian": 2}, {"gain": 2}, {"img": IMG, "gain": "two"}, {"img": IMG, "gain": 1e39}):
        with pytest.raises(pt.UserError):
            entered(**wrong)
    with pytest.raises(pt.UserError):
        entered(img=IMG, num_threads=0)


def test_params_that_decide_are_looked_at() -> None:
    n, f = pt.Param("n", "int32"), pt.Func("f")
    f[X] = pt.Input("img", "float32", 1)[X + n]
    p = pt.Pipeline(f, shape=(4,), schedule="plain")
    row = np.arange(9, dtype="float32")
    assert p(img=row, n=1)[0] == 1 and p(img=row, n=5)[0] == 5
    with pytest.raises(pt.UserError, match="leaves Input"):
        p(img=row, n=6)


def test_debug_builds_report() -> None:
    p = pipeline(debug=True)
    np.testing.assert_array_equal(p(img=IMG), expected(IMG))
    assert p._calls.latest is not None and p._calls.latest.enter is None


def test_no_reference_is_lost_or_kept(entered: pt.Pipeline) -> None:
    img = IMG.copy()
    before = sys.getrefcount(img), sys.getrefcount(img.dtype)
    for _ in range(1000):
        entered(img=img)
    assert (sys.getrefcount(img), sys.getrefcount(img.dtype)) == before
