"""The polyhedral view against what definitions really read, point by point."""

from __future__ import annotations

from typing import Any

import islpy as isl
import pytest

import pantile as pt
from pantile.analysis.interval import Interval
from pantile.analysis.polyhedra import box_set, rectangular, simplified, statements
from pantile.analysis.regions import required

H, W = 9, 7


def reads_of(value: Any) -> isl.Map:
    """The read relation of out[y, x] = value(f), y < 9 and x < 7, where f is a Func."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "int32", ndim=2)
    f, out = pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x]
    out[y, x] = value(f, y, x, img)
    graph = pt.Pipeline(out, shape=(H, W)).graph
    scope = {"img.shape.0": Interval.point(20), "img.shape.1": Interval.point(20)}
    box = (Interval(0, H - 1), Interval(0, W - 1))
    boxes = required(graph, {"out": box}, scope)
    return statements(graph, graph.stage["out"], boxes["out"], scope)[0].reads["f"]


MOST = pt.cast("uint64", (1 << 64) - 1)


def _large(e: pt.Expr) -> pt.Expr:
    return pt.cast("uint64", e)


def _small(e: pt.Expr) -> pt.Expr:
    return pt.cast("int32", e)


AFFINE = {
    "y + 1, x": (lambda f, y, x, _: f[y + 1, x], lambda y, x: [(y + 1, x)]),
    "x, 2 y": (lambda f, y, x, _: f[x, 2 * y], lambda y, x: [(x, 2 * y)]),
    "y // 2, x % 3": (lambda f, y, x, _: f[y // 2, x % 3], lambda y, x: [(y // 2, x % 3)]),
    "clamped": (
        lambda f, y, x, img: f[pt.clamp(y - 2, 0, img.shape[0] - 15), x],
        lambda y, x: [(min(max(y - 2, 0), 5), x)],
    ),
    "numbers beyond 63 bits": (
        lambda f, y, x, _: f[_small(pt.minimum(_large(y), MOST)), _small(_large(x) // MOST % MOST)],
        lambda y, x: [(y, 0)],
    ),
    "two": (lambda f, y, x, _: f[y, x] + f[y, x + 3], lambda y, x: [(y, x), (y, x + 3)]),
    "chosen": (
        lambda f, y, x, _: pt.select(y < 4, f[y, x], f[y + 10, x]),
        lambda y, x: [(y if y < 4 else y + 10, x)],
    ),
}


@pytest.mark.parametrize("case", AFFINE)
def test_affine_reads_are_exact(case: str) -> None:
    value, places = AFFINE[case]
    pairs = [f"out[{y}, {x}] -> f[{a}, {b}]" for y in range(H) for x in range(W) for a, b in places(y, x)]
    assert reads_of(value).is_equal(isl.Map("{ " + "; ".join(pairs) + " }"))


def test_what_data_decides_may_be_anywhere_in_its_interval() -> None:
    found = reads_of(lambda f, y, x, img: f[pt.clamp(img[y, x], 3, 5), x])
    assert found.is_equal(isl.Map(f"{{ out[y, x] -> f[a, x] : 0 <= y < {H} and 0 <= x < {W} and 3 <= a <= 5 }}"))


def test_reductions_are_loops_of_their_statement() -> None:
    (y,) = pt.vars("y")
    img = pt.Input("img", "int32", ndim=1)
    r = pt.RDom((0, H), names="k")
    out = pt.Func("out")
    out[y] = 0
    out[y] += img[y + r.k]
    graph = pt.Pipeline(out, shape=(H,)).graph
    update = statements(graph, graph.stage["out"], (Interval(0, H - 1),), {"img.shape.0": Interval.point(20)})[1]
    assert (update.name, update.loops) == ("out.1", ("y", "r.k"))
    assert update.domain.is_equal(box_set("out.1", (range(H), range(H))))
    assert update.reads["img"].range().is_equal(box_set("img", (range(2 * H - 1),)))


def test_simplified_relations_hold_what_they_held() -> None:
    """Diamonds of a chain of 5-point stencils become boxes."""
    cross = isl.Map("{ a[y, x] -> a[v, u] : -1 <= v - y + u - x <= 1 and -1 <= v - y - u + x <= 1 }")
    exact = kept = cross
    for _ in range(3):
        exact, kept = exact.apply_range(cross), simplified(kept.apply_range(cross))
    assert exact.is_subset(kept)
    assert kept.is_subset(rectangular(exact))


def test_rectangular_is_the_smallest_box_of_each_point() -> None:
    two = isl.Map("{ t[i] -> a[x, y] : 0 <= i <= 1 and x = y and 8i <= x <= 8i + 3; t[3] -> a[1, 5]; t[3] -> a[4, 2] }")
    boxes = rectangular(two)
    expected = (
        "{ t[i] -> a[x, y] : 0 <= i <= 1 and 8i <= x, y <= 8i + 3; t[3] -> a[x, y] : 1 <= x <= 4 and 2 <= y <= 5 }"
    )
    assert boxes.is_equal(isl.Map(expected))


def test_boxes() -> None:
    assert box_set("a", (range(2, 5), range(-1, 1))).is_equal(isl.Set("{ a[y, x] : 2 <= y < 5 and -1 <= x < 1 }"))
    assert box_set("a", (range(2, 2),)).is_empty()
