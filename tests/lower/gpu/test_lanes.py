"""Lanes over several loops, and lanes whose elements lie apart: rows and columns of a warp, one after the other."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.schedule.directives import StageSchedule
from pantile.target.kinds import Kind
from pantile.target.layout import Digit, Layout, Unit

from ...long import LONG
from .simulated import assert_agrees, loops, of_kind, picture, realized, sizes, x, y

WARPS = ((2, 16), (4, 8), (1, 32), (32, 1), (3, 10), (2, 5), (8, 2))  # rows and columns of lanes
SIZES = ((40, 80), (19, 50), (7, 40)) if LONG else ((19, 50), (7, 40))


def window(down: int, right: int, *schedule: StageSchedule) -> pt.Pipeline:
    """What a producer has at four corners."""
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] * 2
    out[y, x] = f[y, x] + f[y, x + right] * 3 + f[y + down, x] * 5 + f[y + down, x + right] * 7
    p = pt.Pipeline(out, shape=(img.shape[0] - down, img.shape[1] - right), target="cuda-sim")
    return p.with_schedule(pt.Schedule(*schedule))


def tiles(rows: int, columns: int, down: int = 1, right: int = 1) -> StageSchedule:
    """Two warps of so many rows and columns of lanes, each of which takes some points further down and to the right."""
    s = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", rows * down * 2, columns * right)
    s = s.split("yi", "w", "yt", rows * down).split("yt", "ym", "yl", rows).split("xi", "xm", "xl", columns)
    s = s.reorder("yo", "xo", "w", "ym", "xm", "yl", "xl").block("yo", "xo").warp("w")
    return s.lane("yl", "xl").unroll("ym").unroll("xm")


def strided(rows: int, columns: int) -> StageSchedule:
    s = pt.on("f").compute_at("out", "w").split("y", "ym", "yl", rows, tail="guard")
    s = s.split("x", "xm", "xl", columns, tail="guard").reorder("ym", "xm", "yl", "xl").lane("yl", "xl")
    return s.unroll("ym").unroll("xm")


def test_lane_loops_say_how_many_lanes_they_take() -> None:
    p = window(1, 1, tiles(2, 16), strided(2, 16))
    found = {(i.var, i.digit) for i in of_kind(loops(p, "unroll"), Kind.LANE)}
    wide, tall = Digit(16, Unit.THREAD), Digit(2, Unit.THREAD, 16)
    assert found == {("out.yl", tall), ("out.xl", wide), ("f.yl", tall), ("f.xl", wide)}
    assert {r.layout for r in realized(loops(p, "unroll"), "f")} == {Layout(((tall,), (wide,)))}
    assert all(sizes(r) == [2, 2] for r in realized(loops(p, "map_lanes"), "f"))  # of 3 by 17 elements


@pytest.mark.parametrize(("rows", "columns"), [(2, 16), (4, 8), (1, 32), (32, 1), (3, 10), (2, 7)])
def test_rows_and_columns_of_lanes(rows: int, columns: int) -> None:
    """What lanes hold lies apart: what one reads from its neighbour, the first lanes have one column later."""
    for down, right in ((1, 1), (2, 5)) if LONG or columns == 16 else ((2, 5),):
        p = window(down, right, tiles(rows, columns, 1, 2), strided(rows, columns))
        for size in SIZES:
            (counts, *_) = assert_agrees(p, img=picture(*size))
            assert counts.operations["shfl"] and not counts.barriers


@pytest.mark.parametrize("each", [1, 2])
def test_one_row_whose_elements_lie_apart(each: int) -> None:
    """A lane has columns x, x + 1 (if two of them are side by side), and those 32 lanes further on."""
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] * 2
    out[y, x] = f[y, x] + f[y, x + 3 * each] * 3 + f[y, x + 32 * each] * 5
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 32 * each), target="cuda-sim")

    def columns(s: StageSchedule, loop: str, *around: str) -> StageSchedule:
        s = s.split(loop, "xm", "xl", 32 * each).split("xl", "xl", "xu", each)
        return s.reorder(*around, "xm", "xl", "xu").unroll("xu").unroll("xm")

    host = columns(pt.on("out").split("y", "yo", "w", 2).split("x", "xo", "xi", 64 * each), "xi", "yo", "xo", "w")
    beside = columns(pt.on("f").compute_at("out", "w"), "x", "y").lane("xl").unroll("y")
    q = p.with_schedule(pt.Schedule(host.block("yo", "xo").warp("w").lane("xl"), beside))
    below = (Digit(2, Unit.REGISTER),) if each == 2 else ()
    assert {r.layout for r in realized(loops(q, "unroll"), "f")} == {Layout(((), (*below, Digit(32, Unit.THREAD))))}
    assert all(sizes(r) == [1, 3 * each] for r in realized(loops(q, "map_lanes"), "f"))
    for size in ((5, 300), (4, 200)):
        assert_agrees(q, img=picture(*size))


def test_rows_side_by_side_need_no_shuffle_at_the_read() -> None:
    """Where each lane has one element, a neighbour's is a constant number of lanes away, down and to the right."""
    out = pt.on("out").tile("y", "x", "yo", "xo", "yl", "xl", 3, 7).split("yo", "yo", "w", 2)
    out = out.reorder("yo", "xo", "w", "yl", "xl").block("yo", "xo").warp("w").lane("yl", "xl")
    p = window(1, 1, out, pt.on("f").compute_at("out", "w").lane("y", "x"))
    assert {r.layout for r in realized(loops(p, "unroll"), "f")} == {
        Layout(((Digit(4, Unit.THREAD, 8),), (Digit(8, Unit.THREAD),)))
    }
    for size in SIZES:
        assert_agrees(p, img=picture(*size))


def test_what_data_decide_is_read_from_rows_and_columns() -> None:
    img, at, f, out = pt.Input("img", "float32", ndim=2), pt.Input("at", "int32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] + 1
    out[y, x] = f[pt.clamp(at[y, x], 0, 3), pt.clamp(at[x % 4, y], 0, 7)]
    s = pt.on("out").tile("y", "x", "yo", "xo", "yl", "xl", 4, 8).split("yo", "yo", "w", 2)
    s = s.reorder("yo", "xo", "w", "yl", "xl").block("yo", "xo").warp("w").lane("yl", "xl")
    p = pt.Pipeline(out, shape=(20, 20), target="cuda-sim")
    q = p.with_schedule(pt.Schedule(s, pt.on("f").compute_at("out", "w").lane("y", "x")))
    rng = np.random.default_rng(1)
    assert_agrees(q, img=picture(4, 8), at=rng.integers(-3, 9, (20, 20)).astype(np.int32))


def test_sums_of_each_lane_of_rows_and_columns() -> None:
    """An update in the loops of the pure definition: each lane sums in a register of its own."""
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    r = pt.RDom((0, 3))
    f[y, x] = 1.0
    f[y, x] += img[y, x + r[0]]
    out[y, x] = f[y, x] + f[y, x + 1]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 3), target="cuda-sim")
    summed = pt.on("f").compute_at("out", "w").lane("y", "x").update().reorder("y", "x", "r.0").lane("y", "x")
    s = pt.on("out").tile("y", "x", "yo", "xo", "yl", "xl", 2, 15).split("yo", "yo", "w", 2)
    s = s.reorder("yo", "xo", "w", "yl", "xl").block("yo", "xo").warp("w").lane("yl", "xl")
    q = p.with_schedule(pt.Schedule(s, summed))
    for size in SIZES:
        assert_agrees(q, img=picture(*size))


def refused(p: pt.Pipeline) -> str:
    with pytest.raises(UserError) as caught:
        loops(p, "map_lanes")
    return str(caught.value)


def test_more_rows_than_lanes() -> None:
    out = pt.on("out").tile("y", "x", "yo", "xo", "yl", "xl", 2, 16).split("yo", "yo", "w", 2)
    out = out.reorder("yo", "xo", "w", "yl", "xl").block("yo", "xo").warp("w").lane("yl", "xl")
    text = refused(window(1, 1, out, pt.on("f").compute_at("out", "w").lane("y", "x")))
    assert "the lanes of a warp cannot share f: there are 3 iterations for 1 lanes" in text


def test_rows_of_lanes_that_are_shorter_than_those_that_read_them() -> None:
    """Lanes 0 to 7 have a row each of eight elements; lane 8 of a row of 32 reads a later element of lane 0."""
    text = refused(window(3, 5, tiles(1, 32), strided(4, 8)))
    assert "lanes ask each other for values at places that differ" in text


def test_a_column_of_lanes_reads_every_second_element() -> None:
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] * 2
    out[y, x] = f[y, 2 * x]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] // 2), target="cuda-sim")
    text = refused(p.with_schedule(pt.Schedule(tiles(2, 16), strided(2, 16))))
    assert "lanes ask each other for values at places that differ" in text


def test_lanes_of_unknown_number_inside_of_others() -> None:
    """The inner loop has as many iterations as a param says."""
    img, n, f, out = pt.Input("img", "float32", ndim=2), pt.Param("n", "int32"), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] * 2
    r = pt.RDom((0, pt.within(n, 1, 9)))
    out[y, x] = 0.0
    out[y, x] += f[y, x + r[0]]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 9), target="cuda-sim")
    update = pt.on("out").update().split("y", "yo", "w", 2).reorder("yo", "x", "w", "r.0").block("yo", "x").warp("w")
    q = p.with_schedule(pt.Schedule(update, pt.on("f").compute_at("out", "w").lane("y", "x")))
    text = refused(q)
    assert "loop x lies in another lane loop, and how many lanes it takes is not constant" in text


def test_lanes_of_a_loop_without_iterations() -> None:
    """Column 0 is outside of the domain of what is computed in the lanes of a warp, and rows are some of an image's."""
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    f = pt.Func("f", domain=((0, img.shape[1]), (1, 7)))
    f[y, x] = img[y, x]
    out[y, x] = pt.constant(f, 3)[y, x]
    by_warps = pt.on("f_constant").compute_root().split("y", "yo", "yi", 1).split("yo", "yb", "w", 2)
    p = pt.Pipeline(out, shape=(img.shape[0], 1), target="cuda-sim").with_schedule(
        pt.Schedule(
            by_warps.reorder("x", "yb", "w", "yi").block("x", "yb").warp("w").lane("yi"),
            pt.on("f").compute_at("f_constant", "w").store_in("shared").lane("y", "x"),
        )
    )
    np.testing.assert_array_equal(p(img=np.ones((10, 20), np.float32)), np.full((10, 1), 3))


def warps_at_random(rng: Random) -> pt.Pipeline:
    """Warps of rows and columns, and a producer that lanes compute side by side or apart."""
    down, right = rng.randint(0, 3), rng.choice((0, 1, 2, 3, 5, 17))
    rows, columns = rng.choice(WARPS)
    out = tiles(rows, columns, rng.randint(1, 3), rng.randint(1, 3))
    if rng.random() < 0.7:
        f = strided(*((rows, columns) if rng.random() < 0.6 else rng.choice(WARPS)))
    else:
        lanes = rng.choice((("y", "x"), ("x",), ("y",)))
        f = pt.on("f").compute_at("out", rng.choice(("w", "ym", "xm"))).lane(*lanes)
        f = f.unroll(*{"y", "x"} - {*lanes}) if len(lanes) == 1 else f
    return window(down, right, out, f)


def is_refused(p: pt.Pipeline, size: tuple[int, int]) -> bool:
    try:
        p(img=picture(*size))
    except UserError as error:
        return "the lanes of a warp cannot share f" in str(error)
    return False


@pytest.mark.parametrize("seed", range(300 if LONG else 12))
def test_random_warps_agree_with_the_reference(seed: int) -> None:
    """The next one that is not refused."""
    rng = Random(seed)
    size = rng.choice(((19, 50), (7, 40), (40, 41), (33, 101)))
    p = warps_at_random(rng)
    while is_refused(p, size):
        p = warps_at_random(rng)
    assert_agrees(p, img=picture(*size))


def of_warps(s: StageSchedule, rows: str, columns: str, *around: str) -> StageSchedule:
    """Two by two warps of 8 rows by 8 columns, two of which are side by side in each lane."""
    s = s.split(rows, "wy", "yi", 8).split(columns, "wx", "xw", 8).split("xw", "xl", "two", 2)
    return s.reorder(*around, "wy", "wx", "yi", "xl", "two").warp("wy", "wx").lane("yi", "xl").unroll("two")


def test_registers_of_a_block_are_shared_by_warps_and_their_lanes() -> None:
    """As those that only threads share: the block computes a tile, and each lane reads what it has computed."""
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] * 2
    out[y, x] = f[y, x] + 1
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(pt.Schedule(
        of_warps(pt.on("out").tile("y", "x", "yo", "xo", "yt", "xt", 16, 16), "yt", "xt", "yo", "xo").block("yo", "xo"),
        of_warps(pt.on("f").compute_at("out", "xo").store_in("register"), "y", "x"),
    ))  # fmt: skip
    (layout,) = {r.layout for r in realized(loops(p, "unroll"), "f")}
    rows = (Digit(8, Unit.THREAD, 4), Digit(2, Unit.THREAD, 64))
    assert layout == Layout((rows, (Digit(2, Unit.REGISTER), Digit(4, Unit.THREAD), Digit(2, Unit.THREAD, 32))))
    assert all(sizes(r) == [1, 2] for r in realized(loops(p, "distribute_registers"), "f"))
    for size in SIZES:
        assert_agrees(p, img=picture(*size))
