"""Sliding windows: every row is computed exactly once, and folded buffers hold the rows in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Op
from pantile.expr.visit import key
from pantile.ir.nodes import Realize, Stmt
from pantile.ir.visit import walk
from tests.analysis.indices import value

from .lowered import all_expressions, lowered, stores

Y, X = pt.vars("y x")
IMG = pt.Input("img", "float32", ndim=2)
STRIP = 8


def column(reach: tuple[int, ...], stages: int = 1) -> pt.Pipeline:
    """Each stage adds up rows `reach` of the one before: f0 reads img, out reads the last."""
    below: pt.Input | pt.Func = IMG
    for k in range(stages + 1):
        f = pt.Func("out" if k == stages else f"f{k}")
        f[Y, X] = sum(below[Y + d, X] for d in reach) if k else IMG[Y, X] * 2.0
        below = f
    return pt.Pipeline(below, shape=(IMG.shape[0] - max(reach) * stages, IMG.shape[1]))


def doubled_rows() -> pt.Pipeline:
    """Two rows of out for each of f0."""
    f, out = pt.Func("f0"), pt.Func("out")
    f[Y, X] = IMG[Y, X] * 2.0
    out[Y, X] = f[Y // 2, X] + f[Y // 2 + 1, X]
    return pt.Pipeline(out, shape=(2 * IMG.shape[0] - 2, IMG.shape[1]))


def halved_rows() -> pt.Pipeline:
    """One row of out for every two of f0, of which it reads four."""
    f, out = pt.Func("f0"), pt.Func("out")
    f[Y, X] = IMG[Y, X] * 2.0
    out[Y, X] = f[2 * Y, X] + f[2 * Y + 1, X] + f[2 * Y + 3, X]
    return pt.Pipeline(out, shape=(IMG.shape[0] // 2 - 1, IMG.shape[1]))


def read_twice() -> pt.Pipeline:
    """Rows of f0 are read by f1, which slides as well, and a little later by out."""
    f, g, out = pt.Func("f0"), pt.Func("f1"), pt.Func("out")
    f[Y, X] = IMG[Y, X] * 2.0
    g[Y, X] = f[Y, X] + 1.0
    out[Y, X] = g[Y, X] + g[Y + 1, X] + g[Y + 2, X] + f[Y + 1, X]
    return pt.Pipeline(out, shape=(IMG.shape[0] - 2, IMG.shape[1]))


def by_rows(*stages: str) -> pt.Schedule:
    return pt.Schedule(pt.on("out"), *(pt.on(s).store_root().compute_at("out", "y") for s in stages))


def by_pairs(*stages: str) -> pt.Schedule:
    """Two rows at a time down strips of eight."""
    return pt.Schedule(
        pt.on("out").split("y", "strip", "yi", STRIP).split("yi", "yi", "row", 2),
        *(pt.on(s).store_at("out", "strip").compute_at("out", "yi") for s in stages),
    )


def by_ones(*stages: str) -> pt.Schedule:
    """One row at a time down strips of eight, as if there were several."""
    return pt.Schedule(
        pt.on("out").split("y", "strip", "yi", STRIP).split("yi", "yi", "row", 1),
        *(pt.on(s).store_at("out", "strip").compute_at("out", "yi") for s in stages),
    )


def by_threes(*stages: str) -> pt.Schedule:
    """Three rows at a time down strips of eight, two in the end."""
    return pt.Schedule(
        pt.on("out").split("y", "strip", "yi", STRIP).split("yi", "yi", "row", 3, "guard"),
        *(pt.on(s).store_at("out", "strip").compute_at("out", "yi") for s in stages),
    )


@dataclass(frozen=True)
class Case:
    make: Callable[[], pt.Pipeline]
    schedule: pt.Schedule
    window: int  # rows of f0 in use at a time
    rows: Callable[[int, int], tuple[int, int]]  # of f0 that rows first..last of out need, both ends included


CASES = {
    "window of 3": Case(lambda: column((0, 1, 2)), by_rows("f0"), 3, lambda a, b: (a, b + 2)),
    "with a gap": Case(lambda: column((0, 5)), by_rows("f0"), 6, lambda a, b: (a, b + 5)),
    "two stages": Case(lambda: column((0, 1, 2), 2), by_rows("f0", "f1"), 3, lambda a, b: (a, b + 4)),
    "rows in pairs": Case(lambda: column((0, 1, 2)), by_pairs("f0"), 4, lambda a, b: (a, b + 2)),
    "stages in pairs": Case(lambda: column((0, 1, 2), 2), by_pairs("f0", "f1"), 4, lambda a, b: (a, b + 4)),
    "rows in threes": Case(lambda: column((0, 1, 2)), by_threes("f0"), 5, lambda a, b: (a, b + 2)),
    "stages in threes": Case(lambda: column((0, 1, 2), 2), by_threes("f0", "f1"), 5, lambda a, b: (a, b + 4)),
    "rows by themselves": Case(lambda: column((0, 1, 2)), by_ones("f0"), 3, lambda a, b: (a, b + 2)),
    "read twice": Case(read_twice, by_ones("f0", "f1"), 2, lambda a, b: (a, b + 2)),
    "rows doubled": Case(doubled_rows, by_rows("f0"), 2, lambda a, b: (a // 2, b // 2 + 1)),
    "rows halved": Case(halved_rows, by_rows("f0"), 4, lambda a, b: (2 * a, 2 * b + 3)),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


@cases
@pytest.mark.parametrize("rows", [20, 23, 31])
def test_each_row_is_computed_once(case: Case, rows: int) -> None:
    p = case.make().with_schedule(case.schedule)
    counts = stores(lowered(p)["nest"], {"img.shape.0": rows, "img.shape.1": 2})
    height = p.reference(img=np.zeros((rows, 2), np.float32)).shape[0]
    strips = [(0, height - 1)]
    if "strip" in repr(case.schedule):  # the last one is moved inwards
        starts = [min(y, height - STRIP) for y in range(0, height, STRIP)]
        strips = [(y, y + STRIP - 1) for y in starts]
    assert rows_of("out", counts) == Counter(y for a, b in strips for y in range(a, b + 1))
    needed = [case.rows(a, b) for a, b in strips]
    assert rows_of("f0", counts) == Counter(y for a, b in needed for y in range(a, b + 1))


def rows_of(buffer: str, counts: Counter[tuple[str, tuple[int, ...]]]) -> Counter[int]:
    """How often each row is stored; all its columns as often."""
    found = {x: Counter({i[0]: n for (b, i), n in counts.items() if b == buffer and i[1] == x}) for x in (0, 1)}
    assert found[0] == found[1]
    return found[0]


@cases
def test_rows_in_use_are_kept_in_a_ring(case: Case) -> None:
    assert height_of("f0", lowered(case.make().with_schedule(case.schedule))["fold_storage"]) == case.window


def height_of(buffer: str, s: Stmt) -> int:
    (realized,) = (r for r in walk(s) if isinstance(r, Realize) and r.buffer == buffer)
    return value(realized.box[0][1], {})


def test_a_larger_ring_may_be_asked_for() -> None:
    p = column((0, 1, 2)).with_schedule(
        by_rows().replace(pt.on("out"), pt.on("f0").store_root().compute_at("out", "y").fold_storage("y", 8))
    )
    assert height_of("f0", lowered(p)["fold_storage"]) == 8


@cases
@pytest.mark.parametrize("rows", [3, 4, 5, 6, 7, 8, 9, 12, 13, 50])
def test_results(case: Case, rows: int) -> None:
    p = case.make().with_schedule(case.schedule)
    img = np.random.default_rng(0).integers(0, 99, (rows + 6, 5)).astype(np.float32)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


@pytest.mark.parametrize("rows", range(1, 9))
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_what_a_split_leaves_over_fits_the_rings(rows: int, stages: int) -> None:
    """The last row alone needs more rows of the first stage at once than the loop of pairs does."""
    sliding = [pt.on(f"f{k}").store_root().compute_at("out", "y") for k in range(stages)]
    pairs = pt.on("out").split("y", "y", "row", 2).unroll("row")
    p = column((0, 2), stages).with_schedule(pt.Schedule(pairs, *sliding))
    img = np.random.default_rng(0).integers(0, 99, (rows + 2 * stages, 3)).astype(np.float32)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


def clamped() -> pt.Pipeline:
    """Two rows of f0 for each of out; f0 can be computed anywhere along y, though not along x."""
    f, out = pt.Func("f0"), pt.Func("out")
    f[Y, X] = pt.edge(IMG, axes=[0])[Y, X] * 2.0
    out[Y, X] = f[Y, X] + f[Y + 1, X]
    return pt.Pipeline(out)


def test_what_can_be_computed_anywhere_starts_with_a_whole_step() -> None:
    p = clamped().with_schedule(by_pairs("f0"))
    counts = rows_of("f0", stores(lowered(p)["nest"], {"img.shape.0": 2 * STRIP, "img.shape.1": 2}))
    strips = [range(y - 1, y + STRIP + 1) for y in (0, STRIP)]  # one row less would do, but pairs do not divide that
    assert counts == Counter(y for strip in strips for y in strip)
    img = np.random.default_rng(0).integers(0, 99, (37, 5)).astype(np.float32)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


def test_unrolled_rows_of_a_ring_share_their_address() -> None:
    """Both rows of a pair lie at one place of a ring of two pairs and a constant distance from it."""
    pairs = by_pairs("f0")
    pairs = pairs.replace(pairs.on("out").unroll("row"), pairs.on("f0").unroll("y", 2).fold_storage("y", 4))
    modulos = {
        key(e)
        for e in all_expressions(lowered(clamped().with_schedule(pairs))["simplify"])
        if isinstance(e, Op) and e.op == "mod"
    }
    assert len(modulos) == 2


def test_fused_tiles_need_no_more_than_all_of_them() -> None:
    """What slides down tiles that share one loop reads of an earlier stage what it would without the tiles."""
    whole, f, out = pt.Func("whole"), pt.Func("f0"), pt.Func("out")
    whole[Y, X] = pt.edge(IMG)[Y, X] * 2.0
    f[Y, X] = whole[Y, X - 1] + whole[Y, X + 1]
    out[Y, X] = f[Y - 1, X] + f[Y + 1, X]
    tiles = (
        pt.on("out")
        .split("y", "strip", "yi", STRIP)
        .split("x", "tile", "xi", 16)
        .reorder("strip", "tile", "yi", "xi")
        .fuse("strip", "tile", "task")
    )
    sliding = pt.on("f0").store_at("out", "task").compute_at("out", "yi")
    p = pt.Pipeline(out).with_schedule(pt.Schedule(tiles, sliding, pt.on("whole").compute_root()))
    (realized,) = (r for r in walk(lowered(p)["nest"]) if isinstance(r, Realize) and r.buffer == "whole")
    rows, columns = 5 * STRIP + 3, 71
    assert [value(extent, {"img.shape.0": rows, "img.shape.1": columns}) for _, extent in realized.box] == [
        rows + 2,
        columns + 2,
    ]
    img = np.random.default_rng(0).integers(0, 99, (rows, columns)).astype(np.float32)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


def test_a_loop_that_starts_early_is_not_taken_to_start_at_its_first_iteration() -> None:
    """The row that the early iteration stores lies in the buffer."""
    y, x = pt.vars("y x")
    img, r = pt.Input("img", "int32", ndim=2), pt.RDom((0, 8))
    edge, product, out = pt.Func("edge"), pt.Func("product"), pt.Func("out")
    clamped = pt.edge(img)
    edge[y, x] = clamped[y, x]
    product[y, x] = pt.sum(edge[y, r[0]] * edge[r[0], x], over=r)
    out[y, x] = product[y - 1, x + 2] + product[y, x - 1]
    p = pt.Pipeline(out, shape=img.shape).with_schedule(
        pt.Schedule(
            pt.on("out"),
            pt.on("product").store_root().compute_at("out", "y"),
            pt.on("edge").store_at("product", "x").compute_at("product", "r.0"),
        )
    )
    picture = np.arange(99, dtype=np.int32).reshape(9, 11)
    np.testing.assert_array_equal(p.with_options(debug=True)(img=picture), p.reference(img=picture))


def test_rows_that_are_computed_at_once_have_a_place_each() -> None:
    """Even rows are read: each second iteration computes two, of which it reads one, and updates both."""
    f, out = pt.Func("f"), pt.Func("out")
    f[Y, X] = IMG[Y, X]
    f[Y, X] += pt.cast("float32", pt.RDom((1, 3))[0])
    out[Y, X] = f[Y // 2 * 2, X]
    p = pt.Pipeline(out, shape=IMG.shape).with_options(debug=True)
    scheduled = p.with_schedule(pt.Schedule(pt.on("out"), pt.on("f").store_root().compute_at("out", "y")))
    photo = np.arange(7 * 5, dtype=np.float32).reshape(7, 5)
    np.testing.assert_array_equal(scheduled(img=photo), p.reference(img=photo))


def test_what_is_never_read_along_a_loop_that_does_not_start_early() -> None:
    f, out = pt.Func("f"), pt.Func("out")
    f[Y, X] = IMG[Y, X] * 2.0
    r = pt.RDom((-1, 1))
    out[Y, X] = 0.0
    out[Y, X] += pt.select(r[0] > 1, f[Y + r[0], X] + f[Y + r[0] + 2, X], 0.5)
    p = pt.Pipeline(out, shape=IMG.shape)
    scheduled = p.with_schedule(pt.Schedule(pt.on("out"), pt.on("f").store_root().compute_at("out", "r.0")))
    photo = np.ones((7, 5), np.float32)
    np.testing.assert_array_equal(scheduled(img=photo), p.reference(img=photo))


def test_what_slides_along_one_loop_keeps_all_that_loops_inside_it_sweep() -> None:
    """Whole blocks slide down, the rest along x: the ring that is long enough for the rest is not for the others."""
    source, r, c = pt.Input("img", "float32", ndim=3), pt.RDom((1, 2), (-1, 12)), pt.Var("c")
    clamped, out = pt.edge(source), pt.Func("out")
    out[Y, X, c] = pt.sum(clamped[Y + r[0] - 2, X + r[1] + 1, c], over=r)
    p = pt.Pipeline(out, shape=source.shape).with_schedule(
        pt.Schedule(
            pt.on("out").update(0).unroll("x", 4),
            pt.on("img_edge").store_root().compute_at("out", "x_u").vectorize("d2", 2),
        )
    )
    photo = np.arange(5 * 23 * 3, dtype=np.float32).reshape(5, 23, 3) % 50
    np.testing.assert_array_equal(p(img=photo), p.reference(img=photo))


def test_a_loop_that_starts_early_ends_where_it_would_have() -> None:
    """What its last, partial block reads is no more than without sliding."""
    f, g, half, out = (pt.Func(name) for name in ("f", "g", "half", "out"))
    f[Y, X] = IMG[Y, X] * 2.0
    g[Y, X] = f[Y + 1, X] * 2.0
    half[Y, X] = g[Y, X] + g[Y + 1, X]
    out[Y, X] = half[Y, X] + half[Y + 2, X]
    h, w = IMG.shape
    p = pt.Pipeline(out, shape=(h - 4, w)).with_options(debug=True)
    scheduled = p.with_schedule(
        pt.Schedule(
            pt.on("f").compute_root(),
            pt.on("g").compute_at("half", "y_i").store_at("half", "y_o"),
            pt.on("half").compute_root().split("y", "y_o", "y_i", 3),
            pt.on("out"),
        )
    )
    for rows in range(5, 13):
        photo = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        np.testing.assert_array_equal(scheduled(img=photo), p.reference(img=photo))
