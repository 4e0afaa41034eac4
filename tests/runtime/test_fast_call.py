"""Calls that are entered by native code: only where all arrays are what they were, and as if they were not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import pantile as pt
from pantile.runtime import fast_call

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
    assert fast_call.function() is not None or sys.implementation.name != "cpython"


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
            (found,) = calls._run_like(latest, {"img": img, "gain": gain}, None, 2) or [None]
            np.testing.assert_array_equal(found, expected(img, float(gain)))
    assert latest.clock.measured.calls == 10


def outcome(p: pt.Pipeline, img: Any) -> object:
    try:
        return p(img=img).tolist()
    except pt.UserError as error:
        return str(error).partition(")")[2]


@pytest.mark.parametrize("what", others())
def test_what_is_otherwise_is_not_entered(entered: pt.Pipeline, what: str) -> None:
    other, latest = others()[what], entered._calls.latest
    assert latest is not None
    assert entered._calls._run_like(latest, {"img": other}, None, 2) is None
    assert latest.clock.measured.calls == 1
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
    img, out = IMG.copy(), np.empty_like(IMG)
    counts = []
    for _ in range(1000):
        entered(img=img)
        entered(img=img, out=out)
        entered(img=img, out=(out,))
        with pytest.raises(pt.UserError):
            entered(img=img, out=img)
        counts.append((sys.getrefcount(img), sys.getrefcount(out), sys.getrefcount(img.dtype)))
    assert counts[0] == counts[-1]


# ---- given outputs


def run_like(p: pt.Pipeline, out: Any, **given: Any) -> list[Any] | None:
    assert p._calls.latest is not None
    return p._calls._run_like(p._calls.latest, given, out, 2)


def test_given_outputs(entered: pt.Pipeline) -> None:
    for out in (np.empty_like(IMG), np.empty((9, 8), "float32")[2:8]):
        for given in (out, [out], (out,)):
            out[...] = -1
            results = run_like(entered, given, img=IMG, gain=3)
            assert results is not None and results[0] is out
            np.testing.assert_array_equal(out, expected(IMG, 3))
    np.testing.assert_array_equal((run_like(entered, [None], img=IMG) or [None])[0], expected(IMG))


def test_outputs_of_another_layout_than_new_ones_have(entered: pt.Pipeline) -> None:
    wide = np.full((6, 16), -1, "float32")
    for _ in range(2):
        assert entered(img=IMG, out=wide[::-1, ::2]).base is wide
        np.testing.assert_array_equal(wide[::-1, ::2], expected(IMG))
        assert (wide[:, 1::2] == -1).all()
    assert run_like(entered, wide[::-1, ::2], img=IMG) is not None
    assert run_like(entered, None, img=IMG) is None
    np.testing.assert_array_equal(entered(img=IMG), expected(IMG))


CANARY = np.float32(-7)
ROOM = 4096  # elements of a canary on both sides


def with_canaries() -> tuple[Any, Any]:
    """An array of the picture's shape, and the memory around it."""
    memory = np.full(IMG.size + 2 * ROOM, CANARY)
    return memory, memory[ROOM:-ROOM].reshape(IMG.shape)


class Lying(np.ndarray[Any, Any]):
    """It says that it is as large as the picture."""

    shape = property(lambda self: IMG.shape)  # type: ignore[assignment]
    strides = property(lambda self: IMG.strides)  # type: ignore[assignment]


def locked(a: Any) -> Any:
    a = a.view()
    a.flags.writeable = False
    return a


OTHER_OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "shape": lambda a: a[:5], "another axis": lambda a: a[:, :7], "reversed": lambda a: a[::-1],
    "more axes": lambda a: a[None], "fewer axes": lambda a: a[0], "no axes": lambda a: a[0, 0, ...],
    "strides": lambda a: a.reshape(8, 6).T, "a row repeated": lambda a: as_strided(a, (6, 8), (0, 4)),
    "elements that overlap": lambda a: as_strided(a, (6, 8), (4, 4)),
    "type": lambda a: np.zeros(a.shape), "type of the same size": lambda a: a.view("int32"),
    "byte order": lambda a: a.view(">f4"), "read-only": locked, "empty": lambda a: a[:0],
    "misaligned": lambda a: np.ndarray(a.shape, "float32", a.base, 4 * ROOM + 1),
    "a class that lies": lambda a: a[:2, :2].view(Lying), "masked": np.ma.masked_array,
    "a list of rows": list, "two": lambda a: [a, a], "none": lambda a: [], "a nested list": lambda a: [[a]],
    "no array": lambda a: object(), "a type": lambda a: np.ndarray, "a number": lambda a: 3, "bytes": bytes,
}  # fmt: skip


def called_with(p: pt.Pipeline, what: str, call: Callable[..., Any]) -> tuple[str, list[float]]:
    """What is said of such an output, and what is in the memory around it."""
    memory, a = with_canaries()
    try:
        results = call(p, OTHER_OUTPUTS[what](a))
    except pt.UserError as error:
        return str(error), memory.tolist()
    if results is not None:
        np.testing.assert_array_equal(results, expected(IMG))
    return "", memory.tolist()


@pytest.mark.parametrize("what", OTHER_OUTPUTS)
def test_outputs_that_are_otherwise(entered: pt.Pipeline, what: str) -> None:
    entered(img=IMG, out=np.empty_like(IMG))
    _, memory = called_with(entered, what, lambda p, out: run_like(p, out, img=IMG))
    assert memory == with_canaries()[0].tolist()
    called, anew = (called_with(p, what, lambda p, out: p(img=IMG, out=out)) for p in (entered, pipeline()))
    assert called == anew
    assert called[1][:ROOM] == called[1][-ROOM:] == memory[:ROOM]
    np.testing.assert_array_equal(entered(img=IMG, out=np.empty_like(IMG)), expected(IMG))


def test_an_output_of_a_subclass(entered: pt.Pipeline) -> None:
    for out in (np.empty_like(IMG).view(Same), np.empty_like(IMG).view(np.recarray)):
        assert entered(img=IMG, out=out) is out
        np.testing.assert_array_equal(np.asarray(out), expected(IMG))
    img = IMG.copy()
    with pytest.raises(pt.UserError, match="memory of"):
        entered(img=img, out=img.view(Same))


# ---- arrays that overlap: the input and the output as views of one piece of memory

VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], str]] = {
    "one array": (lambda m: m[:6, :8], lambda m: m[:6, :8], "shared"),
    "a row further": (lambda m: m[:6, :8], lambda m: m[1:7, :8], "shared"),
    "a row before": (lambda m: m[5:11, :8], lambda m: m[:6, :8], "shared"),
    "an element further": (lambda m: m[:6, :8], lambda m: m[:6, 1:9], "shared"),
    "the last element": (lambda m: m[:6, :8], lambda m: m[5:11, 7:15], "shared"),
    "reversed": (lambda m: m[:6, :8], lambda m: m[5::-1, 7::-1], "shared"),
    "the first of reversed ones": (lambda m: m[11:5:-1, 15:7:-1], lambda m: m[6::-1, 8::-1][:6, :8], "shared"),
    "both reversed": (lambda m: m[5::-1, :8], lambda m: m[6:0:-1, :8], "shared"),
    "transposed": (lambda m: m[:6, :8], lambda m: m[:8, :6].T, "shared"),
    "a row that is repeated": (lambda m: np.broadcast_to(m[3, :8], (6, 8)), lambda m: m[:6, :8], "shared"),
    "every other column": (lambda m: m[:6, ::2], lambda m: m[:6, 1::2], "interleaved"),
    "every other column, reversed": (lambda m: m[:6, ::2], lambda m: m[:6, ::-2], "interleaved"),
    "every other row": (lambda m: m[:12:2, :8], lambda m: m[1:12:2, :8], "interleaved"),
    "left and right": (lambda m: m[:6, :8], lambda m: m[:6, 8:], "interleaved"),
    "rows in between": (lambda m: np.broadcast_to(m[3, :8], (6, 8)), lambda m: m[:6, 8:], "interleaved"),
    "above and below": (lambda m: m[:6, :8], lambda m: m[6:, :8], "apart"),
    "below and above": (lambda m: m[6:, :8], lambda m: m[:6, :8], "apart"),
    "neighbours": (lambda m: m[:3].reshape(6, 8), lambda m: m[3:6].reshape(6, 8), "apart"),
    "reversed neighbours": (lambda m: m[2::-1].reshape(6, 8), lambda m: m[5:2:-1, ::-1].reshape(6, 8), "apart"),
    "neighbours, one of them reversed": (lambda m: m[:3].reshape(6, 8), lambda m: m[3:6].reshape(6, 8)[::-1], "apart"),
}


@pytest.mark.parametrize("what", VIEWS)
def test_an_input_and_an_output_of_one_memory(what: str) -> None:
    of_input, of_output, how = VIEWS[what]
    p, memory = pipeline(), np.arange(192, dtype="float32").reshape(12, 16)
    before, elsewhere = memory.copy(), memory.copy()
    img, out = of_input(memory), of_output(memory)
    assert img.shape == out.shape == IMG.shape
    p(img=img, out=of_output(elsewhere))
    assert run_like(p, of_output(elsewhere), img=img) is not None
    results = expected(img.copy())
    assert (run_like(p, out, img=img) is not None) == (how == "apart")
    if how == "shared":
        assert (memory == before).all()
        with pytest.raises(pt.UserError, match="would be written into memory of Input 'img'"):
            p(img=img, out=out)
        assert (memory == before).all()
    else:
        np.testing.assert_array_equal(p(img=img, out=out), results)
        of_output(before)[...] = results
        assert (memory == before).all()


def test_outputs_of_one_memory() -> None:
    img, f = pt.Input("img", "float32", 1), pt.Func("f")
    f[X] = img[X], img[X] + 1
    p = pt.Pipeline(f, schedule="plain")
    row, memory = np.arange(8, dtype="float32"), np.zeros(32, "float32")
    p(img=row, out=[memory[:8], memory[16:24]])
    for n in range(25):
        for k, is_apart in ((8, n >= 16 or n == 0), (0, n >= 8)):
            memory[...] = CANARY
            out = (memory[k : k + 8], memory[n : n + 8])
            results = run_like(p, out, img=row)
            assert (results is not None) == is_apart
            if results is None:
                assert (memory == CANARY).all()
                with pytest.raises(pt.UserError, match="would be written into memory of output"):
                    p(img=row, out=out)
                assert (memory == CANARY).all()
            else:
                assert results[0] is out[0] and results[1] is out[1]
                np.testing.assert_array_equal(out, [row, row + 1])
                assert (memory != CANARY).sum() == 16


def test_one_of_two_outputs_is_given() -> None:
    img, f = pt.Input("img", "float32", 1), pt.Func("f")
    f[X] = img[X], img[X] + 1
    p, row, out = pt.Pipeline(f, schedule="plain"), np.arange(8, dtype="float32"), np.empty(8, "float32")
    p(img=row)
    for k, given in enumerate(((out, None), [None, out])):
        out[...] = CANARY
        results = run_like(p, given, img=row)
        assert results is not None and results[k] is out
        np.testing.assert_array_equal(results, [row, row + 1])
    with pytest.raises(pt.UserError, match="memory of"):
        p(img=row, out=(None, row))
    with pytest.raises(pt.UserError, match="holds 1 arrays"):
        p(img=row, out=out)


def test_an_empty_input_inside_of_the_output() -> None:
    img, f = pt.Input("img", "float32", 2), pt.Func("f")
    r = pt.RDom((0, img.shape[1]), name="r")
    f[Y] = pt.sum(img[Y, r[0]], over=r)
    p, out = pt.Pipeline(f, shape=(img.shape[0],), schedule="plain"), np.ones(6, "float32")
    for inside in (np.empty((6, 0), "float32"), np.ndarray((6, 0), "float32", out, 8)):
        out[...] = 1
        assert not p(img=inside, out=out).any()
    assert not p(img=np.empty((0, 4), "float32"), out=out[:0]).size


def test_ranges_are_those_of_numpy() -> None:
    """Of many views with strides of both signs, whether the bytes from the first to the last meet."""
    enter, rng = fast_call.function(), np.random.default_rng(0)
    first = fast_call._engine.get_function_address("pantile_is_first")
    memory = np.zeros(600, "int16")

    def view() -> Any:
        start, length = rng.integers(0, 300), rng.integers(1, 301)
        a = memory[start : start + length // 6 * 6].reshape(2, 3, -1)
        for axis in range(3):
            a = np.flip(a, axis) if rng.integers(2) else a
        a = a[:: rng.integers(1, 3), :: rng.integers(1, 4), rng.integers(0, 4) :: rng.integers(1, 4)]
        return a.transpose(rng.permutation(3))

    seen = set()
    for _ in range(400):
        a, b = view(), view()
        kind = fast_call.CallEntry(first, [a], [b], bytes(8 * 15), 0)
        code = enter([a, b], kind.address, b"", a.ctypes.data)
        may_share = np.may_share_memory(a, b)
        assert code == (fast_call.OTHERWISE if may_share else 0) or not (may_share or (a.size and b.size))
        seen.add(code)
        both_read = fast_call.CallEntry(first, [a, b], [], bytes(8 * 15), 0)
        assert enter([a, b], both_read.address, b"", a.ctypes.data) == 0
    assert seen == {0, fast_call.OTHERWISE}
