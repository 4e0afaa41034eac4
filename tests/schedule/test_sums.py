"""Sums of large windows: in blocks of rows that share what they read, by default and by strategies."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.schedule import Schedule, resolve
from pantile.schedule.sums import shared_terms
from pantile.target.description import cpu_target
from tests.autoschedule.problems import MODELS
from tests.long import LONG

C, Y, X = pt.vars("c y x")
SIDE = 9
SHAPES = {"gray": (41, 83), "pixels": (41, 53, 3), "planes": (3, 41, 53)}


def placed(layout: str, y: Any, x: Any) -> tuple[Any, ...]:
    return {"gray": (y, x), "pixels": (y, x, C), "planes": (C, y, x)}[layout]


def convolved(layout: str, dtype: str = "uint8", strict: bool = False) -> pt.Pipeline:
    """Each pixel's window, weighted by an input."""
    img = pt.Input("img", dtype, ndim=len(SHAPES[layout]))
    kernel = pt.Input("kernel", "float32" if dtype != "int32" else "int32", ndim=2)
    r, out = pt.RDom((0, SIDE), (0, SIDE), names="y x"), pt.Func("out")
    src = pt.edge(img, axes=(1, 2) if layout == "planes" else (0, 1))
    at, read = placed(layout, Y, X), placed(layout, Y + r.y - SIDE // 2, X + r.x - SIDE // 2)
    out[at] = 0.0 if dtype != "int32" else 0
    out[at] += src[read] * kernel[r.y, r.x]
    return pt.Pipeline(out, shape=img.shape, strict=strict)


def arguments(layout: str, dtype: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    kernel = rng.integers(1, 9, (SIDE, SIDE))
    return {
        "img": rng.integers(0, 256, SHAPES[layout]).astype(dtype),
        "kernel": kernel.astype("int32" if dtype == "int32" else "float32"),
    }


@pytest.mark.parametrize(
    ("strict", "dtype", "layout"),
    [
        (strict, dtype, layout)
        for strict, dtype, layout in itertools.product([False, True], ["uint8", "float32", "int32"], SHAPES)
        if not strict or layout == "gray" or LONG
    ],
)
def test_windows_by_default(layout: str, dtype: str, strict: bool) -> None:
    p, given = convolved(layout, dtype, strict), arguments(layout, dtype)
    assert (p(**given) == p.reference(**given)).all()  # whole numbers: no order of terms rounds


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("strategy", MODELS)
def test_windows_by_strategies(layout: str, strategy: str) -> None:
    p, given = convolved(layout), arguments(layout, "uint8")
    assert (p.with_schedule(strategy)(**given) == p.reference(**given)).all()


def test_rows_are_written_out_with_the_terms_for_which_they_read_the_same() -> None:
    p = convolved("gray", "float32")
    update = '.unroll("y", 4).unroll("r.y", 4).reorder("y", "x", "r.y", "r.x", "r.y_u", "y_u", "x_v").parallel("y")'
    assert update in repr(p.schedule["out"])


def shared(p: pt.Pipeline, dim: str, across: str, rows: int = 4, strict: bool = False) -> dict[str, int]:
    (stage,) = (s for s in p.graph.stages if s.updates)
    return shared_terms(stage, stage.updates[0], dim, across, 8, rows, strict)


def test_what_rows_share() -> None:
    p = convolved("gray", "float32")
    assert shared(p, "y", "x") == {"r.y": 4}
    assert shared(p, "x", "y") == {"r.x": 4}
    assert shared(p, "y", "x", rows=2) == {}
    assert shared(p, "y", "x", strict=True) == {}  # r.y would come inside of r.x
    assert shared(convolved("gray", "int32"), "y", "x", strict=True) == {"r.y": 4}


def test_numbers_that_vectors_are_multiplied_with_are_not_worth_sharing() -> None:
    """A layer whose vectors go along what it computes: rows read neighbours, but one number at a time."""
    (k,) = pt.vars("k")
    img, weights, out = pt.Input("img", "float32", 3), pt.Input("weights", "float32", 4), pt.Func("out")
    r = pt.RDom((0, 3), (0, 3), (0, 8), names="y x c")
    out[Y, X, k] = 0.0
    out[Y, X, k] += img[Y + r.y, X + r.x, r.c] * weights[r.y, r.x, r.c, k]
    p = pt.Pipeline(out, shape=(10, 10, 16))
    assert shared(p, "x", "k") == {}


def test_a_small_window_with_weights_is_in_blocks_of_rows_too() -> None:
    """Written out, as sums of few terms are, it would take three times as long."""
    img, kernel, out = pt.Input("img", "uint8", ndim=2), pt.Input("kernel", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, 7), (0, 7), names="y x")
    out[Y, X] = pt.sum(pt.edge(img)[Y + r.y, X + r.x] * kernel[r.y, r.x], over=r)
    assert '.unroll("r.y", 4)' in repr(pt.Pipeline(out, shape=img.shape).schedule["out"])


@pytest.mark.parametrize("strategy", MODELS)
def test_what_sums_convert_is_stored(strategy: str) -> None:
    app = APPS["large_kernel"]
    p = app.build().with_options(algebra=False).with_schedule(strategy, estimates=app.sizes["paper"])
    assert "compute_inline" not in repr(p.schedule["img_edge"])


@pytest.mark.parametrize("how", ["default", *MODELS])
def test_what_is_read_where_data_says_is_not_stored(how: str) -> None:
    img, place, weights = pt.Input("img", "uint8", 1), pt.Input("place", "int32", 1), pt.Input("weights", "float32", 1)
    r, out = pt.RDom((0, 40)), pt.Func("out")
    out[X] = pt.sum(pt.edge(img)[place[X] + r[0]] * weights[r[0]], over=r)
    p = pt.Pipeline(out, shape=place.shape)
    p = p if how == "default" else p.with_schedule(how)
    rng = np.random.default_rng(0)
    given = {
        "img": rng.integers(0, 256, 100).astype(np.uint8),
        "place": rng.integers(-50, 150, 33).astype(np.int32),
        "weights": np.arange(40, dtype=np.float32),
    }
    assert (p(**given) == p.reference(**given)).all()


@pytest.mark.parametrize("strategy", ["greedy", "kernel"])
def test_what_channels_share_is_computed_once_wherever_it_is_written(strategy: str) -> None:
    app = APPS["temporal_denoise"]
    machine = pt.machine.named("neoverse-n1")
    p = app.build().with_schedule(strategy, estimates=app.sizes["paper"], machine=machine)
    assert "compute_inline" in repr(p.schedule["weight"])
    assert '.vectorize("x", 16)' in repr(p.schedule["out"])  # twice as wide, five weights would not fit registers


def test_many_terms_of_many_channels_are_a_loop() -> None:
    y, x, c, out = *pt.vars("y x c"), pt.Func("out")
    rows, columns = window = pt.RDom((-2, 5), (0, 12))
    img = pt.constant(pt.Input("img", "float32", shape=(None, None, 4)), 1)
    out[y, x, c] = pt.min(img[y + rows, x + columns, c], over=window)
    image = np.random.default_rng(2).random((12, 28, 8), dtype=np.float32)[::2, ::2, ::2]  # lanes are loaded one by one
    p = pt.Pipeline(out, shape=(6, 14, 4), algebra=False)
    np.testing.assert_array_equal(p(img=image), p.reference(img=image))
    assert p.llvm().count("\n") < 3_000


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_windows_of_all_sizes_may_be_scheduled_for_all_machines(dtype: str, channels: int) -> None:
    for height, width in [(1, 1), (3, 3), (7, 2), (7, 7), (2, 16), (11, 11), (16, 1), (16, 16)]:
        out, window = pt.Func("out"), pt.RDom((0, height), (0, width))
        img = pt.Input("img", dtype, shape=(None, None, channels))
        out[Y, X, C] = pt.max(pt.edge(img)[Y + window[0], X + window[1], C], over=window)
        graph = pt.Pipeline(out, shape=img.shape, algebra=False).graph
        for bits in (128, 256, 512):
            assert resolve(graph, Schedule(), target=cpu_target("x86", bits))
