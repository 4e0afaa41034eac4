"""Which stages tiles bring nothing to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pantile as pt
from pantile.autoschedule.fusion.stage_facts import streams
from pantile.expr.nodes import Expr

from .problems import problem_of

Y, X, C = pt.vars("y x c")
GRAY = pt.Input("img", "uint8", ndim=2)
RGB = pt.Input("img", "uint8", ndim=3)

STREAMS: dict[str, Callable[[], Expr]] = {
    "pointwise": lambda: 255 - RGB[Y, X, C],
    "another channel": lambda: RGB[Y, X, 2 - C],
    "stencil": lambda: RGB[Y, X, C] + RGB[pt.clamp(Y + 1, 0, 99), X, C],
    "half the size": lambda: RGB[Y // 2, X // 2, C],
    "channels made of one": lambda: GRAY[Y, X] * pt.cast("uint8", C),
}
DOES_NOT: dict[str, Callable[[], Expr]] = {
    "transposed": lambda: RGB[X, Y, C],
    "rows repeated": lambda: GRAY[pt.clamp(X, 0, 9), X],
    "a column for all": lambda: RGB[Y, 0, C],
    "where data says": lambda: RGB[Y, pt.cast("int32", RGB[Y, X, C]) % 100, C],
}


def stage(value: Expr, gray: bool) -> bool:
    out = pt.Func("out")
    out[Y, X, C] = value
    p = pt.Pipeline(out, shape=(100, 100, 3))
    return streams(problem_of(p, img=(100, 100) if gray else (100, 100, 3)), "out")


@pytest.mark.parametrize("name", STREAMS)
def test_reads_along_rows_stream(name: str) -> None:
    assert stage(STREAMS[name](), gray=name == "channels made of one")


@pytest.mark.parametrize("name", DOES_NOT)
def test_others_do_not(name: str) -> None:
    assert not stage(DOES_NOT[name](), gray=name == "rows repeated")


def test_planes_that_share_what_they_read_do_not() -> None:
    out = pt.Func("out")
    out[C, Y, X] = GRAY[Y, X] * pt.cast("uint8", C)
    assert not streams(problem_of(pt.Pipeline(out, shape=(3, 100, 100)), img=(100, 100)), "out")


def test_sums_do_not() -> None:
    out, r = pt.Func("out"), pt.RDom((0, 9))
    out[Y, X] = 0
    out[Y, X] += GRAY[Y, X + r[0]]
    assert not streams(problem_of(pt.Pipeline(out, shape=(100, 90)), img=(100, 100)), "out")
