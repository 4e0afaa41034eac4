"""Lanes at places that data decide are loaded by one instruction, on cores where that is fast."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.target import Target, description
from tests.fuzz.guarded import guarded

FAST = ("sapphirerapids", "emeraldrapids", "graniterapids")
SLOW = ("skylake-avx512", "icelake-server", "tigerlake", "znver3", "x86-64-v4")
Y, X = pt.vars("y x")


def table(dtype: str, places: Callable[[Any], list[Any]], tail: str = "auto") -> pt.Pipeline:
    """A sum of elements of a row of a table, at places that another picture says."""
    at, rows, out = pt.Input("at", "int16", ndim=2), pt.Input("rows", dtype, ndim=2), pt.Func("out")
    total: Any = 0
    for k, place in enumerate(places(pt.cast("int32", at[Y, X]))):
        total = total + (k + 1) * rows[pt.clamp(Y, 0, rows.shape[0] - 1), pt.clamp(place, 0, rows.shape[1] - 1)]
    out[Y, X] = total
    return pt.Pipeline(out, shape=at.shape, schedule=pt.Schedule(pt.on("out").vectorize("x", 16, tail=tail)))


def pairs(dtype: str) -> pt.Pipeline:
    """Two elements side by side, of a level that data decide, at every second pixel."""
    at, levels = pt.Input("at", "int16", ndim=2), pt.Input("levels", dtype, ndim=3, shape=(None, None, 8))
    out = pt.Func("out")
    level = pt.clamp(pt.cast("int32", at[Y, X]), 0, 6)
    out[Y, X] = levels[Y, X // 2, level] + 2 * levels[Y, X // 2, level + 1] + 4 * levels[Y, X, level]
    schedule = pt.Schedule(pt.on("out").vectorize("x", 16))
    return pt.Pipeline(out, shape=at.shape, schedule=schedule)


def one(i: Any) -> list[Any]:
    return [i]


def many(i: Any) -> list[Any]:
    return [i, 3 * i - 7, 255 - i, X + i, X // 2 - 2 * i]


def gathers(p: pt.Pipeline, cpu: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The instructions of a CPU's code that gather."""
    target = description.llvm_target("x86_64-unknown-linux-gnu", cpu, "+avx2,+avx512f")
    monkeypatch.setitem(description.NAMED, "this", target)
    return set(re.findall(r"\bv\w*gather\w*", p.asm("this")))


@pytest.mark.parametrize("cpu", [*FAST, *SLOW])
@pytest.mark.parametrize(
    ("dtype", "name"), [("float32", "vgatherdps"), ("int32", "vpgatherdd"), ("float64", "vgatherdpd")]
)
def test_tables(dtype: str, name: str, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of 32 bits, which are half as much to compute."""
    assert gathers(table(dtype, one), cpu, monkeypatch) == ({name} if cpu in FAST else set())


def test_two_elements_side_by_side_are_one_of_twice_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gathers(pairs("float32"), "sapphirerapids", monkeypatch) == {"vpgatherqq", "vgatherqps"}


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_small_elements_are_gathered_by_words(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gathers(table(dtype, one), "sapphirerapids", monkeypatch) == {"vpgatherdd"}


def test_places_that_coordinates_decide_are_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    img, out = pt.Input("img", "float32", ndim=1), pt.Func("out")
    out[X] = img[X // 3] + img[(2 * X + 1) // 3]
    p = pt.Pipeline(out, shape=img.shape, schedule=pt.Schedule(pt.on("out").vectorize("x", 16)))
    assert not gathers(p, "sapphirerapids", monkeypatch)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """All code of this machine gathers: LLVM makes single loads of it where there is no instruction."""
    monkeypatch.setattr(Target, "gathers", property(lambda _: True))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int64", "uint16", "int8", "float16"])
@pytest.mark.parametrize("tail", ["auto", "guard"])
def test_results(dtype: str, tail: str) -> None:
    """No lane reads outside of the table, nor one that a mask leaves out."""
    p = table(dtype, many, tail)
    assert "masked.gather" in p.llvm()
    for width in (3, 16, 53):
        random = np.random.default_rng(width)
        at = random.integers(-300, 300, (4, width)).astype("int16")
        for at_end in (False, True):
            rows = guarded(random.integers(0, 90, (3, 70)).astype(dtype), at_end)
            np.testing.assert_array_equal(p(at=guarded(at, at_end), rows=rows), p.reference(at=at, rows=rows))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize("width", [16, 41])
def test_results_of_pairs(dtype: str, width: int) -> None:
    p, random = pairs(dtype), np.random.default_rng(width)
    at = random.integers(-3, 12, (4, width)).astype("int16")
    for at_end in (False, True):
        levels = guarded(random.integers(0, 90, (4, width, 8)).astype(dtype), at_end)
        np.testing.assert_array_equal(p(at=at, levels=levels), p.reference(at=at, levels=levels))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_lanes_that_differ_by_constants_from_a_place_that_data_decide(dtype: str) -> None:
    at, rows, out = pt.Input("at", "int16", ndim=1), pt.Input("rows", dtype, ndim=1), pt.Func("out")
    first = pt.clamp(pt.cast("int32", at[Y]), 0, 9)
    out[Y, X] = rows[first + X // 3] + rows[first + 2]
    schedule = pt.Schedule(pt.on("out").vectorize("x", 16))
    p = pt.Pipeline(out, shape=(at.shape[0], 48), schedule=schedule)
    assert "masked.gather" in p.llvm()
    places = np.array([3, -4, 8, 70], np.int16)
    values = guarded(np.random.default_rng(0).integers(0, 90, 25).astype(dtype), True)
    np.testing.assert_array_equal(p(at=places, rows=values), p.reference(at=places, rows=values))


@pytest.mark.parametrize("lanes", [16, 32])
def test_addresses_of_many_lanes_are_opaque(lanes: int) -> None:
    """LLVM's strength reduction took a minute for 32 lanes of three columns, unrolled four times."""
    y, x = pt.vars("y x")
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    f[y, x] = img[x, y] // 2
    schedule = pt.Schedule(pt.on("f").vectorize("x", lanes))
    p = pt.Pipeline(f, shape=(img.shape[1], img.shape[0]), schedule=schedule)
    assert (p.llvm().count('asm "", "=r,0"') >= lanes - 1) == (lanes == 32)
    pixels = np.arange(41 * 7, dtype=np.uint8).reshape(41, 7)
    assert (p(img=pixels) == pixels.T // 2).all()
