"""Boundary conditions against np.pad, far beyond the ends too, and on Funcs with a stated domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.graph.verify import verify
from pantile.lang.build import build
from pantile.reference import evaluate

Y, X = pt.vars("y x")
PAD = 11
MODES: dict[str, tuple[Callable[..., pt.Func], dict[str, Any]]] = {
    "edge": (pt.edge, {"mode": "edge"}),
    "reflect": (pt.reflect, {"mode": "symmetric"}),
    "mirror": (pt.mirror, {"mode": "reflect"}),
    "wrap": (pt.wrap, {"mode": "wrap"}),
    "constant": (lambda f, **kw: pt.constant(f, 7, **kw), {"mode": "constant", "constant_values": 7}),
}


def padded(source: pt.Func, shape: tuple[int, ...], by: tuple[int, int], image: np.ndarray) -> np.ndarray:
    out = pt.Func("out")
    out[Y, X] = source[Y - by[0], X - by[1]]
    graph = build(out, tuple(n + 2 * b for n, b in zip(shape, by, strict=True)))
    verify(graph)
    result: np.ndarray = evaluate(graph, {"img": image}, {})[0]
    return result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 2), (5, 7)])
def test_input(mode: str, shape: tuple[int, int]) -> None:
    extend, numpy_mode = MODES[mode]
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape) + 1
    img = pt.Input("img", "uint8", ndim=2)
    expected = np.pad(image, PAD, **numpy_mode)
    np.testing.assert_array_equal(padded(extend(img), shape, (PAD, PAD), image), expected)


@pytest.mark.parametrize("mode", MODES)
def test_one_axis(mode: str) -> None:
    extend, numpy_mode = MODES[mode]
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    img = pt.Input("img", "uint8", ndim=2)
    expected = np.pad(image, ((0, 0), (PAD, PAD)), **numpy_mode)
    np.testing.assert_array_equal(padded(extend(img, axes=(1,)), (3, 4), (0, PAD), image), expected)


@pytest.mark.parametrize("mode", MODES)
def test_func_with_a_stated_domain(mode: str) -> None:
    extend, numpy_mode = MODES[mode]
    image = np.arange(20, dtype=np.uint8).reshape(4, 5)
    img = pt.Input("img", "uint8", ndim=2)
    inner = pt.Func("inner", domain=((1, img.shape[0] - 1), (2, img.shape[1] - 2)))
    inner[Y, X] = img[Y, X] * 2
    extended, out = extend(inner), pt.Func("out")
    out[Y, X] = extended[Y + 1 - PAD, X + 2 - PAD]
    graph = build(out, (3 + 2 * PAD, 3 + 2 * PAD))
    verify(graph)
    found = evaluate(graph, {"img": image}, {})[0]
    np.testing.assert_array_equal(found, np.pad(image[1:, 2:] * 2, PAD, **numpy_mode))


def test_several_values() -> None:
    pair, out = pt.Func("pair", domain=((0, 3),)), pt.Func("out")
    pair[X] = (X, X * 10)
    extended = pt.constant(pair, (-1, -2))
    out[X] = extended[X - 1]
    first, second = evaluate(build(out, (5,)), {}, {})
    assert first.tolist() == [-1, 0, 1, 2, -1]
    assert second.tolist() == [-2, 0, 10, 20, -2]


def test_boundaries_are_helpers_with_made_up_names() -> None:
    img = pt.Input("img", "uint8", ndim=2)
    out = pt.Func("out")
    out[Y, X] = pt.edge(img)[Y, X] + pt.edge(img)[Y, X + 1]
    graph = build(out)
    assert [(s.name, s.helper) for s in graph.stages] == [("img_edge", True), ("img_edge1", True), ("out", False)]
