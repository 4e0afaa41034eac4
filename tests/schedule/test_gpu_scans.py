"""Scans on GPUs run in strips unless a schedule says otherwise, and have the values that whole ones have."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import pantile as pt
from pantile.machine import named

from ..long import LONG

STRATEGIES = ("greedy", "autogpu", "polymage_gpu", "posttile")
MAY_BE_EMPTY = 1  # the first coordinate of scans that are empty in small pictures


def array(shape: tuple[int, ...], dtype: str = "int32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(0, 100, shape).astype(dtype)


def scan(f: pt.Func, axis: int, dims: list[Any], extent: Any, factor: Any, *, up: bool = False, first: int = 0) -> None:
    """f = factor * the value before + 3 * f along an axis, from coordinate `first` on, and up to as many at the end."""
    r = pt.RDom((first + 1, extent - 1 - 2 * first))
    here, before = (extent - 1 - r[0], extent - r[0]) if up else (r[0], r[0] - 1)
    at, last = ((*dims[:axis], place, *dims[axis + 1 :]) for place in (here, before))
    f[at] = factor * f[last] + 3 * f[at]


Step = tuple[int, bool, int]  # the axis of a scan, whether it goes up, and its first coordinate


def scans(ndim: int, dtype: str, steps: list[Step], offset: int = 0, **options: Any) -> pt.Pipeline:
    """Several scans of one stage, which is read from an offset on."""
    img, f, out = pt.Input("img", dtype, ndim), pt.Func("f"), pt.Func("out")
    dims = list(pt.vars("p q s")[:ndim])
    f[tuple(dims)] = img[tuple(dims)] + pt.cast(dtype, 1)
    for axis, up, first in steps:
        scan(f, axis, dims, img.shape[axis], pt.cast(dtype, 5), up=up, first=first)
    place = (dims[0] + offset, *dims[1:])
    out[tuple(dims)] = f[place]
    shape = (img.shape[0] - offset, *img.shape[1:])
    return pt.Pipeline(out, shape=shape, **({"target": "cuda-sim"} | options))


def cut(p: pt.Pipeline) -> list[str]:
    """The stages whose scans run in strips, once for each."""
    return [name for name, s in p.schedule.items() for d in s.directives if d.verb == "strips"]


def kernels(p: pt.Pipeline) -> int:
    return p.loops().count("threads each")


def assert_same(p: pt.Pipeline, **arrays: Any) -> None:
    results = [r if isinstance(r, tuple) else (r,) for r in (p(**arrays), p.reference(**arrays))]
    for now, then in zip(*results, strict=True):
        np.testing.assert_array_equal(now, then)


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[pt.Pipeline, int, np.ndarray[Any, Any]]:
    """Scans of integers, how many of them may be cut, and a picture, perhaps of less than a strip."""
    ndim = draw(st.integers(1, 3))
    steps = draw(
        st.lists(
            st.tuples(st.integers(0, ndim - 1), st.booleans(), st.sampled_from([0, 0, 0, MAY_BE_EMPTY])),
            min_size=1,
            max_size=4,
        )
    )
    offset = draw(st.sampled_from([0, 0, 3, 32]))
    dtype = draw(st.sampled_from(["int32", "uint8", "int64", "uint16"]))
    most = 70 if LONG else 40
    shape = [draw(st.sampled_from([1, 2, 5, 31, 32, 33, most])) for _ in range(ndim)]
    least = [3 if (axis, MAY_BE_EMPTY) in {(k, first) for k, _, first in steps} else 1 for axis in range(ndim)]
    shape = [max(n, m) + (offset if k == 0 else 0) for k, (n, m) in enumerate(zip(shape, least, strict=True))]
    whole = sum(first == MAY_BE_EMPTY for *_, first in steps)
    return scans(ndim, dtype, steps, offset), len(steps) - whole, array(tuple(shape), dtype)


@settings(max_examples=100 if LONG else 5)
@given(pipelines())
def test_random_scans(case: tuple[pt.Pipeline, int, np.ndarray[Any, Any]]) -> None:
    p, count, img = case
    assert len(cut(p)) == count
    assert_same(p, img=img)


@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 65])
def test_there_and_back(rows: int) -> None:
    """In a kernel for the ends of strips and one for their starts, each way, and one for the values, besides two for
    what strips multiply their starts by, and one for the last rows."""
    p = scans(2, "int32", [(0, False, 0), (0, True, 0)])
    assert cut(p) == ["f", "f"]
    assert_same(p, img=array((rows, 7)))


def test_small_or_empty_pictures() -> None:
    p = scans(2, "int32", [(0, False, 0), (1, True, 0)])
    for shape in ((1, 1), (0, 0), (0, 3), (3, 0)):
        assert_same(p, img=array(shape))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_cut_scans(strategy: str) -> None:
    p = scans(2, "int32", [(0, False, 0), (0, True, 0)])
    q = p.with_schedule(strategy, estimates={"img": (2000, 1000)}, machine=named("H200"))
    assert cut(q) == ["f", "f"]
    assert {n: s for n, s in q.schedule.items() if n.startswith("f")} == {
        n: s for n, s in p.schedule.items() if n.startswith("f")
    }
    assert "scanned in strips, side by side: f" in str(q.report)
    assert_same(q, img=array((70, 40)))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_strict_scans_of_floats_stay_whole(dtype: str, strict: bool) -> None:
    p = scans(2, dtype, [(0, False, 0)], strict=strict)
    assert bool(cut(p)) == (dtype == "int32" or not strict)
    img = array((70, 5), dtype) % 3
    np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=0 if strict else 1e-5)


@pytest.mark.parametrize("rows", [1, 2, 16, 17, 18, 40])
def test_loads_of_whole_scans_are_in_flight_together(rows: int) -> None:
    p = scans(2, "float32", [(0, False, 0), (0, True, 0)], strict=True)
    assert str(p.schedule["f"]).count('.unroll("r.0", 16)') == 2
    assert "f.ahead.14" in p.loops()
    assert_same(p, img=array((rows, 5), "float32"))


def test_loads_of_the_row_above_are_in_flight_together() -> None:
    """A value depends on the one to its left, which is computed just before, and on three of the row above."""
    img, f, y, x = pt.Input("img", "int32", 2), pt.Func("f"), *pt.vars("y x")
    r = pt.RDom((1, img.shape[0] - 1), (1, img.shape[1] - 2))
    f[y, x] = img[y, x]
    above = [f[r[0] - 1, r[1] + k] for k in (-1, 0, 1)]
    f[r[0], r[1]] = pt.minimum(f[r[0], r[1]], f[r[0], r[1] - 1] + sum(above))
    p = pt.Pipeline(f, shape=img.shape, target="cuda-sim")
    first = next(line for line in p.loops().splitlines() if line.strip().startswith("f[") and "ahead" in line)
    assert first.count("ahead") == 4  # all but the one to its left
    for shape in ((2, 3), (5, 18), (4, 40)):
        assert_same(p, img=array(shape))


def running(extent: int, *others: Any, factor: Any = 1) -> pt.Pipeline:
    """Running sums along the last axis, of known extent."""
    img, f = pt.Input("img", "int32", len(others) + 1), pt.Func("f")
    dims = list(pt.vars("p q s")[-len(others) - 1 :])
    f[tuple(dims)] = img[tuple(dims)] * 2
    scan(f, len(others), dims, extent, factor)
    shape = [img.shape[k] if n is None else n for k, n in enumerate(others)]
    return pt.Pipeline(f, shape=(*shape, extent), target="cuda-sim")


@pytest.mark.parametrize("extent", [64, 255, 256, 1000, 1024])
@pytest.mark.parametrize("others", [(), (3,), (None,), (2, None)])
def test_short_rows_take_one_kernel(extent: int, others: tuple[int | None, ...]) -> None:
    p = running(extent, *others)
    assert kernels(p) == (1 if extent % 32 == 0 else 2)  # with another one for the last strip, if that is shorter
    assert_same(p, img=array((*(n or 3 for n in others), extent)))


def test_what_stays_whole() -> None:
    assert not cut(running(50))  # short
    assert not cut(running(100, 1 << 17))  # with a GPU full of threads
    assert cut(running(100, 1000))


def test_floats_that_begin_anew_stay_whole() -> None:
    """In strips, an infinity in front of the place would be multiplied by 0."""

    def resetting(dtype: str) -> pt.Pipeline:
        img, f, y = pt.Input("img", dtype, 1), pt.Func("f"), pt.vars("y")
        f[y] = img[y]
        scan(f, 0, [y], img.shape[0], pt.cast(dtype, 1))
        r = pt.RDom((1, img.shape[0] - 1))
        f[r[0]] = pt.select(img[r[0]] > 5, img[r[0]], f[r[0] - 1] + img[r[0]])
        return pt.Pipeline(f, shape=img.shape, target="cuda-sim")

    assert len(cut(resetting("float32"))) == 1
    assert len(cut(resetting("int32"))) == 2
    assert_same(resetting("int32"), img=array((70,)) % 9)
    img = array((70,), "float32") % 9
    img[3] = np.inf
    assert_same(resetting("float32"), img=img)


def test_factors_that_differ() -> None:
    """Per pixel, so that each strip of each column has a gain of its own; besides other updates and outputs."""
    img, factors = pt.Input("img", "int32", 3), pt.Input("factors", "int32", 2)
    f, g, total = pt.Func("f"), pt.Func("g"), pt.Func("total")
    y, x, c = pt.vars("y x c")
    height, width = img.shape[0], img.shape[1]
    r, s = pt.RDom((1, height - 1)), pt.RDom((0, height), (0, width))
    f[y, x, c] = img[y, x, c]
    f[s[0], s[1], pt.clamp(img[s[0], s[1], 0], 0, 2)] += s[0]
    f[r[0], x, c] = factors[r[0], x] * f[r[0] - 1, x, c] + f[r[0], x, c]
    f[s[0], x, c] += s[1]
    g[y, x, c] = f[y, width - 1 - x, c] + 1
    total[c] = 0
    total[c] += f[s[0], s[1], c]
    p = pt.Pipeline([f, g, total], shape=[(*img.shape[:2], 3), (*img.shape[:2], 3), (3,)], target="cuda-sim")
    assert cut(p) == ["f"]
    assert_same(p, img=array((45, 9, 3)), factors=array((45, 9)))


@pytest.mark.parametrize(
    "asked",
    [
        pt.on("h").compute_at("f", "x_thread"),
        pt.on("img").copy_in("f", "near", "v", "u"),
        pt.on("g").compute_root().clone_in("f", "near"),
    ],
)
def test_stages_that_a_schedule_mentions_stay_whole(asked: pt.StageSchedule) -> None:
    """Others are computed at their loops, or copied for what they read."""
    img, h, g, f = pt.Input("img", "int32", 2), pt.Func("h"), pt.Func("g"), pt.Func("f")
    y, x = pt.vars("y x")
    h[y, x] = img[y, x] * 3
    g[y, x] = img[y, x] + 1
    f[y, x] = h[y, x] + g[y, x] + img[y, x]
    scan(f, 0, [y, x], img.shape[0], 2)
    p = pt.Pipeline([f, g], shape=[img.shape, img.shape], target="cuda-sim")
    assert cut(p) == ["f"]
    q = p.with_schedule(pt.Schedule(asked))
    assert not cut(q)
    assert_same(q, img=array((40, 9)))


def test_gains_that_overflow_leave_zeros_alone() -> None:
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((1, img.shape[0] - 1), names="y")
    out[y, x] = img[y, x]
    out[r.y, x] = out[r.y, x] + 40 * out[r.y - 1, x]
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim")
    assert p.schedule["out"].verbs >= {"strips"}
    zeros = np.zeros((200, 40), np.float32)
    np.testing.assert_array_equal(p(img=zeros), zeros)
