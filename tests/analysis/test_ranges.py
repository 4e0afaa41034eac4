"""Ranges of values that flow through stages into indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.analysis import ranges
from pantile.analysis.ranges import with_ranges
from pantile.graph.nodes import Definition, Stage
from pantile.lang.build import build

X, Y, Z = pt.vars("x y z")
DATA, FLOATS = pt.Input("data", "int32", 1), pt.Input("floats", "float32", 1)
LUT = pt.Input("lut", "float32", 1)
data = np.random.default_rng(0).integers(-(2**31), 2**31, 60).astype(np.int32)
floats = np.concatenate([np.random.default_rng(1).normal(size=59), [np.nan]]).astype(np.float32)
lut = np.linspace(0, 1, 10, dtype=np.float32)
ARRAYS = {"data": data, "floats": floats, "lut": lut}


def func(value: Any, name: str = "g") -> pt.Func:
    f = pt.Func(name)
    f[X] = value
    return f


def assert_agrees(value: Any, *roots: str, **params: Any) -> None:
    """Both computed at once and stored, compared with the reference (which checks that ranges hold)."""
    p = pt.Pipeline(func(value, "out"), shape=(60,))
    given = {i.name: ARRAYS[i.name] for i in p.graph.arguments} | params
    stored = [pt.on(name).compute_root() for name in roots or ("g",)]
    for q in (p, p.with_schedule(pt.Schedule(*stored))):
        np.testing.assert_array_equal(q(**given), p.reference(**given))


def updated() -> pt.Func:
    r = pt.RDom((0, 60))
    g = func(3)
    g[r[0]] = pt.select(DATA[r[0]] > 0, pt.minimum(g[r[0]] + 5, 9), g[r[0]])
    return g


BOUNDED: dict[str, Any] = {
    "clamp": lambda: LUT[func(pt.clamp(DATA[X] * 2, 0, 9))[X]],
    "clamp to an extent": lambda: LUT[func(pt.clamp(DATA[X] * 2, 0, LUT.shape[0] - 1))[X]],
    "remainder": lambda: LUT[func(DATA[X] % 10)[X]],
    "arithmetic on it": lambda: LUT[9 - 2 * func(pt.clamp(DATA[X], 0, 4))[X]],
    "through two Funcs": lambda: LUT[func(func(pt.clamp(DATA[X], 0, 4), "h")[59 - X] * 2 + 1)[X]],
    "floats": lambda: LUT[pt.cast("int32", func(pt.clamp(FLOATS[X], 0, 1))[X] * 9)],
    "one of two values": lambda: LUT[func((DATA[X], pt.clamp(DATA[X], 0, 9)))[X][1]],
    "updates": lambda: LUT[updated()[X]],
    "at a place from data": lambda: LUT[func(pt.clamp(DATA[X], 0, 9))[func(DATA[X] & 31, "h")[X]]],
    "table": lambda: LUT[pt.table([3, 9, 0, 4])[func(DATA[X] % 4)[X]]],
    "stored at a place": lambda: func(LUT[pt.clamp(X, 0, 9)])[func(pt.clamp(DATA[X], -3, 12), "h")[X]],
}


@pytest.mark.parametrize("make", BOUNDED.values(), ids=BOUNDED)
def test_indices_read_from_funcs_have_the_range_of_their_values(make: Any) -> None:
    assert_agrees(make())


def test_ranges_made_of_params_meet_numbers_that_no_index_has() -> None:
    k = pt.Param("k", "uint32")
    base = pt.cast("uint64", pt.clamp(pt.cast("int32", k), 0, 5))
    assert_agrees(LUT[pt.clamp(func(base + pt.cast("uint64", DATA[X]) // 2)[X], 0, 9)], k=3)
    assert_agrees(LUT[pt.clamp(func(pt.select(DATA[X] > 0, base, pt.cast("uint64", DATA[X])))[X], 0, 9)], k=2**32 - 1)


def test_ranges_of_which_params_decide_have_ends_that_are_numbers() -> None:
    """Where either a param or data is chosen, what limits both is known, as is then how much of a stage is read."""
    gain = pt.Param("gain", "int16")
    level = func(pt.clamp(pt.select(X >= 4, gain, pt.cast("int16", DATA[X])), 0, 9), "level")
    cube = pt.Func("cube")
    cube[Z, Y, X] = LUT[pt.clamp(X, 0, 9)] + LUT[pt.clamp(Y, 0, 9)] + LUT[pt.clamp(Z, 0, 9)]
    place = pt.cast("int32", level[X]) - 1
    assert_agrees(cube[place, place, place], "level", "cube", gain=300)


def test_ranges_that_params_bound_loosely_are_within_the_type() -> None:
    """Whatever k is, the product is known no better than to be in 0..65025, of which int16 has a part only."""
    k = pt.Param("k", "int8")
    picture = pt.Input("picture", "uint8", 1)
    least = func(pt.cast("uint8", pt.minimum(3, k)), "least")
    level = func(pt.cast("int16", picture[X] * least[X]), "level")
    stored = func(X * 2, "stored")
    out = func(stored[pt.clamp(pt.cast("int32", level[X]), 0, 15)], "out")
    p = pt.Pipeline(out, shape=picture.shape, schedule=pt.Schedule(pt.on(stored).compute_root()))
    arguments = {"picture": np.arange(256, dtype=np.uint8), "k": 1}
    np.testing.assert_array_equal(p(**arguments), p.reference(**arguments))


def test_a_shift_that_leaves_little_of_coordinates_and_data() -> None:
    stored = func(X * 2)
    p = pt.Pipeline(func(stored[pt.cast("int32", (X - pt.cast("uint32", DATA[X])) >> 61)], "out"), shape=DATA.shape)
    q = p.with_schedule(pt.Schedule(pt.on("g").compute_root()))
    assert str(2**31) not in q.loops(), "room for all that an int32 can be"
    np.testing.assert_array_equal(q(data=data), p.reference(data=data))


def test_writes_at_places_from_funcs() -> None:
    bins, r = func(DATA[X] % 10), pt.RDom((0, 60))
    hist = func(0, "hist")
    hist[bins[r[0]]] += 1
    p = pt.Pipeline(hist, shape=(10,))
    np.testing.assert_array_equal(p(data=data), np.bincount(data % 10, minlength=10))


def test_what_updates_may_leave_is_not_promised() -> None:
    r = pt.RDom((0, 60))
    g = func(3)
    g[r[0]] = g[r[0]] + 1
    p = pt.Pipeline(func(LUT[g[X]], "out"), shape=(60,))
    with pytest.raises(pt.UserError, match=r"reads lut\[g\[x\]\], which leaves Input 'lut'"):
        p(lut=lut)


def test_nothing_is_written_where_an_index_has_limits_of_its_own() -> None:
    g = func(pt.clamp(DATA[X], 0, 9))
    graph = build(func(LUT[pt.clamp(g[X], 0, 9)] + func(pt.cast("uint8", DATA[X]), "h")[X], "out"), (60,))
    assert with_ranges(graph).stages == graph.stages


@pytest.mark.parametrize("length", [20, 40])
def test_each_stage_is_looked_at_once(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    seen: list[str] = []
    plain = ranges._values

    def counting(s: Stage, d: Definition, known: ranges.Ranges) -> ranges.Ranges:
        seen.append(s.name)
        return plain(s, d, known)

    monkeypatch.setattr(ranges, "_values", counting)
    g = func(pt.clamp(DATA[X], 0, 4))
    for k in range(length):
        g = func(pt.minimum(g[X] + g[59 - X], 4), f"g{k}")
    with_ranges(build(func(LUT[g[X]], "out"), (60,)))
    assert len(seen) == length + 1


# ---- numbers that only a call knows


SCALE, COUNT = pt.Param("scale", "float32"), pt.Param("count", "int32")
UNIT = pt.clamp(FLOATS[X], 0, 1)
HIDDEN = {
    "divided": (UNIT / SCALE, {"scale": 0.2}),
    "multiplied": (UNIT * SCALE, {"scale": 9.0}),
    "clamped": (pt.clamp(FLOATS[X], 0, SCALE), {"scale": 9.0}),
    "an integer as a float": (UNIT * pt.cast("float32", COUNT), {"count": 9}),
}


@pytest.mark.parametrize(("value", "params"), HIDDEN.values(), ids=HIDDEN)
def test_a_float_index_that_a_param_scales(value: Any, params: dict[str, Any]) -> None:
    """An array that is there is read, and of a stage what is read is stored, not all of int32."""
    index = pt.cast("int32", value)
    assert_agrees(LUT[index], "out", **params)
    stored = pt.Schedule(pt.on("g").compute_root())
    for place in (index, pt.clamp(index, 0, 9)):
        p = pt.Pipeline(func(func(LUT[pt.clamp(X, 0, 9)])[place], "out"), (60,), schedule=stored)
        given = {"lut": lut, "floats": floats, **params}
        np.testing.assert_array_equal(p(**given), p.reference(**given))
        assert "2147483647" not in p.loops()


def test_a_place_to_write_that_a_param_scales() -> None:
    r = pt.RDom((0, 60))
    g = func(0)
    g[pt.cast("int32", pt.clamp(FLOATS[r[0]], 0, 1) * SCALE)] += 1
    p = pt.Pipeline(func(g[X] + g[X + 1], "out"), (9,))
    given = {"floats": floats, "scale": 9.0}
    np.testing.assert_array_equal(p(**given), p.reference(**given))


def test_a_float_index_of_which_code_knows_nothing() -> None:
    """A call knows how large it is; code computes ends in 32 and 64 bits only."""
    index = pt.cast("int32", pt.cast("float16", UNIT) * pt.cast("float16", SCALE))
    stored = pt.Schedule(pt.on("g").compute_root())
    p = pt.Pipeline(func(func(LUT[pt.clamp(X, 0, 9)])[index], "out"), (60,), schedule=stored)
    match = r"what is read of it at .*test_ranges.py:\d+, g\[int32\(.*\], has no known limits: .*; limit it with"
    with pytest.raises(pt.UserError, match=match):
        p(lut=lut, floats=floats, scale=9.0)
