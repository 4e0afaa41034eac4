"""Threads that meet at the places of an update combine their values there, and none is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.ir.nodes import Manner, Store
from pantile.ir.visit import walk

from .simulated import assert_agrees, kernels

i = pt.Var("i")
img = pt.Input("img", "uint8", ndim=2)
Combine = Callable[[Any, Any], Any]


def histogram(combine: Combine = lambda old, new: old + new, start: int = 0, dtype: str = "int32") -> pt.Pipeline:
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]), name="r", names="y x")
    hist = pt.Func("hist")
    hist[i] = pt.cast(dtype, start)
    at = pt.cast("int32", img[r.y, r.x]) // 8
    weight = pt.cast(dtype, img[r.y, r.x] % 8 + 1)
    hist[at] = combine(hist[at], weight)
    return pt.Pipeline(hist, shape=(32,), target="cuda-sim")


PICTURE = np.random.default_rng(3).integers(0, 256, (37, 70), dtype=np.uint8)
GLOBAL = pt.on("hist").thread("i").update().atomic().split("r.x", "xo", "xi", 32).block("r.y", "xo").thread("xi")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(
    ("combine", "start"),
    [
        (lambda old, new: old + new, 0),
        (lambda old, new: pt.maximum(old, new), 0),
        (lambda old, new: pt.minimum(old, new), 100),
        (lambda old, new: old | new, 0),
        (lambda old, new: old & new, 255),
        (lambda old, new: old ^ new, 0),
    ],
)
def test_operations(combine: Combine, start: int, dtype: str) -> None:
    p = histogram(combine, start, dtype).with_schedule(pt.Schedule(GLOBAL))
    np.testing.assert_array_equal(p(img=PICTURE), p.reference(img=PICTURE))


def swept(combine: Combine, otherwise: int) -> pt.Pipeline:
    """Sixteen values, each combined with those of a column, all of which are the same number in the end."""
    hist, r = pt.Func("hist"), pt.RDom((0, img.shape[0]), name="r", names="y")
    hist[i] = pt.cast("uint32", i)
    hist[i] = combine(hist[i], pt.select(r.y < 0, pt.cast("uint32", img[r.y, 0]), pt.cast("uint32", otherwise)))
    return pt.Pipeline(hist, shape=(16,), target="cuda-sim")


ALL = 2**32 - 1


@pytest.mark.parametrize(
    ("combine", "number"),
    [
        (lambda old, new: old + new, 0),
        (lambda old, new: old | new, 0),
        (lambda old, new: old ^ new, 0),
        (lambda old, new: old & new, ALL),
        (lambda old, new: pt.maximum(old, new), 0),
        (lambda old, new: pt.minimum(old, new), ALL),
        (lambda old, new: old & new, 0),
        (lambda old, new: old | new, ALL),
        (lambda old, new: pt.minimum(old, new), 0),
        (lambda old, new: pt.maximum(old, new), ALL),
    ],
)
def test_what_lowering_makes_of_nothing_and_all(combine: Combine, number: int) -> None:
    """Where it turns out that values stay as they are, or become one number whatever they are."""
    threads = pt.on("hist").thread("i").update().atomic().reorder("r.y", "i").block("r.y").thread("i")
    assert_agrees(swept(combine, number).with_schedule(pt.Schedule(threads)), img=PICTURE)


@pytest.mark.parametrize(
    "asked",
    [
        pt.on("hist").update().atomic().reorder("r.y", "i").vectorize("i", 4),
        pt.on("hist").update().reorder("r.y", "i").vectorize("i", 4).atomic(),
    ],
)
def test_vectors_are_refused_whatever_comes_first(asked: pt.StageSchedule) -> None:
    with pytest.raises(
        pt.UserError, match="update 0 is atomic, and combines one value at a time; leave the loop serial"
    ):
        swept(lambda old, new: old + new, 1).with_schedule(pt.Schedule(asked))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_floats(dtype: str) -> None:
    p = histogram(dtype=dtype).with_schedule(pt.Schedule(GLOBAL))
    np.testing.assert_allclose(p(img=PICTURE), p.reference(img=PICTURE), rtol=1e-6)


IN_BLOCKS = (
    pt.on("hist").thread("i").update().split("r.y", "strip", "row", 8).rfactor("strip", "strip").thread("i"),
    pt.on("hist_strip")
    .block("strip")
    .thread("i")
    .update()
    .split("row", "all", "row", 8)
    .rfactor("all", "all")
    .block("strip")
    .thread("i"),
    pt.on("hist_strip_all")
    .compute_at("hist_strip", "strip")
    .store_in("shared")
    .thread("i")
    .update()
    .atomic()
    .split("r.x", "step", "lane", 32)
    .reorder("strip", "all", "row", "lane", "step")
    .thread("row", "lane"),
)


def test_in_shared_memory() -> None:
    p = histogram().with_schedule(pt.Schedule(*IN_BLOCKS))
    np.testing.assert_array_equal(p(img=PICTURE), p.reference(img=PICTURE))


def test_only_where_threads_meet() -> None:
    """An update that one thread does stores plainly, though it might not."""
    p = histogram().with_schedule(pt.Schedule(pt.on("hist").thread("i").update().atomic()))
    stores = [s for k in kernels(p) for s in walk(k.body) if isinstance(s, Store)]
    assert stores and all(s.manner is Manner.PLAIN for s in stores)
    np.testing.assert_array_equal(p(img=PICTURE), p.reference(img=PICTURE))


def test_instructions() -> None:
    """One each, without a load, and in shared memory where the histogram is."""
    ptx = histogram().with_schedule(pt.Schedule(GLOBAL)).asm("sm_90")
    assert re.search(r"(red|atom)[a-z.]*global[a-z.]*add.u32", ptx)
    shared = histogram().with_schedule(pt.Schedule(*IN_BLOCKS)).asm("sm_90")
    assert re.search(r"(red|atom)[a-z.]*shared[a-z.]*add.u32", shared)
    floats = histogram(dtype="float32").with_schedule(pt.Schedule(GLOBAL)).asm("sm_70")
    assert re.search(r"(red|atom)[a-z.]*global[a-z.]*add.f32", floats) and ".cas" not in floats


@pytest.mark.parametrize(
    ("combine", "dtype", "asked", "text"),
    [
        (lambda old, new: old * new, "int32", GLOBAL, "does not combine each value with a new one by"),
        (lambda old, new: old + new, "uint8", GLOBAL, "does not combine each value with a new one by"),
        (lambda old, new: pt.maximum(old, new), "float32", GLOBAL, "does not combine each value with a new one by"),
        (lambda old, new: old + new, "int32", pt.on("hist").atomic(), "the pure definition does not combine"),
        (
            lambda old, new: old + new,
            "int32",
            pt.on("hist").update().atomic().vectorize("r.x", 4),
            "update 0 is atomic, and combines one value at a time",
        ),
    ],
)
def test_refused(combine: Combine, dtype: str, asked: pt.StageSchedule, text: str) -> None:
    with pytest.raises(pt.UserError) as caught:
        histogram(combine, 0, dtype).with_schedule(pt.Schedule(asked))
    assert text in str(caught.value)


def test_refused_when_strict() -> None:
    with pytest.raises(pt.UserError, match="sums of floats in any order round differently"):
        histogram(dtype="float32").with_options(strict=True).with_schedule(pt.Schedule(GLOBAL))


def test_registers_are_refused() -> None:
    own = pt.on("own").compute_at("hist", "i_block").store_in("register").update().atomic().thread("r.x")
    with pytest.raises(pt.UserError, match="own is memory of one thread"):
        histogram().with_schedule(
            pt.Schedule(pt.on("hist").copy_out("own").split("i", "i_block", "t", 32).block("i_block").thread("t"), own)
        )
