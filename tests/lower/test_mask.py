"""Loads under conditions: what is not computed is not read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.schedule.directives import StageSchedule

y, x = pt.vars("y x")


def assert_right_of_a_triangle(condition: pt.Expr, *schedule: StageSchedule, target: str | None = None) -> None:
    """Reads a stage where a condition holds; a debug build finds what is read outside of it."""
    row = pt.Input("row", "int32", ndim=1)
    doubled, out = pt.Func("doubled"), pt.Func("out")
    doubled[x] = 2 * row[x]
    out[y, x] = 0
    out[y, x] += pt.select(condition, doubled[x], -1)
    p = pt.Pipeline(out, shape=(row.shape[0], row.shape[0]), target=target, debug=True)
    p = p.with_schedule(pt.Schedule(*schedule))
    for n in (1, 2, 7):
        given = np.arange(1, n + 1, dtype=np.int32)
        np.testing.assert_array_equal(p(row=given), p.reference(row=given))


@pytest.mark.parametrize("condition", [x > y - 1, ~(x < y), (y <= x) & (x >= 0), x * 2 >= y, (x == y) | (x < 0)])
def test_what_a_condition_on_two_coordinates_leaves_of_a_stage_inside_of_a_loop(condition: pt.Expr) -> None:
    assert_right_of_a_triangle(condition, pt.on("doubled").compute_at("out", "y"))


@pytest.mark.parametrize("inner", [pt.on("out").update(0).vectorize("x", 2), pt.on("out").update(0).unroll("x", 3)])
def test_in_vectors_and_copies(inner: StageSchedule) -> None:
    assert_right_of_a_triangle(x > y - 1, inner, pt.on("doubled").compute_at("out", "y"))
    assert_right_of_a_triangle(x > y - 1, inner, pt.on("doubled").compute_at("out", "x"))


def test_on_a_gpu() -> None:
    blocks = pt.on("out").block("y").update(0).split("x", "xo", "xi", 4).block("y").thread("xi")
    assert_right_of_a_triangle(x > y - 1, blocks, pt.on("doubled").compute_at("out", "xo"), target="cuda-sim")


def test_a_stage_that_is_computed_before_all_loops_is_read_as_it_is() -> None:
    row = pt.Input("row", "int32", ndim=1)
    doubled, out = pt.Func("doubled"), pt.Func("out")
    doubled[x] = 2 * row[x]
    out[y, x] = pt.select(x > y - 1, doubled[x], -1)
    p = pt.Pipeline(out, shape=(row.shape[0], row.shape[0]))
    assert "doubled[out.x] if" not in p.with_schedule(pt.Schedule(pt.on("doubled").compute_root())).loops()


@pytest.mark.parametrize("target", [None, "cuda-sim"])
@pytest.mark.parametrize("place", [pt.on("f").compute_root(), pt.on("f").compute_at("out", "x")])
@pytest.mark.parametrize("is_constant", [True, False])
def test_a_branch_that_is_nowhere_taken_reads_nothing(
    target: str | None, place: StageSchedule, is_constant: bool
) -> None:
    """What it would read is found without a coordinate, and is needed only by wider pictures."""
    row, wide, k = pt.Input("row", "int32", ndim=1), pt.Input("wide", "int32", ndim=1), pt.Param("k", "int32")
    f, out = pt.Func("f"), pt.Func("out")
    f[x] = 3 * row[x]
    out[y, x] = pt.select(x == 5, f[pt.clamp(k, -20, 20)], f[y])
    columns = 4 if is_constant else wide.shape[0]
    p = pt.Pipeline(out, shape=(7, columns), target=target, debug=True)
    p = p.with_schedule(pt.Schedule(pt.on("out").compute_root(), place))
    given = np.arange(1, 8, dtype=np.int32)
    for n, at in ((4, -20), (4, 3), (4, 20), *(() if is_constant else ((6, 3), (5, 20)))):
        arguments = {"row": given, "k": at} | ({} if is_constant else {"wide": np.zeros(n, np.int32)})
        np.testing.assert_array_equal(p(**arguments), p.reference(**arguments))


@pytest.mark.parametrize("target", [None, "cuda-sim"])
@pytest.mark.parametrize("n", [3, 8, 21])
def test_a_condition_on_data_is_tested_inside_of_the_loop_that_is_guarded(target: str | None, n: int) -> None:
    row, r = pt.Input("row", "int32", ndim=1), pt.RDom((0, 2))
    doubled, out = pt.Func("doubled"), pt.Func("out")
    doubled[y] = 2 * row[y]
    out[y, x] = pt.sum(x + r[0], over=r.where(doubled[doubled[y] % 3] > 3))
    guarded = pt.on("out").update(0).split("y", "yo", "yi", 8, tail="guard").reorder("yo", "x", "r.0", "yi")
    guarded = guarded.fuse("yo", "x", "yx").vectorize("yi")
    p = pt.Pipeline(out, shape=(row.shape[0], 3), target=target, debug=True)
    p = p.with_schedule(pt.Schedule(guarded, pt.on("doubled").compute_root()))
    given = np.arange(n, dtype=np.int32)
    np.testing.assert_array_equal(p(row=given), p.reference(row=given))


VECTORS = pt.on("out").update(0).vectorize("x", 8)
TILES = pt.on("out").split("x", "xo", "xi", 16).update(0).split("x", "xo", "xi", 16).vectorize("xi", 8).unroll("r.0")


def assert_right_where_no_lane_is_wanted(
    domain: Callable[[pt.Expr], pt.RDom], shape: Callable[[pt.Expr], pt.Expr | int], n: int, *schedule: StageSchedule
) -> None:
    """All lanes of a vector read a stage at one place, where a condition holds for some lanes, or for none."""
    row = pt.Input("row", "int32", ndim=1)
    doubled, out, r = pt.Func("doubled"), pt.Func("out"), domain(row.shape[0])
    doubled[x] = 2 * row[x]
    out[x] = 0
    out[x] += doubled[r[0]]
    p = pt.Pipeline(out, shape=(shape(row.shape[0]),), debug=True).with_schedule(pt.Schedule(*schedule))
    given = np.arange(1, n + 1, dtype=np.int32)
    np.testing.assert_array_equal(p(row=given), p.reference(row=given))


@pytest.mark.parametrize(
    "schedule",
    [
        (VECTORS.reorder("x", "r.0", "x_v"), pt.on("doubled").compute_root()),
        (VECTORS.reorder("r.0", "x", "x_v"), pt.on("doubled").compute_root()),
        (TILES, pt.on("doubled").compute_at("out", "xo")),
    ],
    ids=["inside", "outside", "in tiles"],
)
@pytest.mark.parametrize("n", [3, 6])
def test_one_place_for_lanes_none_of_which_may_be_wanted(schedule: tuple[StageSchedule, ...], n: int) -> None:
    """Each of the two comparisons holds for a lane of a vector, and in a short row, both hold for none."""
    assert_right_where_no_lane_is_wanted(
        lambda extent: pt.RDom((0, 3)).where((x >= 4) & (x < extent - 1)), lambda _: 8, n, *schedule
    )


@pytest.mark.parametrize(
    "schedule",
    [(VECTORS.unroll("r.0"), pt.on("doubled").compute_root()), (TILES, pt.on("doubled").compute_at("out", "xo"))],
    ids=["at root", "in tiles"],
)
@pytest.mark.parametrize("shape", [lambda _: 8, lambda extent: extent + 2], ids=["a number", "an extent"])
def test_one_place_that_no_lane_wants(
    schedule: tuple[StageSchedule, ...], shape: Callable[[pt.Expr], pt.Expr | int]
) -> None:
    """What the first iterations of the reduction would read is not computed: their condition holds for no lane."""
    r = pt.RDom((-3, 9))
    assert_right_where_no_lane_is_wanted(lambda _: r.where(x + r[0] >= 7), shape, 6, *schedule)


@pytest.mark.parametrize("site", ["y", "xo"])
@pytest.mark.parametrize("factor", [4, 8])
def test_several_values_in_lanes_that_are_not_all_wanted(site: str, factor: int) -> None:
    """No lane wants the places before the row, in any iteration."""
    row, r = pt.Input("row", "int32", ndim=1), pt.RDom((-3, 9))
    doubled, out, domain = pt.Func("doubled"), pt.Func("out"), r.where((x + r[0] >= 7 + y) & (r[0] <= y + 3))
    doubled[x] = 2 * row[x]
    out[y, x] = (0, 0)
    out[y, x] = (out[y, x][0] + doubled[domain[0]], out[y, x][1] - doubled[domain[0]] + x)
    tiles = pt.on("out").update(0).split("x", "xo", "xi", 16).vectorize("xi", factor).unroll("r.0")
    schedule = pt.Schedule(tiles, pt.on("doubled").compute_at("out", site))
    p = pt.Pipeline(out, shape=(4, row.shape[0] + 2), debug=True).with_schedule(schedule)
    given = np.arange(1, 7, dtype=np.int32)
    for computed, expected in zip(p(row=given), p.reference(row=given), strict=True):
        np.testing.assert_array_equal(computed, expected)


@pytest.mark.parametrize("at", ["y", "xo"])
@pytest.mark.parametrize(
    ("condition", "index"),
    [
        (x < 8, pt.select(x < 8, x, 15 - x)),
        (x >= 8, pt.select(x < 8, x, 15 - x)),
        (x >= 4, pt.maximum(x + y, 8)),
        ((x >= 4) & (y >= 2), pt.maximum(x + y, 8)),
    ],
)
def test_an_index_that_takes_all_its_values_under_a_condition_takes_fewer_in_a_tile(
    condition: pt.Expr, index: pt.Expr, at: str
) -> None:
    """Over all loops the condition changes nothing; a stage inside of them is computed for one tile at a time."""
    row = pt.Input("row", "int32", ndim=1)
    doubled, out = pt.Func("doubled"), pt.Func("out")
    doubled[x] = 2 * pt.edge(row)[x]
    out[y, x] = pt.select(condition, doubled[index], -1)
    p = pt.Pipeline(out, shape=(9, 16), debug=True)
    p = p.with_schedule(pt.Schedule(pt.on("out").split("x", "xo", "xi", 4), pt.on("doubled").compute_at("out", at)))
    given = np.arange(1, 30, dtype=np.int32)
    np.testing.assert_array_equal(p(row=given), p.reference(row=given))


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_copy_of_an_empty_input_is_not_read(rows: int) -> None:
    """Nothing is copied then, and a clamped index is 0. The simulator knows what nobody has written."""
    y, x = pt.vars("y x")
    img, f = pt.Input("img", "float32", 2), pt.Func("f")
    f[y, x] = pt.constant(img, 1)[pt.cast("int32", y * 0.75 + 2), pt.clamp(x, 0, 6)]
    copied = pt.on("img").copy_in("img_constant", "copy", "a", "b", 0)
    schedule = pt.Schedule(pt.on("f").compute_root(), pt.on("img_constant").compute_inline(), copied)
    p = pt.Pipeline(f, shape=(img.shape[0] + 3, 1), target="cuda-sim", schedule=schedule)
    pixels = np.full((rows, 31), 2, np.float32)
    assert (p(img=pixels) == p.reference(img=pixels)).all()
