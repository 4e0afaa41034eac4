"""Sums of interleaved channels in registers: laid out as in memory only where no channel needs another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr

Y, X, C = pt.vars("y x c")
R = pt.RDom((0, 5), name="r")
IMG = pt.Input("img", "uint8", shape=(None, None, 3))
PIXELS = pt.on("out").update().vectorize("x", 8).unroll("c").reorder("y", "x", "r.0", "c", "x_v")
Term = Callable[[], Expr]


def pipeline(term: Expr, start: Expr | int = 0, schedule: pt.Schedule | None = None) -> pt.Pipeline:
    out = pt.Func("out")
    out[Y, X, C] = pt.cast("int32", start)
    out[Y, X, C] += term
    return pt.Pipeline(out, (IMG.shape[0] - 4, IMG.shape[1] - 4, 3), schedule=schedule or pt.Schedule(PIXELS))


def assert_agrees(p: pt.Pipeline) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (9, 70, 3), dtype=np.uint8)
    assert (p(img=picture) == p.reference(img=picture)).all()


ALIKE: dict[str, Term] = {
    "down": lambda: IMG[Y + R[0], X, C],
    "across": lambda: IMG[Y, X + R[0], C] * 3,
    "a factor for each channel": lambda: IMG[Y + R[0], X, C] * pt.case((C == 0, 2), (C == 1, 3), otherwise=5),
}
DIFFERENT: dict[str, Term] = {
    "another channel": lambda: IMG[Y + R[0], X, 2 - C],
    "one channel": lambda: IMG[Y + R[0], X, 1],
    "every other pixel": lambda: IMG[Y + R[0], X // 2, C],
    "a choice by channel": lambda: pt.select(C == 1, IMG[Y + R[0], X, C], IMG[Y, X + R[0], C]),
}


@pytest.mark.parametrize("name", ALIKE)
def test_channels_that_are_computed_alike_are_not_shuffled(name: str) -> None:
    p = pipeline(ALIKE[name]())
    assert ", 3, 8)" not in p.loops().split("out.held")[-1] and "shuffle(out.held" not in p.loops()
    assert_agrees(p)


@pytest.mark.parametrize("name", DIFFERENT)
def test_others_stay_planes(name: str) -> None:
    p = pipeline(DIFFERENT[name]())
    assert "shuffle(out.held" in p.loops()
    assert_agrees(p)


def test_sums_begin_with_what_is_there() -> None:
    assert_agrees(pipeline(ALIKE["down"](), start=IMG[Y, X, 2 - C]))


def test_several_rows_of_sums_at_once() -> None:
    rows = pt.on("out").update().vectorize("x", 8).unroll("c", 3).unroll("y", 2)
    p = pipeline(ALIKE["across"](), schedule=pt.Schedule(rows.reorder("y", "x", "c", "r.0", "y_u", "c_u", "x_v")))
    assert_agrees(p)
