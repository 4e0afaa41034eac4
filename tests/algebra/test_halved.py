"""Weighted sums over many rows, three products for every four."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pantile as pt
from pantile.reference import evaluate

from ..autoschedule.problems import ORDINARY
from .examples import X, Y, stages

halve_rows = import_module("pantile.algebra.halve_rows")  # the package has a function of this name
(C,) = pt.vars("c")
LAYOUTS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "grey": lambda y, x: (y, x),
    "pixels": lambda y, x: (y, x, C),
    "planes": lambda y, x: (C, y, x),
}
BOUNDARIES = [pt.edge, pt.reflect, pt.mirror, pt.wrap, lambda *a, **k: pt.constant(*a, 7, **k)]
FOUR = ["out_rows", "out_weights", "out_planes", "out"]


def convolved(
    sides: tuple[int, int] = (17, 17), dtype: str = "uint8", layout: str = "grey", *, start: float = 0.0,
    low: tuple[int, int] = (-3, -2), step: int = 1, boundary: Any = pt.edge, total: str = "float32", **options: Any,
) -> pt.Pipeline:  # fmt: skip
    """Each pixel's window, weighted by an input; `step` -1: backwards."""
    place, out = LAYOUTS[layout], pt.Func("out")
    img, kernel = pt.Input("img", dtype, ndim=len(place(Y, X))), pt.Input("kernel", total, ndim=2)
    src = boundary(img, axes=(1, 2) if layout == "planes" else (0, 1))
    r = pt.RDom(*zip(low, sides, strict=True), names="y x")
    out[place(Y, X)] = pt.cast(total, start)
    out[place(Y, X)] += src[place(Y + step * r.y, X + step * r.x)] * kernel[r.y - low[0], r.x - low[1]]
    return pt.Pipeline(out, shape=img.shape, **options)


def arguments(p: pt.Pipeline, shape: tuple[int, ...], sides: tuple[int, int]) -> dict[str, Any]:
    rng = np.random.default_rng(sum(shape))
    img, kernel = p.graph.inputs
    return {
        "img": rng.integers(img.dtype.min, img.dtype.max, shape, img.dtype.numpy, endpoint=True),
        "kernel": (rng.random(sides) - 0.25).astype(kernel.dtype.numpy),
    }


def bound(p: pt.Pipeline, given: dict[str, Any], halvings: int) -> float:
    """What both sums may be wrong by, one as written and one halved."""
    t = p.graph.stage["out"].dtypes[0]
    largest = max(1.0, float(np.abs(given["img"].astype(float)).max()))
    terms = given["kernel"].size + 4  # and a few more to add planes
    return float((1 + 1.5**halvings) * terms * t.epsilon * (largest * np.abs(given["kernel"]).sum() + 9))


@settings(max_examples=20)
@given(st.data())
def test_any_window_stays_within_the_bound(data: st.DataObject) -> None:
    """By the reference evaluator, of the new stages and of those as written."""
    halvings, layout = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(list(LAYOUTS)))
    sides = data.draw(st.integers(halve_rows.FEWEST_ROWS, 20)), data.draw(st.integers(1, 4))
    height, width = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halve_rows, "_cost", lambda _, n: 1 + abs(n - halvings))
        patch.setattr(halve_rows, "WORTH", 2)
        p = convolved(
            sides,
            data.draw(st.sampled_from(["uint8", "int8", "uint16", "int16"])),
            layout,
            low=(data.draw(st.integers(-20, 3)), data.draw(st.integers(-3, 3))),
            boundary=data.draw(st.sampled_from(BOUNDARIES)),
            total=data.draw(st.sampled_from(["float32", "float64"])),
            start=data.draw(st.sampled_from([0.0, 0.5])),
            step=data.draw(st.sampled_from([1, -1])),
        )
        assert stages(p)[-4:] == FOUR
    shape = {"grey": (height, width), "pixels": (height, width, 2), "planes": (2, height, width)}[layout]
    arrays = arguments(p, shape, sides)
    (new,), (old,) = (evaluate(graph, arrays, {}) for graph in (p.rewritten, p.graph))
    assert np.abs(new - old).max() <= bound(p, arrays, halvings)


@pytest.mark.parametrize(("layout", "side", "halvings"), [("grey", 31, 3), ("pixels", 17, 2)])
def test_code(layout: str, side: int, halvings: int) -> None:
    p, shape = convolved((side, side), layout=layout), {"grey": (37, 41), "pixels": (37, 41, 3)}
    arrays = arguments(p, shape[layout], (side, side))
    assert np.abs(p(**arrays) - p.reference(**arrays)).max() <= bound(p, arrays, halvings)


def test_it_is_explained() -> None:
    said = (
        "  out: a sum of 31 x 31 products, its rows halved three times: 997 -> 540 operations per value; new: "
        "out_rows[plane, group, x], out_weights[plane, row, r_x], out_planes[plane, group, x]"
    )
    assert convolved((31, 31)).explain().endswith(said)


def test_planes_are_written_out_and_threads_share_rows() -> None:
    rows, weights, planes = (repr(convolved((31, 31)).schedule[name]) for name in FOUR[:3])
    assert '.unroll("plane", 27)' in rows and '.parallel("group", 2)' in rows
    assert '.unroll("r.y", 4)' in planes and '.parallel("group")' in planes
    assert "unroll" not in weights


@pytest.mark.parametrize("strategy", ["naive", "greedy", "posttile"])
def test_they_are_written_out_under_strategies(strategy: str) -> None:
    estimates = {"img": (700, 1000, 3), "kernel": (31, 31)}
    p = convolved((31, 31), layout="pixels").with_options(target="aarch64")
    p = p.with_schedule(strategy, estimates=estimates, machine=ORDINARY)
    assert '.unroll("plane", 27)' in repr(p.schedule["out_rows"])
    assert '.unroll("y' not in repr(p.schedule["out"])  # rows side by side would read all planes at once


def test_where_it_saves_little_it_is_kept() -> None:
    assert stages(convolved((11, 11))) == ["out"]
    assert stages(convolved((31, 1))) == ["out"]
    assert stages(convolved((1, 200))) == ["out"]
    assert stages(convolved((15, 15))) == FOUR


def test_order_and_numbers_that_are_none_are_kept() -> None:
    assert stages(convolved(strict=True)) == ["out"]
    assert stages(convolved(dtype="float32")) == ["out"]
    assert stages(convolved(dtype="int32")) == ["out"]
    assert stages(convolved(algebra=False)) == ["out"]


def summed(term: Callable[[Any, Any, Any], Any]) -> list[str]:
    """The stages for a sum of something of pixel, weight and loops."""
    img, kernel = pt.Input("img", "uint8", ndim=2), pt.Input("kernel", "float32", ndim=2)
    r, out = pt.RDom((0, 17), (0, 17), names="y x"), pt.Func("out")
    out[Y, X] = pt.sum(term(img, kernel, r), over=r)
    return stages(pt.Pipeline(out, shape=(20, 20)))


def test_what_pixels_and_weights_may_be() -> None:
    def scaled(img: Any, kernel: Any, r: Any) -> Any:
        return (pt.edge(img)[Y + r.y, X + r.x] / 255.0 - 0.5) * kernel[r.y, r.x] * 3.0

    def made_small(img: Any, kernel: Any, r: Any) -> Any:
        level = pt.Func("level")
        level[Y, X] = pt.exp(pt.edge(img)[Y, X] / 64.0)
        return pt.cast("int16", level[Y + r.y, X + r.x]) * pt.exp(-pt.cast("float32", r.y * r.y + r.x) / 9)

    assert summed(scaled) == FOUR
    assert summed(made_small)[-4:] == FOUR


def test_what_they_may_not_be() -> None:
    def unlimited(img: Any, kernel: Any, r: Any) -> Any:  # another row might be outside
        return img[Y + r.y, X + r.x] * kernel[r.y, r.x]

    def ending(img: Any, kernel: Any, r: Any) -> Any:
        level = pt.Func("level", domain=((0, 99), (0, 99)))
        level[Y, X] = pt.edge(img)[Y, X]
        return level[Y + r.y, X + r.x] * kernel[r.y, r.x]

    def strided(img: Any, kernel: Any, r: Any) -> Any:
        return pt.edge(img)[2 * Y + r.y, X + r.x] * kernel[r.y, r.x]

    def varying(img: Any, kernel: Any, r: Any) -> Any:
        return pt.edge(img)[Y + r.y, X + r.x] * pt.edge(kernel)[Y + r.y, r.x]

    def divided(img: Any, kernel: Any, r: Any) -> Any:  # 0/0
        return (1.0 / pt.cast("float32", pt.edge(img)[Y + r.y, X + r.x])) * kernel[r.y, r.x]

    for term in (unlimited, ending, strided, varying, divided):
        assert summed(term)[-1] == "out" and "out_planes" not in summed(term)
