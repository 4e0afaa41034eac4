"""Threads wait for each other where one touches what another has stored, and nowhere else."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import pantile as pt
from pantile.expr.nodes import Load, Var, const
from pantile.expr.types import FLOAT32, INDEX
from pantile.ir.instructions import Effect, effect_of
from pantile.ir.nodes import Alloc, Block, For, If, Kernel, Program, Stmt, Store
from pantile.ir.visit import block
from pantile.lower.gpu.insert_barriers import insert_barriers
from pantile.target.kinds import Kind, Memory

from .simulated import assert_agrees, barriers, blur, kernels, order, picture, x, y

T = Var(INDEX, 1, "t")


def touch(to: str, *read: str, count: int = 64) -> For:
    """All threads store into a buffer, from others."""
    value = sum((Load(FLOAT32, 1, b, (T + 1,)) for b in read), const(1.0, FLOAT32))
    return For("t", const(0, INDEX), const(count, INDEX), Kind.THREAD, Store(to, (T,), value))


def shared(buffer: str, offset: int, *body: Stmt) -> Alloc:
    return Alloc(buffer, FLOAT32, const(64, INDEX), Memory.SHARED, const(offset, INDEX), block(*body))


def placed(*body: Stmt) -> Stmt:
    kernel = Kernel("k", "b", const(0, INDEX), (), (), block(*body), 64, 1024)
    return insert_barriers(Program("p", (), (), Block(()), (kernel,))).kernels[0].body


def serial(*body: Stmt) -> For:
    return For("k", const(0, INDEX), Var(INDEX, 1, "n"), Kind.SERIAL, block(*body))


def test_between_what_is_stored_and_read() -> None:
    assert list(order(placed(shared("a", 0, touch("a"), touch("out", "a"))))) == ["t", "barrier", "t"]
    assert list(order(placed(shared("a", 0, touch("a", "img"), touch("out", "img"))))) == ["t", "t"]


def test_one_serves_several_stages() -> None:
    body = shared("a", 0, shared("b", 256, touch("a"), touch("b"), touch("out", "a", "b"), touch("out2", "b")))
    assert list(order(placed(body))) == ["t", "t", "barrier", "t", "t"]


def test_memory_that_is_used_again() -> None:
    """Another buffer at the same bytes is stored into while slower threads may still read the first."""
    one, other = shared("a", 0, touch("a"), touch("out", "a")), shared("b", 128, touch("b"), touch("out2", "b"))
    assert list(order(placed(one, other))) == ["t", "barrier", "t", "barrier", "t", "barrier", "t"]
    apart = shared("b", 256, touch("b"), touch("out2", "b"))
    assert list(order(placed(one, apart))) == ["t", "barrier", "t", "t", "barrier", "t"]


def test_a_loop_meets_its_own_beginning() -> None:
    assert barriers(placed(shared("a", 0, serial(touch("a"), touch("out", "a"))))) == 2
    assert barriers(placed(shared("a", 0, touch("a"), serial(touch("out", "a"))))) == 1
    assert barriers(placed(serial(touch("out", "img")))) == 1, "each iteration stores where others may have before"


def test_branches_leave_what_either_of_them_did() -> None:
    condition = Var(INDEX, 1, "n") < const(3, INDEX)
    either = If(condition, touch("a"), touch("c"))
    assert list(order(placed(shared("a", 0, shared("c", 256, either, touch("out", "a")))))) == [
        "t",
        "t",
        "barrier",
        "t",
    ]
    waits = If(condition, block(touch("a"), touch("out", "a")), touch("c"))
    assert barriers(placed(shared("a", 0, shared("c", 256, waits, touch("out2", "c"))))) == 2
    alone = If(condition, touch("a"))
    assert barriers(placed(shared("a", 0, alone, touch("out", "a")))) == 1


def test_one_thread_does_not_wait_for_itself() -> None:
    one = [touch("a", count=1), touch("b", "a", count=1), touch("out", "b", count=1)]
    assert barriers(placed(shared("a", 0, shared("b", 256, *one)))) == 0


def test_what_each_thread_keeps_is_its_own() -> None:
    own = Alloc("a", FLOAT32, const(4, INDEX), Memory.REGISTER, None, block(touch("a"), touch("out", "a")))
    assert barriers(placed(own)) == 0


def test_what_all_threads_decide_by() -> None:
    decision = If(Load(FLOAT32, 1, "a", (const(0, INDEX),)) < const(1.0, FLOAT32), touch("out"))
    found = placed(shared("a", 0, touch("a"), decision, touch("a")))
    assert list(order(found)) == ["t", "barrier", "t", "barrier", "t"]
    assert not any(effect_of(s) is Effect.BARRIER for s in [decision.then])


def chain(stages: int) -> pt.Pipeline:
    """Each computed in a block of the last one."""
    img = pt.Input("img", "float32", ndim=2)
    funcs = [pt.Func(f"f{k}") for k in range(stages)]
    funcs[0][y, x] = img[y, x] + 1.0
    for before, f in pairwise(funcs):
        f[y, x] = before[y, x] + before[y, x + 1]
    last = f"f{stages - 1}"
    tiles = pt.on(last).tile("y", "x", "yo", "xo", "yi", "xi", 4, 16).block("yo", "xo").thread("yi", "xi")
    inner = [pt.on(f"f{k}").compute_at(last, "xo").thread("y", "x") for k in range(stages - 1)]
    p = pt.Pipeline(funcs[-1], shape=(img.shape[0], img.shape[1] - stages), target="cuda-sim")
    return p.with_schedule(pt.Schedule(tiles, *inner))


def test_one_for_each_stage_of_a_block() -> None:
    for stages in (2, 3, 5):
        (count,) = assert_agrees(chain(stages), img=picture(9, 50))
        assert count.barriers == (stages - 1) * count.blocks


def test_a_window_of_rows_in_a_serial_loop() -> None:
    chain = pt.on("out").split("x", "xo", "xi", 32).split("y", "yo", "yi", 8)
    p = blur(
        chain.reorder("yo", "xo", "yi", "xi").block("yo", "xo").thread("xi"),
        pt.on("rows").compute_at("out", "yi").store_at("out", "xo").thread("x"),
    )
    (kernel,) = kernels(p)
    assert barriers(kernel.body) >= 2
    assert_agrees(p, img=picture(20, 70))
    np.testing.assert_equal(p(img=picture(20, 70)).shape, (18, 68))
