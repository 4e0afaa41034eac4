"""Reductions of whole pictures on GPUs, without a schedule: all blocks and threads take part, and values stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.schedule import gpu_default
from pantile.simulator import counting

from ..long import LONG

Y, X, V, W, C = pt.vars("y x v w c")
FEW_BLOCKS = 64  # more than the threads of a warp
ROWS = 520 if LONG else 72  # more than there are blocks
LARGE = (ROWS, 300)
SHARE = 40  # threads at least that the work of a picture is spread over, those of warps that have nothing to do counted


def folded(kind: str, dtype: str) -> pt.Pipeline:
    img, f = pt.Input("img", dtype, 2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    held = {"dtype": dtype} if kind == "sum" else {}  # which may wrap
    f[()] = getattr(pt, kind)(img[r[0], r[1]], over=r, **held)
    return pt.Pipeline(f, shape=(), target="cuda-sim")


def searched(kind: str, dtype: str) -> pt.Pipeline:
    img, f = pt.Input("img", dtype, 2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    row, column, _ = getattr(pt, kind)(img[r[0], r[1]], over=r)
    f[()] = row * 1000 + column
    return pt.Pipeline(f, shape=(), target="cuda-sim")


def histogram(dtype: str, bins: int, count: str) -> pt.Pipeline:
    """How often each value, times 3 and plus the row, occurs."""
    img, f = pt.Input("img", dtype, 2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    f[V] = pt.cast(count, 0)
    f[pt.clamp(pt.cast("int32", img[r[0], r[1]]) * 3 + r[0], 0, bins - 1)] += pt.cast(count, 1)
    return pt.Pipeline(f, shape=(bins,), target="cuda-sim")


def searched_per_channel() -> pt.Pipeline:
    """By a number of blocks that three results do not divide."""
    img, f = pt.Input("img", "uint8", 3), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    row, column, value = pt.argmax(img[r[0], r[1], C], over=r)
    f[C] = row * 1000 + column + value
    return pt.Pipeline(f, shape=(3,), target="cuda-sim")


def two_dims() -> pt.Pipeline:
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    f[V, W] = 0
    f[img[r[0], r[1]] // 16, img[r[0], r[1]] % 16] += 1
    return pt.Pipeline(f, shape=(16, 16), target="cuda-sim")


def several_values() -> pt.Pipeline:
    """The sum and the largest of those that are even, and a second sum on top."""
    img, f, g = pt.Input("img", "int32", 2), pt.Func("f"), pt.Func("g")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    even = r.where(img[r[0], r[1]] % 2 == 0)
    f[()] = (0, -1)
    f[()] = (f[()][0] + img[even[0], even[1]], pt.maximum(f[()][1], img[even[0], even[1]]))
    f[()] = (f[()][0] ^ img[r[0], r[1]], f[()][1] + img[r[0], r[1]])
    g[()] = f[()][0] + f[()][1]
    return pt.Pipeline(g, shape=(), target="cuda-sim")


def per_column_of_a_few() -> pt.Pipeline:
    img, f = pt.Input("img", "int32", 2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    f[C] = pt.sum(img[r[0], r[1]] * (C + 1), over=r, dtype="int32")
    return pt.Pipeline(f, shape=(5,), target="cuda-sim")


def some_are() -> pt.Pipeline:
    """Whether some pixels have a value and all are below another."""
    img, f = pt.Input("img", "int32", 2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    f[()] = pt.any(img[r[0], r[1]] == 77, over=r) & pt.all(img[r[0], r[1]] < 200, over=r)
    return pt.Pipeline(f, shape=(), target="cuda-sim")


def long_row() -> pt.Pipeline:
    img, f, r = pt.Input("img", "int32", 2), pt.Func("f"), pt.RDom((2, 5000))
    f[()] = pt.sum(pt.edge(img)[0, r[0]], over=r, dtype="int32")
    return pt.Pipeline(f, shape=(), target="cuda-sim")


REDUCTIONS: dict[str, Callable[[], pt.Pipeline]] = {
    "sum of integers": lambda: folded("sum", "int32"),
    "product": lambda: folded("prod", "int32"),
    "mean": lambda: folded("mean", "uint8"),
    "mean of floats": lambda: folded("mean", "float32"),
    "smallest": lambda: folded("min", "float32"),
    "first of the largest": lambda: searched("argmax", "uint8"),
    "first of the smallest": lambda: searched("argmin", "float32"),
    "histogram": lambda: histogram("uint8", 256, "int32"),
    "histogram that one block cannot hold": lambda: histogram("uint16", 200_000, "uint32"),
    "histogram of 16 bits": lambda: histogram("uint8", 256, "uint16"),
    "histogram of floats": lambda: histogram("uint8", 256, "float32"),
    "large histogram of floats": lambda: histogram("uint16", 200_000, "float32"),
    "histogram of two dims": two_dims,
    "several values": several_values,
    "a few results": per_column_of_a_few,
    "any and all": some_are,
    "one long row": long_row,
}


@pytest.fixture(autouse=True)
def _few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as usual are simulated, and combined, for seconds."""
    if not LONG:
        monkeypatch.setattr(gpu_default, "BLOCKS", FEW_BLOCKS)


def picture(p: pt.Pipeline, shape: tuple[int, int], most: int = 200) -> np.ndarray[Any, np.dtype[Any]]:
    """With many values that are equal."""
    return np.random.default_rng(shape[0]).integers(0, most, shape).astype(p.graph.inputs[0].dtype.numpy)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_all_threads_find_what_the_reference_finds(name: str) -> None:
    """Fewer rows and columns than there are blocks and threads, and more."""
    p = REDUCTIONS[name]()
    for shape in ((9, 300), (ROWS, 3)):
        img = picture(p, shape)
        np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5 if "float" in name else 0)
    with counting() as counts:
        p(img=picture(p, LARGE))
    assert max(c.operations.total() / (c.blocks * c.threads) for c in counts) < LARGE[0] * LARGE[1] / SHARE


@pytest.mark.parametrize("name", ["sum of integers", "first of the largest", "histogram", "histogram of 16 bits"])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1)])
def test_hardly_any_pixels(name: str, shape: tuple[int, int]) -> None:
    p = REDUCTIONS[name]()
    np.testing.assert_array_equal(p(img=picture(p, shape)), p.reference(img=picture(p, shape)))


@pytest.mark.parametrize("name", ["mean of floats", "histogram of floats"])
def test_strict_floats_are_summed_in_their_order(name: str) -> None:
    p = REDUCTIONS[name]().with_options(strict=True)
    assert not any("rfactor" in s.verbs or "atomic" in s.verbs for s in p.schedule.values())
    img = picture(p, (30, 70))
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


def test_windows_of_pixels_stay_with_their_threads() -> None:
    """As do sums along rows, of which there are as many as the picture has."""
    img, r = pt.Input("img", "int32", 2), pt.RDom((0, 40), (0, 40))
    blurred, rows, s = pt.Func("blurred"), pt.Func("rows"), pt.RDom((0, img.shape[1]))
    blurred[Y, X] = pt.sum(img[Y + r[0], X + r[1]], over=r, dtype="int32")
    rows[Y] = pt.sum(img[Y, s[0]], over=s, dtype="int32")
    for f, shape in ((blurred, (img.shape[0] - 39, img.shape[1] - 39)), (rows, img.shape[:1])):
        p = pt.Pipeline(f, shape=shape, target="cuda-sim")
        assert not any("rfactor" in stage.verbs for stage in p.schedule.values())


@pytest.mark.parametrize("name", ["clahe", "hist_eq"])
def test_apps_count_in_shared_memory(name: str) -> None:
    p = next(a for a in APPS.values() if a.name == name).build().with_options(target="cuda-sim")
    stage = p.schedule.on("histogram_blocks")
    assert {"atomic", "store_in", "thread"} <= set(stage.verbs)


def test_searches_for_a_few_results() -> None:
    p, img = searched_per_channel(), np.random.default_rng(3).integers(0, 9, (40, 50, 3), dtype=np.uint8)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))
    assert any("rfactor" in stage.verbs for stage in p.schedule.values())


def test_names_that_are_taken() -> None:
    """By dims, stages, params and loops of the pipeline."""
    img, gain = pt.Input("img", "int32", 2), pt.Param("blocks", "int32")
    f, taken = pt.Func("f"), pt.Func("f_parts")
    lanes = pt.Var("lanes")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]), name="rows")
    taken[Y, X] = img[Y, X] * gain + img[Y, X]
    f[lanes] = pt.sum(taken[r[0], r[1]] + lanes, over=r, dtype="int32")
    p = pt.Pipeline([f, taken], shape=[(3,), img.shape], target="cuda-sim")
    values = picture(p, (40, 50))
    for a, b in zip(p(img=values, blocks=3), p.reference(img=values, blocks=3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_partial_results_that_a_schedule_asks_for_are_shared_out_too() -> None:
    """What is made of them by default may be made in parts again."""
    img, h = pt.Input("img", "uint8", 3), pt.Func("h")
    r = pt.RDom((0, 3), (0, img.shape[1]), (0, img.shape[2]))
    h[V] = 0
    h[img[r[0], r[1], r[2]] % 16] += 1
    parts = pt.Schedule(pt.on("h").update().rfactor("r.0", "u"))
    p = pt.Pipeline(h, shape=(16,), target="cuda-sim").with_schedule(parts)
    picture = np.random.default_rng(0).integers(0, 256, (3, 40, 50), np.uint8)
    np.testing.assert_array_equal(p(img=picture), np.bincount(picture.ravel() % 16, minlength=16))


@pytest.mark.parametrize("gain", [-(2**62), -1, 0, 2**61])
def test_bins_that_a_param_says(gain: int) -> None:
    """No more than the type of its arithmetic has: a block's share of them has a constant size."""
    img, number = pt.Input("img", "int32", 2), pt.Param("gain", "int64")
    h, out = pt.Func("h"), pt.Func("out")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    h[V] = 0
    h[img[r[0], r[1]] % 16] += 1
    out[V] = h[(number * 7) >> 61] + h[V]
    p = pt.Pipeline(out, shape=(16,), target="cuda-sim")
    values = picture(p, (4, 9))
    np.testing.assert_array_equal(p(img=values, gain=gain), p.reference(img=values, gain=gain))


def test_a_stage_of_which_nothing_is_read() -> None:
    """Its required region is empty by a condition that never holds, and that its bounds say: x < -2 where x is not
    negative."""
    img = pt.Input("img", "int32", 2)
    f, g = pt.Func("f"), pt.Func("g")
    r = pt.RDom((0, 3))
    g[Y, X] = 0
    g[Y, X] += img[Y, X] + r[0]
    f[Y, X] = pt.select(X < -2, g[Y, X], img[Y, X])
    p = pt.Pipeline(f, shape=(*img.shape[:1], 4), target="cuda-sim")
    values = picture(p, (9, 40))
    np.testing.assert_array_equal(p(img=values), values[:, :4])


def test_a_condition_of_an_update_reads_what_blocks_of_its_stage_compute() -> None:
    """The blocks are those of the pure definition. Where the condition does not read, nothing is computed."""
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    border, r = pt.constant(img, 1), pt.RDom((-2, 4))
    holds = pt.select(y <= x - 2, 2, border[y + r[0], r[0]]) == 7
    out[y, x] = pt.sum(pt.cast("float32", 1.0), over=r.where(holds))
    inside = pt.Schedule(pt.on("img_constant").compute_at("out", "x_block"))
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(inside)
    picture = np.where(np.arange(16 * 17).reshape(16, 17) % 3 == 0, 7, 0).astype(np.float32)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))
