"""The check of regions passes what stays inside and refuses what does not, tried out point by point."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.analysis import bounds
from pantile.analysis.bounds import check_regions, region_scalars
from pantile.analysis.point import value_at
from pantile.analysis.regions import required
from pantile.expr.nodes import Expr, coordinate
from pantile.graph.nodes import Graph
from pantile.lang.build import build

X, Y = coordinate("x"), coordinate("y")


def graph_of(value: Callable[[pt.Input], Any], shape: Any) -> Graph:
    img, f = pt.Input("img", "uint8", 1), pt.Func("f")
    f[pt.Var("x")] = value(img)
    return build(f, shape)


def passes(graph: Graph, size: int, extent: int) -> bool:
    try:
        check_regions(graph, {"f": (size,)}, {"img.shape.0": extent}, {"f"})
    except pt.UserError:
        return False
    return True


INDICES: dict[str, Callable[[Expr], Expr]] = {
    "shifted": lambda x: x + 3,
    "before": lambda x: x - 1,
    "backwards": lambda x: 9 - x,
    "halved": lambda x: x // 2,
    "doubled": lambda x: 2 * x + 1,
    "modulus": lambda x: x % 5,
    "clamped": lambda x: pt.clamp(x - 2, 0, 6),
    "absolute": lambda x: abs(x - 4),
    "chosen": lambda x: pt.select(x < 4, x, 7 - x),
    "wrapped": lambda x: (x + 250) % 256,
    "shift": lambda x: x >> 1,
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_against_all_their_points(name: str) -> None:
    index = INDICES[name]
    for size in range(1, 12):
        places = [value_at(index(X), {"x": k}) for k in range(size)]
        for extent in range(1, 14):
            inside = all(0 <= int(p) < extent for p in places if p is not None)
            found = passes(graph_of(lambda img: img[index(pt.Var("x"))], (size,)), size, extent)
            assert found <= inside, (size, extent)  # never passes what is outside
            if name not in ("absolute", "chosen", "wrapped"):  # where intervals are exact
                assert found == inside, (size, extent)


def test_nothing_is_read_for_an_empty_output() -> None:
    assert passes(graph_of(lambda img: img[pt.Var("x") + 100], (0,)), 0, 1)


def test_an_empty_reduction_reads_nothing() -> None:
    r = pt.RDom((5, 0), name="r")
    assert passes(graph_of(lambda img: pt.sum(img[r[0]], over=r), (3,)), 3, 1)


def test_conditions_of_a_reduction_count() -> None:
    img, f, r = pt.Input("img", "int32", 1), pt.Func("f"), pt.RDom((0, 10), name="r")
    f[pt.Var("x")] = 0
    some = r.where(r[0] > 2)
    f[some[0]] += img[some[0] - 3]
    assert passes(build(f, (10,)), 10, 10)


def test_scalars_that_decide_regions() -> None:
    a, b, c, d, e = (pt.Param(n, "int32") for n in "abcde")
    r = pt.RDom((0, d), name="r")
    value = pt.sum(pt.select(pt.Var("x") < c, pt.cast("int32", 1), e), over=r, dtype="int32")
    graph = graph_of(lambda img: img[pt.Var("x") + a] + value * e, (b,))
    assert region_scalars(graph) & set("abcde") == set("abcd")


@pytest.mark.parametrize(
    ("value", "at", "expected"),
    [
        (X // -2, {"x": 3}, -2),
        (X % 0 + X // 0, {"x": 3}, 0),
        (pt.cast("uint8", X), {"x": 300}, 44),
        (pt.cast("uint8", X) + pt.cast("uint8", 1), {"x": 255}, 0),
        (X * 3, {"x": 2**31 - 1}, 3 * (2**31 - 1)),
        (pt.cast("int32", pt.cast("float32", X) * 0.1), {"x": 10}, 1),
        (pt.cast("int32", pt.floor(pt.cast("float32", X) * 0.5)), {"x": -3}, -2),
        (pt.cast("uint8", pt.cast("float32", X) * 1.5), {"x": 1000}, 255),
        (pt.select((X > 1) & ~(Y > 1), X, Y), {"x": 2, "y": 2}, 2),
        (pt.within(X, 0, 3) ^ 1, {"x": 4}, 5),
        (X << 3 >> 1, {"x": 5}, 20),
        (pt.cast("int32", pt.cast("float32", X) + 100.7 - 100.7), {"x": 3}, 3),
        (pt.cast("int32", pt.cast("float32", pt.cast("float64", X) * 1e300)), {"x": 9}, 2**31 - 1),
        (X + Y, {"x": 1}, None),
        (pt.cast("int32", pt.sqrt(X)), {"x": 4}, None),
    ],
)
def test_values_at_a_point(value: Expr, at: dict[str, int], expected: int | None) -> None:
    with np.errstate(all="raise"):
        assert value_at(value, at) == expected


def test_random_indices_never_pass_outside() -> None:
    random = np.random.default_rng(0)
    x = pt.Var("x")
    for _ in range(150):
        a, b, d, m = (int(v) for v in random.integers(-4, 5, 4))
        index = (a * x + b) // (abs(d) + 1) + (x - m) % 3 * (m % 2)
        size, extent = (int(v) for v in random.integers(1, 12, 2))
        places = [value_at(index, {"x": k}) for k in range(size)]
        if passes(graph_of(lambda img, i=index: img[i], (size,)), size, extent):
            assert all(0 <= int(p) < extent for p in places if p is not None)


def test_a_call_that_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions are found once; what other stages being stored means is still looked at, and so is what failed."""
    img, g, f = pt.Input("img", "int64", 1), pt.Func("g"), pt.Func("f")
    x = pt.Var("x")
    g[x] = x * 2
    f[x] = g[img[x + 1]]
    graph = build(f, (8,))
    found: list[object] = []
    monkeypatch.setattr(bounds, "required", lambda *args: found.append(args) or required(*args))
    for extent in (8, 8, 9, 9):
        with nullcontext() if extent == 9 else pytest.raises(pt.UserError, match="img"):
            check_regions(graph, {"f": (8,)}, {"img.shape.0": extent}, {"f"})
    assert len(found) == 3
    with pytest.raises(pt.UserError, match="limit"):
        check_regions(graph, {"f": (8,)}, {"img.shape.0": 9}, {"f", "g"})
    assert len(found) == 3


@pytest.mark.parametrize(
    ("place", "params"),
    [
        (lambda x, k: x % 4, {}),
        (lambda x, k: (x + 4) % k, {"k": 4}),
        (lambda x, k: (x % 8) % 4, {}),
        (lambda x, k: x & 3, {}),
        (lambda x, k: pt.cast("int32", pt.cast("uint8", x) >> pt.cast("uint8", k)) % 4, {"k": 1}),
        (lambda x, k: pt.cast("int32", pt.cast("uint8", pt.cast("float16", x)) % 4), {}),
    ],
    ids=["number", "param", "of a remainder", "bits", "shifted", "half"],
)
def test_stages_are_stored_at_all_places_that_code_knows(place: Callable[..., Any], params: dict[str, int]) -> None:
    """In pictures that are narrower than what they divide by, too, code reads no further than there are columns."""
    y, x = pt.vars("y x")
    img, k, f, out = pt.Input("img", "float32", 2), pt.Param("k", "int32"), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] * 2.0
    out[y, x] = f[y, place(x, k)] + f[y, x]
    p = pt.Pipeline(out, shape=img.shape, debug=True)
    stored = p.with_schedule(pt.Schedule(pt.on("f").compute_root()))
    for width in (1, 2, 3, 4, 5, 9):
        given = {"img": np.arange(2.0 * width, dtype=np.float32).reshape(2, width), **params}
        for q in (p, stored):
            may_refuse = q is stored and width < 4
            with pytest.raises(pt.UserError, match="at all places") if may_refuse else nullcontext():
                np.testing.assert_array_equal(q(**given), p.reference(**given))


def test_stages_that_only_wider_pictures_need() -> None:
    """No column of two has a remainder above 2: nothing is needed of what is read there, nor of what that reads."""
    y, x = pt.vars("y x")
    img, f, g, out = pt.Input("img", "float32", 2), pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[y, x] = pt.edge(img)[y, x] * 2.0
    g[y, x] = f[y, x] + 1.0
    out[y, x] = pt.select(x % 4 > 2, g[y, x % 4], 0.0)
    roots = pt.Schedule(pt.on("f").compute_root(), pt.on("g").compute_root())
    p = pt.Pipeline(out, shape=img.shape, debug=True, schedule=roots)
    for width in (1, 2, 3, 4, 9):
        given = np.arange(2.0 * width, dtype=np.float32).reshape(2, width)
        np.testing.assert_array_equal(p(img=given), p.reference(img=given))
