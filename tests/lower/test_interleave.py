"""Stores of all channels at once: only where nothing in between could tell."""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt
from pantile.expr.build import binary, ramp
from pantile.expr.nodes import Expr, Load, const, var
from pantile.expr.types import dtype
from pantile.ir import visit as ir
from pantile.ir.nodes import Block, Stmt, Store
from pantile.lower.interleave import interleave

U8 = dtype("uint8")
Y, X, C = pt.vars("y x c")


def at(offset: int, stride: int = 3) -> Expr:
    return ramp(var("x") * 3 + offset, stride, 8)


def load(buffer: str, offset: int) -> Expr:
    return Load(U8, 8, buffer, (at(offset),))


def store(value: Expr, offset: int, buffer: str = "out") -> Stmt:
    return Store(buffer, (at(offset),), value)


def joined(*stmts: Stmt) -> list[Store]:
    return [s for s in ir.walk(interleave(Block(stmts))) if isinstance(s, Store)]


def test_channels_in_any_order_are_joined() -> None:
    (whole,) = joined(*(store(load("img", 2 - k), k) for k in (2, 0, 1)))
    assert whole.value.lanes == 24 and ir.expressions(whole)[0].lanes == 24


def test_channels_that_are_computed_alike_are_rows() -> None:
    found = joined(*(store(binary("add", load("img", k - 3), load("img", k + 3)), k) for k in range(3)))
    assert [s.value.lanes for s in found] == [8, 8, 8]
    assert all(e.stride.value == 1 for s in found for e in s.indices)  # type: ignore[attr-defined]


def test_a_channel_that_is_missing_keeps_them_apart() -> None:
    assert len(joined(store(load("img", 0), 0), store(load("img", 1), 1))) == 2
    assert len(joined(*(store(load("img", k), k) for k in (0, 1, 3)))) == 3


def test_what_is_read_in_between_keeps_them_apart() -> None:
    stores = [store(load("img", k), k) for k in range(3)]
    reader = store(load("out", 0), 0, "other")
    assert len(joined(stores[0], reader, *stores[1:])) == 4
    assert len(joined(stores[0], store(load("img", 5), 0, "other"), *stores[1:])) == 4  # dense rows, and the other
    assert len(joined(store(load("other", 0), 0), store(load("img", 5), 0, "other"), *stores[1:])) == 4


def test_own_channels_may_be_read_and_others_not() -> None:
    one = const(1, U8, 8)
    assert [s.value.lanes for s in joined(*(store(load("out", k) + one, k) for k in range(3)))] == [8, 8, 8]
    before = joined(*(store(load("out", k - 3), k) for k in range(3)))  # the pixel before: all are read, then stored
    assert [s.value.lanes for s in before] == [24]
    others = joined(*(store(load("out", (k + 1) % 3), k) for k in range(3)))
    assert [s.value.lanes for s in others] == [8, 8, 8] and all(s.indices[0].stride.value == 3 for s in others)  # type: ignore[attr-defined]


def test_masked_stores_stay() -> None:
    mask = const(True, dtype("bool"), 8)
    masked = [Store("out", (at(k),), load("img", k), binary("and", mask, load("m", 0) > 0)) for k in range(3)]
    assert len(joined(*masked)) == 3


def assert_agrees(p: pt.Pipeline, **arguments: Any) -> None:
    found, expected = p(**arguments), p.reference(**arguments)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    assert all((a == b).all() for a, b in pairs)


def test_several_values_of_each_channel() -> None:
    img, f = pt.Input("img", "uint8", 3), pt.Func("f")
    f[Y, X, C] = (img[Y, X, C] + 1, pt.cast("uint16", img[Y, X, 0]) * 2, img[Y, X, C] > 100)
    p = pt.Pipeline(f, img.shape)
    for channels in (2, 3, 4):
        assert_agrees(p, img=np.random.default_rng(0).integers(0, 256, (5, 70, channels), dtype=np.uint8))


def test_updates_of_all_channels() -> None:
    img, f = pt.Input("img", "uint8", 3), pt.Func("f")
    r = pt.RDom((0, 5), name="r")
    f[Y, X, C] = img[Y, X, C]
    f[Y, X, C] += img[Y, r[0], C]
    f[Y, X, 0] = f[Y, X, 0] + f[Y, X, 1]
    p = pt.Pipeline(f, img.shape)
    for channels in (2, 3, 4):
        assert_agrees(p, img=np.random.default_rng(0).integers(0, 256, (5, 70, channels), dtype=np.uint8))


def test_constants_of_each_channel() -> None:
    img, f = pt.Input("img", "float32", 3), pt.Func("f")
    f[Y, X, C] = img[Y, X, C] * pt.case((C == 0, 0.5), (C == 1, 0.25), otherwise=2.0)
    p = pt.Pipeline(f)
    for channels in (2, 3, 4):
        assert_agrees(p, img=np.random.default_rng(0).integers(0, 256, (5, 70, channels)).astype(np.float32))


def test_tables_are_read_by_interleaved_pixels() -> None:
    img, lut, f = pt.Input("img", "uint8", 3), pt.Input("lut", "uint16", 1), pt.Func("f")
    f[Y, X, C] = lut[img[Y, X, C]] + pt.cast("uint16", X)
    p = pt.Pipeline(f, img.shape)
    for channels in (2, 3, 4):
        pixels = np.random.default_rng(0).integers(0, 256, (5, 70, channels), dtype=np.uint8)
        assert_agrees(p, img=pixels, lut=np.arange(256, dtype=np.uint16) * 7)
