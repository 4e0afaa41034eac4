"""How much code the edges of loops may become."""

from __future__ import annotations

import numpy as np

import pantile as pt
from pantile.expr.build import maximum, minimum, select
from pantile.expr.linear import Facts
from pantile.expr.nodes import Expr, Load, const, var
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Block, For, Stmt, Store
from pantile.ir.show import show
from pantile.ir.visit import walk
from pantile.lower.partition import partition
from pantile.lower.size import size
from pantile.target.kinds import Kind

N = var("n")


def clamped(levels: int) -> Stmt:
    """Loops in each other, with clamps on all of them."""
    loops = [var(f"i{k}") for k in range(levels)]
    body: Stmt = Block(())
    for k in reversed(range(levels)):
        places = tuple(maximum(minimum(i - 1, N - 1), 0) for i in loops[: k + 1])
        body = Block((body, Store(f"g{k}", tuple(loops[: k + 1]), Load(INT32, 1, f"f{k}", places))))
        body = For(loops[k].name, const(0, INDEX), N, Kind.SERIAL, body)
    return body


def partitioned(body: Stmt) -> Stmt:
    """With every loop partitioned that may be."""
    always = {s.var: "always" for s in walk(body) if isinstance(s, For)}
    return partition(body, Facts({"n": (1, None)}), always, ())


def test_a_few_loops_have_their_edges() -> None:
    assert sum(isinstance(s, For) for s in walk(partitioned(clamped(2)))) == 6


def test_edges_of_loops_in_loops_do_not_multiply_without_end() -> None:
    assert size(clamped(10)) < size(partitioned(clamped(10))) < size(clamped(10)) + 20_000


def test_edges_of_unrolled_loops_count_as_often_as_they_are_repeated() -> None:
    def unrolled(times: int) -> Stmt:
        return For("u", const(0, INDEX), const(times, INDEX), Kind.UNROLL, clamped(3))

    assert size(partitioned(unrolled(200))) < size(unrolled(200)) + 20_000
    assert size(partitioned(unrolled(2))) > 3 * size(unrolled(2))


def test_edges_of_loops_one_after_the_other_add_less_than_twice_the_program() -> None:
    program = Block(tuple(clamped(8) for _ in range(80)))
    assert size(partitioned(program)) < 3 * size(program)


def lanes_around(clamp_moves_with_c: bool) -> Stmt:
    """for x: for c: vector lanes that read clamp(8*x + lane - 1), or that of c too."""
    x, c, lane = var("x"), var("c"), var("lane")
    place = 8 * x + lane - 1 + (c if clamp_moves_with_c else 0)
    store = Store("g", (c, 8 * x + lane), Load(INT32, 1, "f", (c, maximum(minimum(place, N - 1), 0))))
    lanes = For("lane", const(0, INDEX), const(8, INDEX), Kind.VECTOR, store)
    inner = For("c", const(0, INDEX), var("channels"), Kind.SERIAL, lanes)
    return For("x", const(0, INDEX), N // 8, Kind.SERIAL, inner)


def test_lanes_that_only_an_outer_loop_clamps_have_a_steady_middle() -> None:
    """Channels innermost: the loop over them does not spare vectors the edges of their rows, which are gathered."""
    facts = Facts({"n": (64, None), "channels": (1, None)})
    loops = [s.var for s in walk(partition(lanes_around(False), facts, {}, ())) if isinstance(s, For)]
    assert loops == ["x", "c", "lane", "x.edge", "c", "lane"]
    assert "x.edge" not in [s.var for s in walk(partition(lanes_around(True), facts, {}, ())) if isinstance(s, For)]


def test_few_vectors_of_a_tile_have_a_steady_middle_where_lanes_are_clamped() -> None:
    """Of two vectors of a row of a tile, those at no edge of the image are loaded, and not gathered lane by lane."""
    x, lane = var("x"), var("lane")
    place = maximum(minimum(var("tile") * 16 + 8 * x + lane - 1, N - 1), 0)
    store = Store("g", (x, lane), Load(INT32, 1, "f", (place,)))
    lanes = For("lane", const(0, INDEX), const(8, INDEX), Kind.VECTOR, store)
    vectors = For("x", const(0, INDEX), const(2, INDEX), Kind.SERIAL, lanes)
    loops = [s.var for s in walk(partition(vectors, Facts({"n": (64, None)}), {}, ())) if isinstance(s, For)]
    assert loops == ["x", "lane", "x.edge", "lane"]


def test_what_inner_loops_share_holds_in_all_of_them() -> None:
    """The loops over x, after each other, share a clamp: the middle of y is where it does nothing in either."""
    y, x = var("y"), var("x")
    place = minimum(y + x, N - 1)

    def along(low: int, high: int) -> Stmt:
        store = Store("g", (y, x), Load(INT32, 1, "f", (place,)))
        return For("x", const(low, INDEX), const(high - low, INDEX), Kind.SERIAL, store)

    body = For("y", const(0, INDEX), N, Kind.SERIAL, Block((along(0, 4), along(4, 9))))
    found = partition(body, Facts({"n": (1, None)}), {"y": "always", "x": "never"}, ())
    assert "let y.steady_end = max(n - 8, y.steady)" in show(found)


def test_what_does_not_hold_in_the_first_of_inner_loops_stays() -> None:
    """Of two loops over x that share a condition, it holds in the second, for rows in the middle, and not in the
    first."""
    y, x = var("y"), var("x")
    value = select(x > 1, Load(INT32, 1, "f", (minimum(y, N - 1),)), const(7, INT32))

    def along(low: Expr, extent: Expr) -> Stmt:
        return For("x", low, extent, Kind.SERIAL, Store("g", (y, x), value))

    body = For("y", const(0, INDEX), N, Kind.SERIAL, Block((along(const(1, INDEX), const(1, INDEX)), along(y, N - y))))
    shown = show(partition(body, Facts({"n": (1, None)}), {"y": "always", "x": "never"}, ()))
    assert shown.count("select(x > 1") == shown.count("g[y, x] =")


def test_a_sum_whose_first_term_reads_nothing() -> None:
    """Its loop is partitioned, and then the loop around it, along which lanes are clamped."""
    img, out, r = pt.Input("img", "uint8", ndim=2), pt.Func("out"), pt.RDom((1, 3))
    y, x = pt.vars("y x")
    out[y, x] = pt.cast("float32", 0)
    read = pt.edge(img)[y + 1 + r[0], pt.clamp(x, 0, 6) + r[0]]
    out[y, x] += pt.select(r[0] > 1, pt.cast("float32", read), 0.5)
    rows = pt.on("out").compute_root().update(0).vectorize("x", 4).reorder("y", "x", "r.0", "x_v")
    p = pt.Pipeline(out, (img.shape[0], img.shape[1] // 2 + 1)).with_schedule(pt.Schedule(rows))
    picture = np.random.default_rng(1).integers(0, 200, (23, 7)).astype(np.uint8)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))
