"""Updates in the loops of their pure definition, reductions that are written out, values that are stored converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.schedule.blocks import STRIP_ROWS

from ..long import LONG

RNG = np.random.default_rng(3)
SIZES = [(1, 1), (2, 3), (5, 31), (9, 33), (33, 64), (65, 131), (70, 300)]


def window(side: int, dtype: str = "float32", channels: int = 0) -> pt.Pipeline:
    """A sum over a window, weighted by an input, read by a stencil."""
    dims = pt.vars("y x c") if channels else pt.vars("y x")
    img = pt.Input("img", dtype, shape=(None, None, channels)) if channels else pt.Input("img", dtype, 2)
    kernel = pt.Input("kernel", "float32", 2)
    r = pt.RDom((0, side), (0, side), names="y x")
    y, x, *c = dims
    total, out = pt.Func("total"), pt.Func("out")
    total[dims] = pt.sum(_at(pt.edge(img, axes=(0, 1)), y + r.y, x + r.x, *c) * kernel[r.y, r.x], over=r)
    out[dims] = _at(total, y, x, *c) + _at(total, y + 1, x, *c)
    return pt.Pipeline(out, shape=img.shape)


def _at(f: Any, *place: Any) -> Any:
    return f[place]


def assert_agrees(p: pt.Pipeline, *shapes: tuple[int, ...], side: int, dtype: str) -> None:
    kernel = RNG.integers(-3, 4, (side, side)).astype(np.float32)  # sums are exact in any order
    for shape in shapes:
        img = RNG.integers(0, 9, shape).astype(dtype)
        np.testing.assert_array_equal(p(img=img, kernel=kernel, num_threads=2), p.reference(img=img, kernel=kernel))


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize(("side", "channels"), [(3, 0), (3, 3), (9, 0), (9, 3)])
def test_sums_by_default(side: int, channels: int, dtype: str) -> None:
    sizes = SIZES if LONG else SIZES[dtype == "float32" :: 2]  # each with code of its own
    shapes = [(*s, channels) if channels else s for s in sizes]
    assert_agrees(window(side, dtype, channels), *shapes, side=side, dtype=dtype)


def test_a_window_of_many_rows_goes_down_strips() -> None:
    img, r = pt.Input("img", "float32", 2), pt.RDom((0, 17))
    y, x = pt.vars("y x")
    for term in (0.0, 1.0):  # with a term beside the sum, the sum is a stage that is inlined
        down = pt.Func("down")
        down[y, x] = pt.sum(pt.edge(img)[y + r[0], x], over=r) + term
        p = pt.Pipeline(down, shape=img.shape)
        assert f'.parallel("y", {STRIP_ROWS})' in repr(p.schedule["down"])
        for shape in SIZES:
            data = RNG.integers(0, 9, shape).astype(np.float32)
            np.testing.assert_array_equal(p(img=data, num_threads=2), p.reference(img=data))


def test_accumulators_are_made_in_the_loop_that_adds_to_them() -> None:
    text = window(9).loops()
    assert text.count("for total.x in") == 2  # of blocks of rows, and of rows that these leave over
    assert "total.u1.x in" not in text


def test_a_small_sum_is_written_out() -> None:
    text = window(3).loops()
    assert "u1" not in text and "for total.r" not in text


def test_threads_do_not_share_blocks_of_accumulators() -> None:
    """The last rows would shift into those of another thread, which is adding to them."""
    y, x = pt.vars("y x")
    img, f, r = pt.Input("img", "float32", 2), pt.Func("f"), pt.RDom((0, 100))
    f[y, x] = 0.0
    f[y, x] += img[y, r[0]] * img[r[0], x]
    p = pt.Pipeline(f, shape=img.shape)
    loops = pt.on("f").parallel("y", 8).vectorize("x", 4)
    rows = pt.Schedule(
        loops.update().parallel("y", 8).vectorize("x", 4).reorder("x", "r.0", "x_v").compute_with("f", "x")
    )
    text = p.with_schedule(rows).loops()
    assert "let f.y_p.lo = f.y*8" in text  # cut off at the end, and not earlier
    assert "let f.x_v.lo = min(" in text


def test_bytes_that_many_terms_convert_are_stored_as_floats() -> None:
    assert "alloc img_edge: float32" in window(9, "uint8").loops()
    assert "alloc" not in window(3, "uint8").loops().split("produce total")[0].replace("alloc total", "")


def test_several_updates_share_loops() -> None:
    y, x = pt.vars("y x")
    img, f = pt.Input("img", "int32", 2), pt.Func("f")
    a, b = pt.RDom((0, 70)), pt.RDom((0, 3))
    f[y, x] = img[y, x]
    f[y, x] += img[y, a[0]]
    f[y, x] = pt.maximum(f[y, x], img[b[0], x])
    p = pt.Pipeline(f, shape=img.shape)
    chain = pt.on("f").vectorize("x", 4)
    for k, r in enumerate((a, b)):
        chain = chain.update(k).vectorize("x", 4).reorder("x", r[0], "x_v").compute_with("f", "x")
    shared = p.with_schedule(pt.Schedule(chain))
    assert shared.loops().count("for f.x in") == 1
    for width in (70, 71, 75):
        data = RNG.integers(-99, 99, (5, width)).astype(np.int32)
        np.testing.assert_array_equal(shared(img=data), p.reference(img=data))


def test_other_stages_are_computed_in_loops_that_definitions_share() -> None:
    y, x = pt.vars("y x")
    img, g, f, r = pt.Input("img", "int32", 2), pt.Func("g"), pt.Func("f"), pt.RDom((0, 5))
    g[y, x] = pt.edge(img)[y, x] * 3
    f[y, x] = g[y, x]
    f[y, x] += g[y, x + r[0]]
    p = pt.Pipeline(f, shape=img.shape)
    shared = p.with_schedule(pt.Schedule(pt.on("g").compute_at("f", "y"), pt.on("f").update().compute_with("f", "y")))
    data = RNG.integers(-99, 99, (7, 30)).astype(np.int32)
    np.testing.assert_array_equal(shared(img=data), p.reference(img=data))


def test_what_something_is_computed_in_is_not_written_out() -> None:
    """The default unrolls a small sum; its loop stays where a stage is computed in it."""
    y, x = pt.vars("y x")
    img, total = pt.Input("img", "int32", ndim=2), pt.Func("total")
    r = pt.RDom((0, 3))
    total[y, x] = pt.sum(pt.edge(img)[y, r[0]] * pt.edge(img)[r[0], x], over=r)
    p = pt.Pipeline(total, shape=img.shape)
    q = p.with_schedule(pt.Schedule(pt.on("img_edge").compute_at("total", "r.0").store_at("total", "x")))
    given = np.arange(35, dtype=np.int32).reshape(7, 5)
    for threads in (1, 3):
        np.testing.assert_array_equal(q(img=given, num_threads=threads), p.reference(img=given))


def test_what_something_is_computed_inside_of_is_not_written_out() -> None:
    """Nor is it where the stage is computed in a loop that only seems to be that of the pure definition."""
    y, x = pt.vars("y x")
    img, least, r = pt.Input("img", "uint8", ndim=2), pt.Func("least"), pt.RDom((0, 7), (0, 5))
    least[y, x] = pt.min(pt.reflect(img)[y + r[0] - 3, x + r[1] - 2], over=r)
    p = pt.Pipeline(least, shape=img.shape)
    shared = pt.on("least").split("y", "y", "yi", 4).unroll("yi").reorder("y", "x", "yi")
    shared = shared.update(0).split("y", "y", "yi", 4).unroll("yi").unroll("r.0").unroll("r.1")
    shared = shared.reorder("y", "x", "r.0", "r.1", "yi").compute_with("least", "x")
    q = p.with_schedule(pt.Schedule(shared, pt.on("img_reflect").compute_at("least", "yi")))
    given = np.arange(16 * 9, dtype=np.uint8).reshape(16, 9)
    np.testing.assert_array_equal(q(img=given), p.reference(img=given))
