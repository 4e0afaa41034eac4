"""What innermost loops add to where their rows begin."""

from __future__ import annotations

import numpy as np

import pantile as pt
from pantile.codegen.opaque_rows import row_starts
from pantile.expr.nodes import Expr, Load, const, var
from pantile.expr.types import FLOAT32, INDEX
from pantile.ir.nodes import Alloc, Block, For, Let, Stmt, Store
from pantile.target.kinds import Kind, Memory

Y, X = var("y"), var("x")
ZERO, N = const(0, INDEX), var("n")


def loop(body: Stmt) -> For:
    return For("x", ZERO, N, Kind.SERIAL, body)


def load(buffer: str, index: Expr) -> Load:
    return Load(FLOAT32, 1, buffer, (index,))


def parts(body: Stmt) -> list[tuple[str, str, str]]:
    return [(b.buffer, str(b.begin), str(b.rest)) for b in row_starts(loop(body))]


def test_rows_begin_with_all_that_the_loop_does_not_change() -> None:
    index = (Y - var("f.y.min")) * var("f.stride.0") + 2 * X - var("f.x.min") + 1
    found = parts(Store("g", (Y * var("g.stride.0") + X,), load("f", index)))
    assert found == [
        ("f", "(y - f.y.min)*f.stride.0 - f.x.min", "x*2"),
        ("g", "y*g.stride.0", "x"),
    ]


def test_neighbours_share_a_row() -> None:
    row = Y * var("f.stride.0")
    assert parts(Store("g", (X,), load("f", row + X) + load("f", row + X + 1))) == [("f", "y*f.stride.0", "x")]


def test_buffers_that_begin_alike_share_their_index() -> None:
    row = Y * var("stride") + X
    assert parts(Store("g", (row,), load("f", row))) == []


def test_lets_and_buffers_inside_the_loop_move_with_it() -> None:
    inner = Let("at", X // 8, Store("g", (Y + var("at"),), load("f", N + X)))
    assert parts(Alloc("f", FLOAT32, const(8, INDEX), Memory.STACK, None, inner)) == [("g", "y", "at")]


def test_where_a_block_begins_is_where_its_row_does() -> None:
    """As the last one of a split may begin anywhere: all rows then advance by the same steps."""
    inner = Let("lo", X * 8 + var("start"), Store("g", (Y + var("lo"),), load("f", N + var("lo"))))
    assert parts(inner) == [("f", "n + start", "x*8"), ("g", "y + start", "x*8")]


def test_copies_of_a_block_have_names_in_common() -> None:
    def copy(k: int) -> Stmt:
        return Let("lo", X * 8 + var("start") + k, Store("g", (Y + var("lo"),), load("f", N + var("lo"))))

    assert parts(Block((copy(0), copy(4)))) == [("f", "n", "lo"), ("g", "y", "lo")]


def test_what_may_not_be_needed_is_not_computed_early() -> None:
    by_data = Load(INDEX, 1, "rows", (Y,))
    assert parts(Store("g", (Y // N + X,), load("f", by_data + X))) == []


def test_a_buffer_that_lives_for_one_iteration() -> None:
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "int32", ndim=2)
    src, out = pt.edge(img), pt.Func("out")
    r = pt.RDom((0, 2), name="r", names="k")
    out[y, x, c] = pt.sum(src[y + r.k, x + c + r.k], over=r)
    p = pt.Pipeline(out, shape=(*img.shape, 3), schedule=pt.Schedule(pt.on("img_edge").compute_at("out", "c")))
    a = np.arange(77, dtype="int32").reshape(7, 11)
    np.testing.assert_array_equal(p(img=a), p.reference(img=a))
