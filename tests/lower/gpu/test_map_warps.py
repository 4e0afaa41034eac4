"""Warps and lanes: each lane has its part of what a warp computes, and reads the others' by shuffles."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.expr.nodes import Instruction
from pantile.ir.nodes import Stmt
from pantile.schedule.directives import StageSchedule
from pantile.target.kinds import Kind

from ...long import LONG
from ..lowered import all_expressions
from .simulated import assert_agrees, blur, kernels, loops, of_kind, picture, realized, sizes, x, y

# Whole blocks, parts of one, and sizes that are large in one direction only, each with code of its own.
EVERY_SIZE = ((40, 80), (19, 33), (18, 34), (7, 40), (3, 4), (64, 6))
SIZES = EVERY_SIZE if LONG else (*EVERY_SIZE[:3], (3, 4))


def tiles(lanes: int = 30, rows: int = 4, warps: int = 4, each: int = 1) -> StageSchedule:
    """Blocks of warps, each of which goes down some rows of as many columns as it has lanes, times some."""
    stage = pt.on("out").split("y", "yo", "yi", warps * rows).split("yi", "w", "row", rows)
    stage = stage.split("x", "xo", "xi", lanes * each).split("xi", "lane", "column", each)
    stage = stage.reorder("yo", "xo", "w", "row", "lane", "column").block("yo", "xo").warp("w").lane("lane")
    return stage.unroll("row").unroll("column")


def beside(name: str, at: str = "row", each: int = 1, slides: bool = True, vectors: bool = False) -> StageSchedule:
    stage = pt.on(name).compute_at("out", at).unroll("y")
    stage = stage.store_at("out", "w") if slides else stage
    if each == 1:
        return stage.lane("x")
    stage = stage.split("x", "lane", "column", each).reorder("y", "lane", "column").lane("lane")
    return stage.vectorize("column") if vectors else stage.unroll("column")


def shuffles(s: Stmt) -> int:
    return len({id(e) for e in all_expressions(s) if isinstance(e, Instruction)})


def window(*schedule: StageSchedule, dtype: str = "float32") -> pt.Pipeline:
    """Rows are read at columns -1, 0 and 1."""
    img, rows, out = pt.Input("img", dtype, ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] + img[y + 1, x]
    out[y, x] = rows[y, x] + rows[y, x + 1] + rows[y + 1, x + 2]
    p = pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 2), target="cuda-sim")
    return p.with_schedule(pt.Schedule(*schedule))


def test_each_lane_has_its_part_and_copies_of_others() -> None:
    p = window(tiles(), beside("rows", "w", slides=False))
    made = loops(p, "map_lanes")
    for name in ("rows", "rows.from.1", "rows.from.2"):
        assert all(sizes(r) == [5, 1] for r in realized(made, name))
    assert not of_kind(made, Kind.WARP) and not of_kind(made, Kind.LANE)
    assert kernels(p)[-1].threads == 128 and kernels(p)[-1].shared == 0
    for size in EVERY_SIZE:
        assert_agrees(p, img=picture(*size))
    (counts,) = assert_agrees(p, img=picture(40, 82))
    assert counts.barriers == 0 and counts.operations["shfl"] > 0


def test_what_is_read_where_it_is_needs_no_shuffle() -> None:
    p = blur(tiles(32), beside("rows"))
    assert shuffles(loops(p, "map_lanes")) == 0
    (counts,) = assert_agrees(p, img=picture(40, 80))
    assert counts.operations["shfl"] == 0


def test_rows_slide_in_registers() -> None:
    p = window(tiles(), beside("rows"))
    assert all(sizes(r) == [2, 1] for r in realized(loops(p, "distribute_registers"), "rows"))
    img = picture(66, 92)
    slid, again = (assert_agrees(q, img=img)[0] for q in (p, window(tiles(), beside("rows", slides=False))))
    assert slid.traffic.global_bytes["load"] < again.traffic.global_bytes["load"]
    for size in EVERY_SIZE:
        assert_agrees(p, img=picture(*size))


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "uint8", "float64"])
def test_several_columns_of_a_lane(dtype: str, vectors: bool) -> None:
    p = window(tiles(31, each=2), beside("rows", each=2, vectors=vectors), dtype=dtype)
    assert all(sizes(r)[1] == 2 for r in realized(loops(p, "map_lanes"), "rows"))
    for size in EVERY_SIZE if dtype == "float32" else EVERY_SIZE[1:4]:
        assert_agrees(p, img=(picture(*size) * 100).astype(dtype))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64"]
)
def test_values_of_all_types_are_exchanged(dtype: str) -> None:
    img, made, out = pt.Input("img", "float32", ndim=2), pt.Func("made"), pt.Func("out")
    value = img[y, x] * 100
    made[y, x] = value > 50 if dtype == "bool" else pt.cast(dtype, value)
    values = made[y, x], made[y, x + 1]
    first, last = (pt.select(e, 1, 0) if dtype == "bool" else pt.cast("float32", e) for e in values)
    out[y, x] = first + last * 2
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1), target="cuda-sim")
    q = p.with_schedule(pt.Schedule(tiles(31), beside("made", slides=False)))
    counts = assert_agrees(q, img=picture(33, 50))
    assert counts[0].operations["shfl"]
    assert "shfl.sync.idx" in q.asm("sm_70")


def test_places_that_move_with_the_lane_by_more_than_one() -> None:
    img, half, out = pt.Input("img", "float32", ndim=2), pt.Func("half"), pt.Func("out")
    half[y, x] = img[y, x] * 2
    out[y, x] = half[y, 2 * x] + half[y, 2 * x + 1]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] // 2), target="cuda-sim")
    q = p.with_schedule(pt.Schedule(tiles(16), beside("half", slides=False)))
    for size in SIZES:
        assert_agrees(q, img=picture(*size))


def test_places_that_data_decide() -> None:
    img, at = pt.Input("img", "float32", ndim=2), pt.Input("at", "int32", ndim=2)
    row, out = pt.Func("row"), pt.Func("out")
    row[y, x] = img[y, x] + 1
    out[y, x] = row[y, pt.clamp(at[y, x], 0, 15)]
    p = pt.Pipeline(out, shape=at.shape, target="cuda-sim")
    q = p.with_schedule(pt.Schedule(tiles(32), beside("row", slides=False)))
    assert_agrees(q, img=picture(30, 16), at=np.random.default_rng(1).integers(-3, 20, (30, 40)).astype(np.int32))


def test_values_are_read_under_conditions() -> None:
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = pt.constant(img, 0)[y, x] * 2
    out[y, x] = pt.select(img[y, x] > 0.5, rows[y, x - 1], 5.0) + pt.select((x + y) % 3 > 0, rows[y, x + 1], 2.0)
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim")
    q = p.with_schedule(pt.Schedule(tiles(30), beside("rows", slides=False)))
    for size in SIZES:
        assert_agrees(q, img=picture(*size))


@pytest.mark.parametrize("of_lane", [True, False])
def test_values_are_asked_for_only_where_there_are_some(of_lane: bool) -> None:
    """Where the condition fails, no rows are computed, and there is no place that others could read."""
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] * 2
    condition = (y >= 4) & (x % 2 > 0) if of_lane else y >= 4
    out[y, x] = pt.select(condition, rows[y - 4, pt.clamp(x * x, 0, 15)], 7.0)
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim")
    q = p.with_schedule(pt.Schedule(tiles(16, rows=1), beside("rows", slides=False)))
    for size in ((9, 16), (2, 16)):
        assert_agrees(q, img=picture(*size))


def test_vectors_of_values_that_one_lane_has() -> None:
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] * 2
    out[y, x] = rows[y, x + 1] - rows[y, x]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1), target="cuda-sim")
    stage = pt.on("out").split("y", "yo", "yi", 16).split("yi", "w", "row", 4).split("x", "xo", "lane", 30)
    stage = stage.reorder("yo", "xo", "w", "lane", "row").block("yo", "xo").warp("w").lane("lane").vectorize("row")
    q = p.with_schedule(pt.Schedule(stage, pt.on("rows").compute_at("out", "w").lane("x")))
    for size in SIZES:
        assert_agrees(q, img=picture(*size))


def test_a_lane_goes_over_its_columns_one_by_one() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, 3))
    out[y, x] = 1.0
    out[y, x] += img[y, x] * r[0]
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim")

    def in_lanes(stage: StageSchedule, *terms: str) -> StageSchedule:
        stage = stage.split("y", "yo", "w", 4).split("x", "xo", "xi", 16).split("xi", "lane", "column", 2)
        stage = stage.reorder("yo", "xo", "w", *terms, "lane", "column").block("yo", "xo")
        return stage.warp("w").lane("lane")

    both = in_lanes(in_lanes(pt.on("out")).update(), "r.0")
    for stage in (in_lanes(pt.on("out").update(), "r.0"), both, both.compute_with("out", "w")):
        q = p.with_schedule(pt.Schedule(stage))
        for size in SIZES:
            assert_agrees(q, img=picture(*size))


@pytest.mark.parametrize("inside", [True, False])
def test_lanes_without_work_read_nothing_that_others_store(inside: bool) -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, 3))
    out[y, x] = 1.0
    out[y, x] += img[y, x] * r[0]
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim")
    stage = pt.on("out").update().split("y", "yo", "w", 4).split("x", "xo", "lane", 8)
    order = ("lane", "r.0") if inside else ("r.0", "lane")
    stage = stage.reorder("yo", "xo", "w", *order).block("yo", "xo").warp("w").lane("lane")
    q = p.with_schedule(pt.Schedule(stage))
    for size in ((9, 33), (3, 4)):
        assert_agrees(q, img=picture(*size))


def test_what_the_first_lane_has_stored_is_read_by_it() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, 3))
    out[y] = 1.0
    out[y] += img[y, r[0]]
    out[y] *= out[y]
    p = pt.Pipeline(out, shape=(img.shape[0],), target="cuda-sim")
    stage = pt.on("out").split("y", "yo", "w", 4).block("yo").warp("w")
    for k in (0, 1):
        stage = stage.update(k).split("y", "yo", "w", 4).block("yo").warp("w").compute_with("out", "w")
        assert_agrees(p.with_schedule(pt.Schedule(stage)), img=picture(9, 3))


# Sums


def total(kind: str = "sum", dtype: str = "float32") -> pt.Pipeline:
    """Of each row, by all lanes of a warp."""
    img, found, out = pt.Input("img", dtype, ndim=2), pt.Func("found"), pt.Func("out")
    r = pt.RDom((0, img.shape[1]), names="x")
    if kind == "sum":
        found[y] = pt.cast(dtype, 0)
        found[y] += img[y, r.x]
    else:
        found[y] = pt.cast(dtype, 1000)
        found[y] = pt.minimum(found[y], img[y, r.x])
    out[y] = found[y] * 2
    return pt.Pipeline(out, shape=(img.shape[0],), target="cuda-sim")


ROWS = pt.on("out").split("y", "yo", "w", 4).block("yo").warp("w")
TERMS = pt.on("found").compute_at("out", "w").update().split("r.x", "step", "u", 32)
ROW_SIZES = ((8, 64), (9, 100), (3, 31), (5, 1), (1, 33))
PARTS = pt.on("found_u").compute_at("out", "w").lane("u").update().reorder("u", "step").lane("u")


@pytest.mark.parametrize("kind", ["sum", "least"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float64"])
def test_lanes_combine_terms_in_pairs(kind: str, dtype: str) -> None:
    p = total(kind, dtype)
    for schedule in ([ROWS, TERMS.rfactor("u", "u").lane("u"), PARTS], [ROWS, TERMS.lane("u")]):
        q = p.with_schedule(pt.Schedule(*schedule))
        for size in ROW_SIZES if dtype == "float32" or LONG else ROW_SIZES[1:3]:
            assert_agrees(q, img=(picture(*size) * 100).astype(dtype))
        words = 2 if dtype == "float64" else 1
        assert {len(re.findall(r"shfl\.sync", k)) for k in versions(q)} == {5 * words}


def versions(p: pt.Pipeline) -> list[str]:
    """What blocks inside of a picture do, and the others."""
    found = re.split(r"(?=\$L__BB\d+_\d+:)", p.asm("sm_90"))
    return [part for part in found if "shfl" in part]


def test_a_sum_by_fewer_lanes() -> None:
    img, found, out = pt.Input("img", "float32", ndim=2), pt.Func("found"), pt.Func("out")
    r = pt.RDom((0, 5), names="x")
    found[y] = 1.0
    found[y] += img[y, r.x]
    out[y] = found[y] * 2
    p = pt.Pipeline(out, shape=(img.shape[0],), target="cuda-sim")
    assert_agrees(
        p.with_schedule(pt.Schedule(ROWS, pt.on("found").compute_at("out", "w").update().lane("r.x"))),
        img=picture(9, 5),
    )


def test_an_output_is_summed_up_by_the_first_lane() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, 20), names="x")
    out[y] = 0.0
    out[y] += img[y, r.x]
    p = pt.Pipeline(out, shape=(img.shape[0],), target="cuda-sim")
    rows = pt.on("out").split("y", "yo", "w", 4).block("yo").warp("w")
    again = rows.update().split("y", "yo", "w", 4).block("yo").warp("w").lane("r.x")
    assert_agrees(p.with_schedule(pt.Schedule(again)), img=picture(10, 20))


# What cannot be


def refused(p: pt.Pipeline, *schedule: StageSchedule) -> str:
    with pytest.raises(UserError) as caught:
        loops(p.with_schedule(pt.Schedule(*schedule)), "warps")
    return str(caught.value)


def test_more_values_than_lanes() -> None:
    assert "there are 34 iterations for 32 lanes" in refused(window(), tiles(32), beside("rows", slides=False))


def test_more_sums_than_lanes() -> None:
    """They are held in registers, which lowering has made for them."""
    img, out, r = pt.Input("img", "float32", ndim=2), pt.Func("out"), pt.RDom((0, 8))
    out[y, x] = 0.0
    out[y, x] += img[y, x] * r[0]
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim")
    update = pt.on("out").update().reorder("y", "x", "r.0").warp("y").lane("x")
    text = "the lanes of a warp cannot share out: there are an unknown number of iterations for 32 lanes"
    assert text in refused(p, update)


def test_values_that_are_not_side_by_side() -> None:
    far = pt.on("rows").compute_at("out", "w").split("x", "xo", "lane", 4).reorder("y", "lane", "xo").lane("lane")
    assert "the lanes of a warp cannot share rows" in refused(window(), tiles(30), far)


def test_values_that_a_lane_computes_one_by_one() -> None:
    one_by_one = pt.on("rows").compute_at("out", "w").split("x", "lane", "column", 2).reorder("y", "lane", "column")
    assert "a lane has 2 values of it, and computes others" in refused(window(), tiles(30), one_by_one.lane("lane"))


def test_a_sum_of_what_some_lanes_have() -> None:
    img, found, out = pt.Input("img", "float32", ndim=2), pt.Func("found"), pt.Func("out")
    r = pt.RDom((0, 8), names="x")
    positive = r.where(img[0, r.x] > 0)
    found[y] = 0.0
    found[y] += img[y, positive.x]
    out[y] = found[y] * 2
    p = pt.Pipeline(out, shape=(img.shape[0],), target="cuda-sim")
    terms = pt.on("found").compute_at("out", "w").update().lane("r.x")
    assert "a condition that is not the same for all lanes" in refused(p, ROWS, terms)


def test_values_of_other_lanes_at_places_that_differ() -> None:
    img, at = pt.Input("img", "float32", ndim=2), pt.Input("at", "int32", ndim=2)
    rows, out = pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] * 2
    out[y, x] = rows[y + x % 2, pt.clamp(at[y, x], 0, 15)]
    p = pt.Pipeline(out, shape=at.shape, target="cuda-sim")
    assert "lanes ask each other for values at places that differ" in refused(
        p, tiles(32), beside("rows", slides=False)
    )


def test_one_lane_reads_what_another_has_stored_in_memory() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, 4))
    out[y, x] = img[y, x]
    out[y, x] = out[y, x] + img[y, x] * r[0]
    p = pt.Pipeline(out, shape=(img.shape[0], 8), target="cuda-sim")
    stage = pt.on("out").split("y", "yo", "w", 4).split("x", "lane", "column", 2).reorder("yo", "w", "lane", "column")
    stage = stage.block("yo").warp("w").lane("lane").update().split("y", "yo", "w", 4)
    stage = stage.split("x", "column", "lane", 4).reorder("yo", "w", "r.0", "lane", "column").block("yo").warp("w")
    assert "one lane would read what another has stored" in refused(p, stage.lane("lane").compute_with("out", "w"))


def test_lanes_without_work_do_not_compute_values_that_others_store() -> None:
    """Values of one definition are computed before the first is stored, by all lanes, of which some store nothing."""
    img, m = pt.Input("img", "int32", ndim=2), pt.Func("m")
    m[y, x] = (img[y, x], img[y, x] + 1)
    m[y, x] = (m[y, x][1], m[y, x][0])
    update = pt.on("m").update(0).split("y", "yo", "yi", 4).reorder("yo", "yi", "x").warp("yo").lane("x")
    p = pt.Pipeline(m, shape=(8, 5), target="cuda-sim").with_schedule(pt.Schedule(update))
    rows = np.arange(40, dtype=np.int32).reshape(8, 5)
    first, second = p(img=rows)
    assert (first == rows + 1).all() and (second == rows).all()


def test_only_the_lane_that_stores_reads_what_it_adds_to() -> None:
    """All lanes take part in the exchange of `pair`; of `out`, which others see, the others read nothing."""
    img, pair, out = pt.Input("img", "float32", ndim=2), pt.Func("pair"), pt.Func("out")
    pair[y, x] = img[y, x] * 2
    out[y] = pt.cast("float32", 0)
    out[y] += pair[y, 0] * pair[y, 3]
    p = pt.Pipeline(out, shape=img.shape[:1], target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("out").thread("y").update(0).split("y", "yo", "w", 2).block("yo").warp("w"),
            pt.on("pair").compute_at("out", "w").lane("x"),
        )
    )
    assert shuffles(loops(p, "map_lanes")) > 0
    for size in SIZES:
        assert_agrees(p, img=picture(*size))


def test_lanes_add_atomically_what_they_exchange() -> None:
    img, pair, out = pt.Input("img", "int32", ndim=2), pt.Func("pair"), pt.Func("out")
    r = pt.RDom((0, img.shape[1] - 3))
    pair[y, x] = img[y, x] * 2
    out[y] = 0
    out[y] += pair[y, r[0]] * pair[y, r[0] + 3]
    p = pt.Pipeline(out, shape=img.shape[:1], target="cuda-sim").with_schedule(pt.Schedule(
        pt.on("out").thread("y")
        .update(0).atomic().split("y", "yo", "w", 2).reorder("yo", "r.0", "w").block("yo", "r.0").warp("w"),
        pt.on("pair").compute_at("out", "w").lane("x"),
    ))  # fmt: skip
    assert shuffles(loops(p, "map_lanes")) > 0
    for size in SIZES:
        assert_agrees(p, img=np.random.default_rng(1).integers(-99, 99, size, dtype=np.int32))


def test_nothing_is_asked_of_lanes_that_have_stored_nothing() -> None:
    """In the last columns no value of `rows` is read, and none is computed."""
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x + 1] * 2
    narrow, narrower = x < img.shape[1] - 3, x < img.shape[1] - 5
    out[y, x] = pt.select(narrow, rows[y, x], 7) + pt.select(narrower, rows[y, x + 2], 7)
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("out").split("x", "xo", "lane", 2).split("xo", "xo", "w", 3).block("y", "xo").warp("w").lane("lane"),
            pt.on("rows").compute_at("out", "w").lane("x"),
        )
    )
    assert shuffles(loops(p, "map_lanes")) > 0
    for size in [*SIZES, (3, 31)]:
        assert_agrees(p, img=picture(*size))


@pytest.mark.parametrize("memory", ["shared", "heap"])
def test_what_lanes_of_no_warp_loop_store_is_read_by_another_thread(memory: str) -> None:
    """Of few rows, `rows` has the tails of its warp loop alone, and one thread reads what their lanes have stored."""
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] * 2
    out[y, x] = rows[y, x] + rows[y, x + 1]
    p = pt.Pipeline(out, shape=(img.shape[0], 8), target="cuda-sim")
    stage = pt.on("rows").split("y", "w", "row", 2, tail="peel").split("x", "xo", "lane", 16)
    stage = stage.reorder("xo", "w", "row", "lane").unroll("row").warp("w").lane("lane").store_in(memory)
    stage, whole = stage.compute_at("out", "y"), pt.on("out").compute_root()
    p = p.with_schedule(pt.Schedule(*((whole.block("y"), stage) if memory == "shared" else (whole, stage.block("xo")))))
    assert_agrees(p, img=picture(2, 9))
