"""What clamped lanes read comes from rows that are filled before."""

from __future__ import annotations

import functools
from itertools import product
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr, Load, Op
from pantile.expr.types import INDEX
from pantile.expr.visit import walk as walk_expr
from pantile.ir.nodes import For, If, Realize, Stmt, Store
from pantile.ir.visit import walk
from tests.long import LONG
from tests.lower.lowered import all_expressions, lowered

Y, X = pt.vars("y x")


@functools.cache
def window(dtype: str, rows: int, columns: int, step: int = 1) -> pt.Pipeline:
    """The largest value around each, with the edges repeated."""
    img, out = pt.Input("img", dtype, ndim=2), pt.Func("out")
    src = pt.edge(img)
    values = [src[Y + i, step * X + j] for i in range(-(rows // 2), rows // 2 + 1) for j in range(columns)]
    largest = values[0]
    for v in values[1:]:
        largest = pt.maximum(largest, v)
    out[Y, X] = largest
    return pt.Pipeline(out, schedule=pt.Schedule(pt.on("out").vectorize("x", 16)))


def gathered(s: Stmt) -> list[Load]:
    """The loads whose lanes a clamp moves."""

    def is_clamp(e: Expr) -> bool:
        return isinstance(e, Op) and e.op in ("min", "max") and e.dtype == INDEX and e.lanes > 1

    loads = (e for e in all_expressions(s) if isinstance(e, Load) and e.lanes > 1)
    return [e for e in loads if any(map(is_clamp, walk_expr(*e.indices)))]


def test_windows_share_the_elements_of_their_rows() -> None:
    passes = lowered(window("uint8", 3, 5))
    assert len(gathered(passes["unroll"])) == 15
    assert not gathered(passes["collect"])
    (rows,) = [s for s in walk(passes["collect"]) if isinstance(s, Realize)]
    assert [str(extent) for _, extent in rows.box] == ["3", str(16 + 20 + 16)]
    (fill,) = [s for s in walk(rows) if isinstance(s, For)]
    assert str(fill.extent) == "20"


def test_rows_are_filled_by_vectors() -> None:
    """Two that overlap for 20 elements, and one of the first and of the last element each; in narrow pictures, one
    element after the other."""
    (branch,) = [s for s in walk(lowered(window("uint8", 3, 5))["collect"]) if isinstance(s, If)]
    stores = [s for s in walk(branch.then) if isinstance(s, Store)]
    assert [s.value.lanes for s in stores] == [16] * 4 * 3
    assert [str(s.indices[1]) for s in stores[:4]] == [f"ramp({at}, 1, 16)" for at in (16, 20, 0, 36)]
    assert branch.otherwise is not None
    assert {s.value.lanes for s in walk(branch.otherwise) if isinstance(s, Store)} == {1}


def test_a_few_lanes_are_loaded_one_by_one() -> None:
    assert len(gathered(lowered(window("uint8", 1, 1))["collect"])) == 1


def test_elements_further_apart_have_rows_of_their_own() -> None:
    """2x, 2x + 2 and 2x + 4 go over even elements, 2x + 1 and 2x + 3 over odd ones."""
    passes = lowered(window("uint8", 3, 5, step=2))
    assert not gathered(passes["collect"])
    assert not any(isinstance(s, If) for s in walk(passes["collect"]))
    extents = sorted(str(s.box[1][1]) for s in walk(passes["collect"]) if isinstance(s, Realize))
    assert extents == ["17", "18"]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 16), (5, 17), (4, 33), (9, 100)])
def test_results(dtype: str, step: int, shape: tuple[int, int]) -> None:
    p = window(dtype, 3, 5, step)
    img = np.random.default_rng(1).integers(0, 200, shape).astype(dtype)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


OFFSETS = (-40, -17, -16, -15, -3, -1, 0, 1, 14, 16, 33)
# Widths of less than a vector have code of their own: each offset leaves out one of them, by turns.
WIDTHS = [
    (offset, width)
    for k, offset in enumerate(OFFSETS)
    for width in (1, 15, 16, 17, 18, 31, 33, 49, 100)
    if LONG or width != (1, 15)[k % 2]
]


@functools.cache
def clamped(offset: int) -> pt.Pipeline:
    img, out, twice = pt.Input("img", "int16", ndim=2), pt.Func("out"), pt.Func("twice")
    twice[Y, X] = 2 * img[Y, X]

    total: Any = 0
    for k, source in product((-1, 0, 1), (img, twice)):
        at = pt.clamp(Y + k, 0, img.shape[0] - 1), pt.clamp(X + offset + k, 0, img.shape[1] - 1)
        total += source[at] * (k + 2)
    out[Y, X] = total
    schedule = pt.Schedule(pt.on("out").vectorize("x", 16), pt.on("twice").compute_root())
    return pt.Pipeline(out, shape=img.shape, schedule=schedule)


@pytest.mark.parametrize(("offset", "width"), WIDTHS)
def test_clamps_to_either_side(offset: int, width: int) -> None:
    """Also of a stage, and where rows begin far outside."""
    p = clamped(offset)
    a = np.random.default_rng(2).integers(0, 99, (5, width)).astype("int16")
    np.testing.assert_array_equal(p(img=a), p.reference(img=a))


BEYOND = {"mirror": pt.mirror, "reflect": pt.reflect, "wrap": pt.wrap}


def dividing(e: Stmt) -> list[Expr]:
    """The remainders of vectors."""
    return [x for x in all_expressions(e) if isinstance(x, Op) and x.op == "mod" and x.lanes > 1]


@functools.cache
def folded(kind: str, dtype: str, offset: int = 0) -> pt.Pipeline:
    """A sum of the pixels around each, with what lies beyond the edges."""
    img, out = pt.Input("img", dtype, ndim=2), pt.Func("out")
    src, total = BEYOND[kind](img), pt.cast("int32", 0)
    for i, j in product((-1, 0, 1), (-2, -1, 0, 1, 2)):
        total = total + (3 * i + j + 7) * pt.cast("int32", src[Y + i, X + offset + j])
    out[Y, X] = total
    return pt.Pipeline(out, shape=img.shape, schedule=pt.Schedule(pt.on("out").vectorize("x", 16)))


@pytest.mark.parametrize("kind", BEYOND)
def test_what_is_folded_at_the_edges_is_copied_where_it_lies_inside(kind: str) -> None:
    """No lane divides: elements outside do, one after the other."""
    body = lowered(folded(kind, "uint8"))["collect"]
    assert dividing(lowered(folded(kind, "uint8"))["unroll"])
    assert not dividing(body)
    rows = {s.buffer for s in walk(body) if isinstance(s, Realize)}
    stores = [s.value for s in walk(body) if isinstance(s, Store) and s.buffer in rows]
    assert {s.lanes for s in stores} == {1, 8}


@pytest.mark.parametrize("kind", BEYOND)
@pytest.mark.parametrize("offset", [-40, -8, 0, 33])
@pytest.mark.parametrize("width", [1, 7, 16, 17, 33, 100])
def test_folded_edges(kind: str, offset: int, width: int) -> None:
    """Also where all of a row, or nothing of it, lies inside."""
    p = folded(kind, "uint8", offset)
    img = np.random.default_rng(3).integers(0, 200, (4, width)).astype("uint8")
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


@pytest.mark.parametrize(
    "inside", [lambda x, w: x < w, lambda x, w: x <= w - 1, lambda x, w: w > x, lambda x, w: w - 1 >= x]
)
def test_ends_are_found_in_any_comparison(inside: Any) -> None:
    img, out = pt.Input("img", "int16", ndim=1), pt.Func("out")
    w, total = img.shape[0], pt.cast("int16", 0)
    for k in range(3):
        total = total + (k + 1) * img[pt.select(inside(X + k, w), X + k, (X + k) % w)]
    out[X] = total
    p = pt.Pipeline(out, shape=img.shape, schedule=pt.Schedule(pt.on("out").vectorize("x", 16)))
    assert not dividing(lowered(p)["collect"])
    for n in (1, 16, 40):
        a = np.arange(n).astype("int16")
        np.testing.assert_array_equal(p(img=a), p.reference(img=a))


@pytest.mark.parametrize("width", [5, 8, 17, 36])
def test_a_clamp_to_more_than_there_is(width: int) -> None:
    """The first vector of 16 needs fewer elements than it has lanes, and the input may have no others."""
    img, out = pt.Input("img", "uint8", ndim=1), pt.Func("out")
    out[X] = sum((img[pt.clamp(X - 12 - k, 0, 99)] for k in range(1, 4)), img[pt.clamp(X - 12, 0, 99)])
    p = pt.Pipeline(out, (img.shape[0] + 12,), schedule=pt.Schedule(pt.on("out").vectorize("x", 16)))
    line = np.arange(1, width + 1, dtype=np.uint8)
    np.testing.assert_array_equal(p.with_options(debug=True)(img=line), p.reference(img=line))


@pytest.mark.parametrize("target", ["host", "cuda-sim"])
@pytest.mark.parametrize("width", [31, 37, 64, 100])
def test_a_clamp_of_a_part_that_a_tile_has(width: int, target: str) -> None:
    """A vector reads no more of a stage than was computed for it."""
    img, source, out = pt.Input("img", "float32", ndim=1), pt.Func("source"), pt.Func("out")
    source[X] = img[X] * 2
    out[X] = source[pt.clamp(X - 2, 0, img.shape[0] - 1)]
    tiles = pt.Schedule(pt.on("out").vectorize("x", 32, tail="guard"), pt.on("source").compute_at("out", "x"))
    p = pt.Pipeline(out, (2 * width,)).with_schedule(tiles)
    line = np.arange(width, dtype=np.float32)
    checked = p.with_options(debug=True, target=target)
    np.testing.assert_array_equal(checked(img=line), p.reference(img=line))


def test_an_update_that_stores_what_it_reads_is_left_alone() -> None:
    img, out = pt.Input("img", "uint8", ndim=1), pt.Func("out")
    last = img.shape[0] - 1
    r = pt.RDom((0, 4), name="r", names="k")
    out[X] = img[X]
    out[X] = pt.maximum(out[X], img[pt.clamp(X + r.k, 0, last)])
    schedule = pt.Schedule(pt.on("out").update().vectorize("x", 16).unroll("r.k").reorder("x", "r.k", "x_v"))
    p = pt.Pipeline(out, shape=(img.shape[0],), schedule=schedule)
    a = np.random.default_rng(2).integers(0, 255, 77).astype("uint8")
    np.testing.assert_array_equal(p(img=a), p.reference(img=a))
