"""Registers of a block are those of its threads, where all of them share a stage out alike."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.expr.build import maximum, minimum
from pantile.expr.linear import linear
from pantile.expr.nodes import const, var
from pantile.expr.types import INDEX
from pantile.lower.gpu.thread_registers import _few_cases
from pantile.target.kinds import Memory

from .simulated import assert_agrees, blur, kernels, loops, picture, realized, sizes, x, y

i, j = pt.vars("i j")
TILES = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")
OWN = pt.on("rows").compute_at("out", "xo").thread("y", "x").store_in("register")


def product(*schedule: pt.schedule.StageSchedule) -> pt.Pipeline:
    """A matrix product, summed in a stage of its own."""
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    r = pt.RDom((0, a.shape[1]))
    sums, out = pt.Func("sums"), pt.Func("out")
    sums[i, j] = 0.0
    sums[i, j] += a[i, r[0]] * b[r[0], j]
    out[i, j] = sums[i, j]
    p = pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), target="cuda-sim")
    return p.with_schedule(pt.Schedule(*schedule))


def in_registers() -> pt.Pipeline:
    """Blocks of 16 x 16 values, four threads along each side, each of which sums 4 x 4."""

    def shared(s: pt.schedule.StageSchedule, rows: str, columns: str) -> pt.schedule.StageSchedule:
        return s.split(rows, "it", "iu", 4).split(columns, "jt", "ju", 4)

    whole = pt.on("out").tile("i", "j", "io", "jo", "ii", "ji", 16, 16).block("io", "jo")
    return product(
        shared(whole, "ii", "ji").reorder("io", "jo", "it", "jt", "iu", "ju").thread("it", "jt"),
        shared(
            shared(pt.on("sums").compute_at("out", "jo").store_in("register"), "i", "j")
            .reorder("it", "jt", "iu", "ju")
            .thread("it", "jt")
            .update(0),
            "i",
            "j",
        )
        .reorder("r.0", "it", "jt", "iu", "ju")
        .thread("it", "jt"),
    )


def test_threads_keep_what_they_compute() -> None:
    p = in_registers()
    for memory in realized(loops(p, "distribute_registers"), "sums"):
        assert memory.memory is Memory.REGISTER and sizes(memory) == [4, 4]
    assert kernels(p)[-1].shared == 0
    rng = np.random.default_rng(3)
    for n, k, m in ((16, 5, 16), (32, 9, 48), (33, 7, 50), (16, 1, 17)):
        assert_agrees(p, a=rng.random((n, k), np.float32), b=rng.random((k, m), np.float32))


def test_one_value_of_each_thread() -> None:
    p = blur(TILES, OWN, height=0)
    assert all(sizes(r) == [1, 1] for r in realized(loops(p, "distribute_registers"), "rows"))
    assert_agrees(p, img=picture(40, 80))


@pytest.mark.parametrize("memory", ["register", "stack"])
def test_a_neighbour_is_another_threads(memory: str) -> None:
    with pytest.raises(pt.errors.UserError) as caught:
        blur(TILES, OWN.store_in(memory), height=1)(img=picture(40, 80))
    assert f'store_in("{memory}"): the threads of a block cannot keep rows: ' in str(caught.value)
    assert 'cut all loops over rows alike and mark the same ones .thread(...), or use .store_in("shared")' in str(
        caught.value
    )


def doubled(*schedule: pt.schedule.StageSchedule, reads: tuple[int, ...] = (0,)) -> pt.Pipeline:
    """Sums of values at these distances."""
    img, f, out = pt.Input("img", "int32", ndim=1), pt.Func("f"), pt.Func("out")
    f[x] = img[x] * 2
    out[x] = sum((f[x + k] for k in reads[1:]), f[x + reads[0]])
    return pt.Pipeline(out, shape=(64,), target="cuda-sim").with_schedule(pt.Schedule(*schedule))


def test_neighbours_are_other_threads_where_all_have_as_many_values() -> None:
    """Two threads share the four values evenly, and each has every other one."""
    tiles = pt.on("out").split("x", "xo", "xi", 2).block("xo").thread("xi")
    own = pt.on("f").compute_at("out", "xo").split("x", "xa", "xb", 2).thread("xb").store_in("register")
    with pytest.raises(pt.errors.UserError, match="threads would read what others have computed"):
        doubled(tiles, own, reads=(0, 1, 2))(img=np.arange(80, dtype=np.int32))
    assert_agrees(doubled(tiles, own, reads=(0, 2)), img=np.arange(80, dtype=np.int32))


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_values_side_by_side_are_one_threads_up_to_the_next_one(lanes: int) -> None:
    tiles = pt.on("out").split("x", "xo", "xi", 16).split("xi", "t", "u", 4).block("xo").thread("t")
    own = pt.on("f").compute_at("out", "xo").split("x", "xa", "xb", 16).split("xb", "t", "u", 4).thread("t")
    own = own.store_in("register")
    if lanes > 1:
        tiles, own = tiles.vectorize("u", lanes), own.vectorize("u", lanes)
    assert_agrees(doubled(tiles, own, reads=(0, 16)), img=np.arange(80, dtype=np.int32))
    with pytest.raises(pt.errors.UserError, match="threads would read what others have computed"):
        doubled(tiles, own, reads=(0, 2, 16))(img=np.arange(80, dtype=np.int32))


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_two_thread_loops_over_one_dim(order: tuple[str, str]) -> None:
    """x is 8*c + 2*b + a: a thread has two values, whichever thread loop is outside."""

    def cut(s: pt.schedule.StageSchedule, loop: str) -> pt.schedule.StageSchedule:
        return s.split(loop, "c", "r", 8).split("r", "b", "a", 2)

    tiles = cut(pt.on("out").split("x", "xo", "xi", 16).block("xo"), "xi").reorder("xo", *order, "c").thread(*order)
    own = cut(pt.on("f").compute_at("out", "xo"), "x").reorder(*order, "c").thread(*order).store_in("register")
    assert_agrees(doubled(tiles, own), img=np.arange(64, dtype=np.int32))


def test_loops_that_are_shared_out_otherwise() -> None:
    turned = pt.on("rows").compute_at("out", "xo").reorder("x", "y").thread("x", "y").store_in("register")
    why = "threads of one loop would read what those of another have computed"
    with pytest.raises(pt.errors.UserError, match=why):
        blur(TILES, turned, height=0)(img=picture(40, 80))


def test_more_threads_than_a_block_has() -> None:
    """The block has 32 threads by its own stage, each of which would take four of the 128 points."""
    img, f, g, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[y, x] = img[y, x] * 2
    g[y, x] = f[y, x] + 1
    out[y, x] = g[y, x] + g[y, x + 1]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1), target="cuda-sim")
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "row", "xi", 4, 31).reorder("yo", "xo", "xi", "row")
    beside = [pt.on(name).compute_at("out", "xo").thread("y", "x") for name in ("f", "g")]
    q = p.with_schedule(pt.Schedule(tiles.block("yo", "xo").thread("xi"), beside[0].store_in("register"), beside[1]))
    why = "the threads of a block cannot keep f: 128 threads would, and a block has 32; cut all loops over f alike"
    with pytest.raises(pt.errors.UserError, match=why):
        q(img=picture(20, 80))
    wide = tiles.reorder("yo", "xo", "row", "xi").block("yo", "xo").thread("row", "xi")
    q = p.with_schedule(pt.Schedule(wide, beside[0].store_in("register"), beside[1]))
    assert_agrees(q, img=picture(20, 80))


def test_warps_are_no_threads_side_by_side() -> None:
    """A loop over three threads has numbers 0 to 2, one over three warps 0, 32 and 64, and so on."""
    img, rows, out = pt.Input("img", "int32", ndim=1), pt.Func("rows"), pt.Func("out")
    rows[y] = img[y] * 2
    out[y] = rows[y] + 1
    p = pt.Pipeline(out, shape=(img.shape[0],), target="cuda-sim")
    warps = pt.on("out").split("y", "y", "lane", 1).split("y", "yo", "w", 3).block("yo").warp("w").lane("lane")
    threads = pt.on("rows").compute_at("out", "yo").thread("y").store_in("register")
    why = "threads of one loop would read what those of another have computed"
    with pytest.raises(pt.errors.UserError, match=why):
        p.with_schedule(pt.Schedule(warps, threads))(img=np.arange(9, dtype=np.int32))


def test_values_of_all_threads_are_no_ones_own() -> None:
    alone = pt.on("rows").compute_at("out", "xo").store_in("register")
    with pytest.raises(pt.errors.UserError, match="it is used outside of threads"):
        blur(TILES, alone, height=0)(img=picture(40, 80))


def test_what_one_thread_does_is_its_own() -> None:
    """Nothing is shared out where there are no thread loops."""
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 4, 4).block("yo", "xo")
    p = blur(tiles, pt.on("rows").compute_at("out", "xo").store_in("register"))
    assert_agrees(p, img=picture(12, 20))


def test_sums_that_one_thread_holds() -> None:
    """Lowering holds them in registers around loops that no thread loop is in."""
    img, s, out = pt.Input("img", "float32", ndim=2), pt.Func("s"), pt.Func("out")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    s[()] = 0.0
    s[()] += img[r[0], r[1]]
    out[x] = s[()] + x
    p = pt.Pipeline(out, shape=(5,), target="cuda-sim").with_schedule(pt.Schedule(pt.on("s").compute_root()))
    assert_agrees(p, img=picture(9, 11))


def test_sums_that_are_held_while_threads_compute_terms() -> None:
    img, g, s = pt.Input("img", "float32", ndim=2), pt.Func("g"), pt.Func("s")
    r = pt.RDom((0, img.shape[0]))
    g[y, x] = img[y, x] * img[y, x]
    s[()] = 0.0
    s[()] += g[r[0], 0] + g[r[0], 1]
    p = pt.Pipeline(s, shape=(), target="cuda-sim").with_schedule(
        pt.Schedule(pt.on("s").compute_root(), pt.on("g").compute_at("s", "r.0").thread("y", "x"))
    )
    assert_agrees(p, img=picture(9, 2))


def test_clamps_around_clamps_are_followed_while_they_are_few() -> None:
    """A sum of five clamps is one of 243 numbers, and one of twelve of half a million."""
    names = [var(f"n{k}") for k in range(12)]
    clamps = [maximum(minimum(n, const(9, INDEX)), const(0, INDEX)) for n in names]
    cases = _few_cases(linear(sum(clamps[1:5], clamps[0])))
    assert cases is not None and len(cases) == 3**5
    assert _few_cases(linear(sum(clamps[1:], clamps[0]))) is None
