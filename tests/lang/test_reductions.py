"""Reductions: their types, their values against NumPy, and the stages they become."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr
from pantile.graph.show import show
from pantile.graph.verify import verify
from pantile.lang.build import build
from pantile.reference import evaluate

Y, X = pt.vars("y x")
RNG = np.random.default_rng(0)


def run(f: pt.Func, shape: tuple[int, ...], **arrays: np.ndarray) -> list[np.ndarray]:
    graph = build(f, shape)
    verify(graph)
    result: list[np.ndarray] = list(evaluate(graph, arrays, {}))
    return result


@pytest.mark.parametrize(
    ("dtype", "held"),
    [("bool", "int32"), ("uint8", "uint32"), ("int16", "int32"), ("int32", "int32"), ("uint64", "uint64"),
     ("float16", "float16"), ("float64", "float64")],
)  # fmt: skip
def test_sums_are_held_in_at_least_32_bits(dtype: str, held: str) -> None:
    r = pt.RDom((0, 3))
    img = pt.Input("img", dtype, 1)
    assert pt.sum(img[r[0]], over=r).dtype.name == held
    if dtype != "bool":
        assert pt.prod(img[r[0]], over=r).dtype.name == held
    assert pt.max(img[r[0]], over=r).dtype.name == dtype


@pytest.mark.parametrize("kind", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64"])
def test_values(kind: str, dtype: str) -> None:
    img = pt.Input("img", dtype, 2)
    r = pt.RDom((0, img.shape[1]))
    f = pt.Func("f")
    reduce: Callable[..., Expr] = getattr(pt, kind)
    f[Y] = reduce(img[Y, r[0]], over=r)
    image = RNG.integers(1, 5, (4, 6)).astype(dtype)
    np.testing.assert_array_equal(run(f, (4,), img=image)[0], getattr(np, kind)(image, axis=1))


def test_any_all() -> None:
    img = pt.Input("img", "uint8", 2)
    r = pt.RDom((0, 3))
    f = pt.Func("f")
    f[Y] = (pt.any(img[Y, r[0]] > 1, over=r), pt.all(img[Y, r[0]] > 1, over=r))
    image = np.array([[0, 1, 1], [0, 2, 1], [3, 2, 2]], dtype=np.uint8)
    some, every = run(f, (3,), img=image)
    assert some.tolist() == [False, True, True]
    assert every.tolist() == [False, False, True]


@pytest.mark.parametrize("kind", ["argmin", "argmax"])
def test_the_first_extremum_wins(kind: str) -> None:
    img = pt.Input("img", "uint8", 2)
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    find: Callable[..., tuple[Expr, ...]] = getattr(pt, kind)
    f, g = pt.Func("f"), pt.Func("g")
    f[()] = find(img[r[0], r[1]], over=r)
    row, column, _ = find(img[r[0], r[1]], over=r)
    g[()] = img[row, column]  # coordinates may index: their range is known
    image = RNG.integers(0, 4, (5, 7)).astype(np.uint8)
    expected = np.unravel_index(getattr(np, kind)(image), image.shape)
    iy, ix, v = run(f, (), img=image)
    assert (iy, ix, v) == (*expected, image[expected])
    assert run(g, (), img=image)[0] == v
    assert len(build(f, ()).stages) == 1  # the search is the Func itself


def test_searches_of_extreme_values_start_at_the_first_point() -> None:
    img = pt.Input("img", "float32", 1)
    r = pt.RDom((1, 3))
    f = pt.Func("f")
    f[()] = pt.argmin(img[r[0]], over=r)
    for image in ([0, np.inf, np.inf, np.inf], [0, np.nan, np.nan, np.nan]):
        place, value = run(f, (), img=np.array(image, np.float32))
        assert (place.item(), value.item()) == (1, np.inf)


def test_a_whole_value_is_the_stage_itself_and_a_part_is_a_helper() -> None:
    img = pt.Input("img", "float32", 2)
    r = pt.RDom((0, 3), name="k")
    whole, part = pt.Func("whole"), pt.Func("part")
    whole[Y, X] = pt.sum(img[Y, X + r[0]], over=r)
    part[Y, X] = pt.sum(whole[Y + r[0], X], over=r.where(r[0] > X)) / 3
    graph = build(part)
    verify(graph)
    assert show(graph) == (
        "pipeline part\n"
        "  input img: float32[img.shape.0, img.shape.1]\n"
        "  whole[y, x]: float32 = 0\n"
        "  whole[y, x] = whole[y, x] + img[y, x + k.0]  over k.0 in 0 .. 3\n"
        "  part_sum[y, x]: float32 = 0\n"
        "  part_sum[y, x] = part_sum[y, x] + whole[y + k.0, x]  over k.0 in 0 .. 3 where k.0 > x\n"
        "  part[y, x]: float32 = part_sum[y, x]/3\n"
        "  output part: float32[img.shape.0, img.shape.1]\n"
    )
    assert [s.helper for s in graph.stages] == [False, True, False]


def test_nested_reductions_and_reductions_in_updates() -> None:
    img = pt.Input("img", "int32", 2)
    r, s = pt.RDom((0, 3), name="r"), pt.RDom((0, 4), name="r")
    f, g = pt.Func("f"), pt.Func("g")
    f[X] = pt.max(pt.sum(img[r[0], s[0]] * X, over=s) + r[0], over=r)
    g[X] = 0
    g[X] += pt.max(img[r[0], s[0]], over=s) * X
    image = RNG.integers(0, 9, (3, 4)).astype(np.int32)
    sums = image.sum(axis=1)
    assert run(f, (3,), img=image)[0].tolist() == [int((sums * x + np.arange(3)).max()) for x in range(3)]
    assert run(g, (3,), img=image)[0].tolist() == [int(image.max(axis=1).sum()) * x for x in range(3)]
    assert [(t.name, t.dims) for t in build(f, (3,)).stages] == [("f_sum", ("x", "r_0")), ("f", ("x",))]
    assert [(t.name, t.dims) for t in build(g, (3,)).stages] == [("g_max", ("r_0",)), ("g", ("x",))]


def test_a_shared_reduction_is_computed_once() -> None:
    img = pt.Input("img", "float32", 1)
    r = pt.RDom((0, 3))
    mean = pt.sum(img[X + r[0]], over=r) / 3
    f, g = pt.Func("f"), pt.Func("g")
    f[X] = mean + 1
    g[X] = f[X] * mean
    assert [s.name for s in build(g).stages] == ["f_sum", "f", "g"]
