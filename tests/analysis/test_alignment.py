"""Reads in closed form, and common spaces of stages at several resolutions."""

from __future__ import annotations

from fractions import Fraction

import pantile as pt
from pantile.analysis.access import Index, accesses
from pantile.analysis.alignment import align
from pantile.graph.nodes import Graph
from pantile.lang.build import build

Y, X = pt.vars("y x")


def graph(*outputs: pt.Func) -> Graph:
    return build(list(outputs), [(64, 64)] * len(outputs), None)


def index(dim: str | None, scale: float, low: float, high: float) -> Index:
    return Index(dim, Fraction(scale), Fraction(low), Fraction(high))


def reads(value: pt.Expr) -> list[tuple[Index | None, ...]]:
    """How `out[y, x] = value` reads, with n of extent 5."""
    out = pt.Func("out")
    out[Y, X] = value
    stage = graph(out).stages[-1]
    return [a.indices for d in stage.definitions for a in accesses(stage, d) if a.buffer != "out"]


IMG = pt.Input("img", "float32", ndim=2)


def test_forms() -> None:
    assert reads(IMG[2 * Y + 1, X - 3]) == [(index("y", 2, 1, 1), index("x", 1, -3, -3))]
    assert reads(IMG[Y // 2, (X + 1) // 2]) == [(index("y", 0.5, -0.5, 0), index("x", 0.5, 0, 0.5))]
    assert reads(IMG[pt.clamp(Y - 1, 0, 10), 7]) == [(index("y", 1, -1, -1), index(None, 0, 7, 7))]
    assert reads(IMG[X, Y]) == [(index("x", 1, 0, 0), index("y", 1, 0, 0))]
    assert reads(IMG[-Y, X % 2]) == [(index("y", -1, 0, 0), index(None, 0, 0, 1))]


def test_no_form() -> None:
    assert reads(IMG[Y + X, pt.cast("int32", 1.5 * Y)]) == [(None, None)]


def test_a_reduction_over_constants() -> None:
    r = pt.RDom((-1, 3), name="r")
    out = pt.Func("out")
    out[Y, X] = 0.0
    out[Y, X] += IMG[Y + r[0], X]
    stage = graph(out).stages[-1]
    (read,) = [a for a in accesses(stage, stage.updates[0]) if a.buffer == "img"]
    assert read.indices == (index("y", 1, -1, 1), index("x", 1, 0, 0))


def pyramid() -> Graph:
    """fine <- coarse (half as large) <- fine again, and transposed."""
    down, coarse, up, out = pt.Func("down"), pt.Func("coarse"), pt.Func("up"), pt.Func("out")
    down[Y, X] = pt.edge(IMG)[Y, X] * 2
    coarse[Y, X] = down[2 * Y, 2 * X] + down[2 * Y + 1, 2 * X + 1]
    up[Y, X] = coarse[Y // 2, X // 2] + coarse[Y // 2 + 1, X // 2]
    out[Y, X] = up[X, Y - 1]
    return graph(out)


def test_scaled_to_a_common_space() -> None:
    found = align(pyramid(), {"down", "coarse", "up", "out"})
    assert found is not None and found.rank == 2
    scales = {s: {d: (k, int(f)) for d, (k, f) in axes.items()} for s, axes in found.axes.items()}
    assert scales == {
        "out": {"y": (0, 1), "x": (1, 1)},
        "up": {"y": (1, 1), "x": (0, 1)},
        "coarse": {"y": (1, 2), "x": (0, 2)},
        "down": {"y": (1, 1), "x": (0, 1)},
    }
    distances = {(d.producer, d.consumer): d.distance for d in found.dependences}
    assert distances["up", "out"] == ((-1, -1), (0, 0))
    assert distances["coarse", "up"] == ((-1, 0), (-1, 2))
    assert distances["down", "coarse"] == ((0, 1), (0, 1))
    assert found.reach() == ((-1, 1), (-1, 2))


def test_no_common_space() -> None:
    """Neither a stage that is read at two rates nor one that data selects from has a common space with its reader."""
    f, out, looked_up = pt.Func("f"), pt.Func("out"), pt.Func("looked_up")
    f[Y, X] = IMG[Y, X] * 2
    out[Y, X] = f[Y, X] + f[2 * Y, X]
    assert align(graph(out), {"f", "out"}) is None
    looked_up[Y, X] = f[pt.cast("uint8", IMG[Y, X]), X]
    assert align(graph(looked_up), {"f", "looked_up"}) is None


def test_channels_need_no_axis() -> None:
    (c,) = pt.vars("c")
    rgb, gray = pt.Func("rgb"), pt.Func("gray")
    rgb[Y, X, c] = IMG[Y, X] * (c + 1)
    gray[Y, X] = rgb[Y, X, 0] + rgb[Y, X, 2]
    found = align(graph(gray), {"rgb", "gray"})
    assert found is not None and set(found.axes["rgb"]) == {"y", "x"}


def test_two_consumers_meet_in_their_producer() -> None:
    """Neither reads the other, as two outputs of one pipeline."""
    f, a, b = pt.Func("f"), pt.Func("a"), pt.Func("b")
    f[Y, X] = IMG[Y, X] * 2
    a[Y, X] = f[Y, X - 1]
    b[Y, X] = f[Y // 2, X]
    found = align(graph(a, b), {"f", "a", "b"})
    assert found is not None
    assert {s: int(axes["y"][1]) for s, axes in found.axes.items()} == {"f": 2, "a": 2, "b": 1}
