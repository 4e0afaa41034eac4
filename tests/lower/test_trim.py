"""Loops under conditions: they run where these may hold, compute what they should, and store nothing else."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import pantile as pt
from pantile.ir.nodes import For, If, Store
from pantile.ir.visit import walk
from pantile.target.kinds import Kind

from .lowered import lowered

Y, X = pt.vars("y x")
IMG = pt.Input("img", "float32", ndim=2)
H, W = IMG.shape
R = pt.RDom((0, W), names="k")
K = R.k


def summed(condition: pt.Expr) -> pt.Pipeline:
    out = pt.Func("out")
    out[Y, X] = pt.sum(IMG[Y, K] + IMG[X, K], over=R.where(condition))
    return pt.Pipeline(out, shape=(H, H))


def updates(p: pt.Pipeline, after: str = "trim") -> tuple[list[str], int]:
    """Bounds of the loops of the update, and the branches inside."""
    inside = list(walk(lowered(p)[after]))
    loops = [s for s in inside if isinstance(s, For) and ".u1." in s.var]
    return [f"{s.min}..{s.min + s.extent}" for s in loops], sum(isinstance(s, If) for s in inside)


SERIAL = pt.Schedule(pt.on("out"))
TRIMMED = {
    "above": (X >= Y, ["0..img.shape.0", "out.u1.y..out.u1.y + max(img.shape.0 - out.u1.y, 0)", "0..img.shape.1"], 0),
    "a band": ((K >= Y) & (K < Y + 3), None, 0),
    "of the inner loop": (K < X, None, 0),
    "not of coordinates": (IMG[Y, K] > 0.5, ["0..img.shape.0", "0..img.shape.0", "0..img.shape.1"], 1),
    "either of two": ((K < X) | (K > Y), ["0..img.shape.0", "0..img.shape.0", "0..img.shape.1"], 1),
    "of a square": (K * K < Y, None, 1),
    "of an outer loop alone": (Y >= 5, ["5..5 + max(img.shape.0 - 5, 0)", "0..img.shape.0", "0..img.shape.1"], 0),
}
SCHEDULES = {
    "serial": SERIAL,
    "reduction outside": pt.Schedule(pt.on("out").update().reorder("r.k", "y", "x")),
    "vectors": pt.Schedule(pt.on("out").update().reorder("r.k", "x").vectorize("x", 8).parallel("y")),
    "blocks": pt.Schedule(
        pt.on("out").update().tile("y", "x", "yo", "xo", "yi", "xi", 4, 8).reorder("yo", "xo", "r.k", "yi", "xi")
        .unroll("yi").vectorize("xi").partition("xo", "always")
    ),
    "blocks of the reduction": pt.Schedule(
        pt.on("out").update().split("r.k", "ko", "ki", 4).vectorize("x", 4).reorder("ko", "y", "x", "ki", "x_v")
        .unroll("ki")
    ),
    "fused": pt.Schedule(pt.on("out").update().fuse("y", "x", "yx").reorder("r.k", "yx").vectorize("yx", 4)),
}  # fmt: skip


@pytest.mark.parametrize("what", TRIMMED)
def test_bounds(what: str) -> None:
    condition, bounds, branches = TRIMMED[what]
    found = updates(summed(condition).with_schedule(SERIAL))
    assert found[1] == branches
    assert bounds is None or found[0] == bounds


@pytest.mark.parametrize("how", SCHEDULES)
@pytest.mark.parametrize("what", TRIMMED)
def test_same_values(what: str, how: str) -> None:
    p = summed(TRIMMED[what][0]).with_schedule(SCHEDULES[how])
    for shape in ((1, 1), (3, 19), (13, 7), (21, 16)):
        img = np.random.default_rng(0).random(shape, dtype=np.float32)
        np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5)


def test_a_condition_that_no_loop_changes_is_asked_before_it() -> None:
    p = summed(X <= Y).with_schedule(SCHEDULES["blocks"])
    trimmed = [s for s in walk(lowered(p)["trim"]) if isinstance(s, If)]
    assert not any(isinstance(s, Store) for i in trimmed for s in [i.then])


def test_vectors_below_the_diagonal_have_no_masks() -> None:
    p = summed(X <= Y).with_schedule(SCHEDULES["vectors"])
    vectors = [s for s in walk(lowered(p)["simplify"]) if isinstance(s, Store) and s.value.lanes > 1]
    assert Counter(s.mask is not None for s in vectors) == {True: 1, False: 1}


def test_accumulators_on_the_diagonal_are_held_in_registers() -> None:
    """Lanes that are left out keep their value there."""
    p = summed(X <= Y).with_schedule(SCHEDULES["blocks"])
    stores = [s for s in walk(lowered(p)["promote"]) if isinstance(s, Store)]
    assert any(s.buffer == "out.held" and "select" in str(s.value) for s in stores)
    assert all(s.mask is None for s in stores if s.buffer == "out.held")


def test_lanes_on_the_diagonal_that_run_one_by_one_are_not_unrolled() -> None:
    """They load under conditions of their own; where these fail, nothing is left."""
    twice, out = pt.Func("twice"), pt.Func("out")
    twice[Y, X] = 2 * IMG[Y, X]
    out[Y, X] = pt.sum(twice[X, K], over=R.where(X <= Y))
    p = pt.Pipeline(out, shape=(H, H)).with_schedule(
        pt.Schedule(SCHEDULES["blocks"].stages["out"], pt.on("twice").compute_root())
    )
    passes = lowered(p)
    rows = [s for s in walk(passes["partition"]) if isinstance(s, For) and s.var == "out.u1.yi"]
    masked = [s.kind for s in rows if any(isinstance(i, If) for i in walk(s.body))]
    assert masked and set(masked) == {Kind.SERIAL}
    assert not any(isinstance(s, If) and s.otherwise is not None for s in walk(passes["simplify"]))
    img = np.random.default_rng(0).random((21, 16), dtype=np.float32)
    np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5)


def test_rows_of_a_sparse_matrix_are_as_long_as_the_data_says() -> None:
    start, column, value, v = (
        pt.Input("start", "int32", ndim=1),
        pt.Input("column", "int32", ndim=1),
        pt.Input("value", "float32", ndim=1),
        pt.Input("v", "float32", ndim=1),
    )
    e = pt.RDom((0, value.shape[0]), names="e")
    mine = e.where((e.e >= start[Y]) & (e.e < start[Y + 1]))
    out = pt.Func("out")
    out[Y] = pt.sum(value[e.e] * v[pt.within(column[e.e], 0, v.shape[0] - 1)], over=mine)
    p = pt.Pipeline(out, shape=(start.shape[0] - 1,), schedule=pt.Schedule(pt.on("out").parallel("y")))
    (loop,) = [s for s in walk(lowered(p)["trim"]) if isinstance(s, For) and s.var == "out.u1.r.e"]
    assert "start[out.u1.y]" in str(loop.min) and "start[out.u1.y + 1]" in str(loop.extent)
    dense = np.random.default_rng(0).random((9, 11), dtype=np.float32)
    dense[dense < 0.7] = 0
    dense[4] = 0
    arrays = {
        "start": np.concatenate([[0], np.cumsum((dense != 0).sum(1))]).astype(np.int32),
        "column": np.nonzero(dense)[1].astype(np.int32),
        "value": dense[dense != 0],
        "v": np.arange(11, dtype=np.float32),
    }
    np.testing.assert_allclose(p(**arrays), dense @ arrays["v"], rtol=1e-5)
    np.testing.assert_allclose(p.reference(**arrays), dense @ arrays["v"], rtol=1e-5)


def test_lanes_beyond_the_condition_read_nothing() -> None:
    """A sum in lanes reads an input and a stage that end with the last wanted lane."""
    (x,) = pt.vars("x")
    a, b = pt.Input("a", "float64", ndim=1), pt.Input("b", "float64", ndim=1)
    r = pt.RDom((0, a.shape[0]), names="j", name="r")
    twice, total = pt.Func("twice"), pt.Func("total")
    twice[x] = 2 * a[x]
    total[()] = pt.sum(twice[r.j] * b[r.j] * a[r.j], over=r)
    lanes = pt.on("total").update().split("r.j", "j", "lane", 4).rfactor("lane", "lane")
    sums = pt.on("total_lane").vectorize("lane", 4).update().reorder("j", "lane").vectorize("lane", 4)
    p = pt.Pipeline([twice, total], shape=[a.shape, ()]).with_schedule(pt.Schedule(lanes, sums, pt.on("twice")))
    some = np.arange(5.0)
    assert p.with_options(debug=True)(a=some, b=some)[1] == 2 * (some**3).sum()


@pytest.mark.parametrize("loops", [1, 2])
def test_a_condition_on_what_the_loop_stores_stays_inside(loops: int) -> None:
    """How far a loop runs is decided while it runs, not by what was there before."""
    f, r = pt.Func("f"), pt.RDom(*[(0, 10)] * loops)
    f[X] = X + 4
    where = r.where(r[-1] < f[0])
    f[where[-1] % 2] -= 1
    p = pt.Pipeline(f, shape=(10,))
    np.testing.assert_array_equal(p(), p.reference())


@pytest.mark.parametrize("gain", [-(2**63), -(2**62), -1, 0, 5, 2**63 - 1])
def test_params_beyond_all_coordinates(gain: int) -> None:
    """The distance from a coordinate to a number of 64 bits may need more; loops end where they should all the same."""
    limit, other = pt.Param("limit", "int64"), pt.Param("other", "int64")
    r = pt.RDom((W // 2, W - W // 2))
    out = pt.Func("out")
    out[Y, X] = pt.sum(IMG[Y, r[0]], over=r.where((r[0] <= limit) & (other <= X) & (other <= limit)))
    p = pt.Pipeline(out, shape=(H, W), debug=True)
    img = np.arange(60, dtype=np.float32).reshape(6, 10)
    for low in (-(2**63), 3, 2**63 - 1):
        given = {"img": img, "limit": gain, "other": low}
        np.testing.assert_array_equal(p(**given), p.reference(**given))
