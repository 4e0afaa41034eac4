"""Pipelines of graphs: made by other front ends than the language, or taken from another pipeline."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.errors import here
from pantile.expr.nodes import Load, coordinate
from pantile.expr.types import FLOAT32
from pantile.graph.nodes import Definition, Graph, InputInfo, Output, Stage

Y, X = pt.vars("y x")
RNG = np.random.default_rng(3)


def stencil(weights: dict[int, float]) -> Graph:
    """slope[x] = the sum of weight * img[x + offset], twice: a stage, and one that reads it."""
    x = coordinate("x")
    img = InputInfo("img", FLOAT32, 1, here())
    total: pt.Expr | float = sum(w * Load(FLOAT32, 1, "img", (x + offset,)) for offset, w in weights.items())
    assert isinstance(total, pt.Expr)
    slope = Stage("slope", ("x",), (FLOAT32,), Definition((x,), (total,), (), None, here()), (), here())
    double = Definition((x,), (2 * Load(FLOAT32, 1, "slope", (x,)),), (), None, here())
    twice = Stage("twice", ("x",), (FLOAT32,), double, (), here())
    shape = (img.size(0) - max(weights),)
    return Graph("stencil", (img,), (), (slope, twice), (Output("slope", shape), Output("twice", shape)))


def test_a_graph_written_by_hand() -> None:
    pipeline = pt.Pipeline.from_graph(stencil({0: -1.0, 2: 1.0}))
    data = RNG.random(101, dtype=np.float32)
    slope, twice = pipeline(img=data)
    assert np.array_equal(slope, data[2:] - data[:-2])
    assert np.array_equal(twice, 2 * (data[2:] - data[:-2]))
    assert all(np.array_equal(a, b) for a, b in zip(pipeline.reference(img=data), (slope, twice), strict=True))


def test_it_takes_what_pipelines_take() -> None:
    pipeline = pt.Pipeline.from_graph(
        stencil({0: 1.0, 1: 1.0}), schedule=pt.Schedule(pt.on("slope.out").vectorize("x", 8)), debug=True, strict=True
    )
    assert pipeline.options.debug
    assert pipeline.options.strict
    assert pipeline.schedule["slope.out"] == pt.on("slope.out").vectorize("x", 8)
    found = pt.Pipeline.from_graph(stencil({0: 1.0, 1: 1.0}), schedule="greedy", estimates={"img": (1000,)})
    assert found.report is not None


def of_funcs() -> pt.Pipeline:
    img, gain = pt.Input("img", "uint8", 2), pt.Param("gain", "int32", default=2)
    around, level, out = pt.edge(img), pt.Func("level"), pt.Func("out")
    r = pt.RDom((-1, 3))
    level[Y, X] = pt.clamp(pt.sum(around[Y + r[0], X], over=r) // gain, 0, 9)
    out[Y, X] = pt.table(np.arange(10, dtype=np.uint8))[level[Y, X]] + level[Y, X]
    return pt.Pipeline([out, level], shape=[img.shape, img.shape])


def test_the_graph_of_a_pipeline_gives_the_same_pipeline() -> None:
    one = of_funcs()
    other = pt.Pipeline.from_graph(one.graph)
    assert str(other) == str(one)
    assert other.llvm() == one.llvm()
    data = RNG.integers(0, 256, (30, 41), dtype=np.uint8)
    for a, b in zip(other(img=data), one(img=data), strict=True):
        assert np.array_equal(a, b)


def test_what_is_no_graph() -> None:
    f = pt.Func("f")
    f[X] = X
    with pytest.raises(pt.UserError, match=r"is not a pantile\.graph\.nodes\.Graph; pt\.Pipeline\(.*\) takes Funcs"):
        pt.Pipeline.from_graph(f)  # type: ignore[arg-type]
