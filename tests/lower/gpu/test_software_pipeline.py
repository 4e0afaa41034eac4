"""Stages computed ahead of their use: what becomes of their loops and memory, and that results stay the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.ir.instructions import Effect, effect_of
from pantile.ir.nodes import Alloc, For, Manner, Store
from pantile.ir.visit import walk
from pantile.target.kinds import Kind

from .simulated import assert_agrees, kernels

i, j = pt.vars("i j")


def product(ahead: int = 1, factor: int = 1, wide: bool = False, k: int = 8) -> pt.Pipeline:
    """Of matrices; one factor is copied, the other one multiplied by a number before."""
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    r, out, left = pt.RDom((0, a.shape[1]), name="r", names="k"), pt.Func("out"), pt.Func("left")
    kk = pt.Var("k")
    left[i, kk] = a[i, kk] * factor
    out[i, j] = pt.sum(left[i, r.k] * b[r.k, j], over=r)
    copied = pt.on("right").compute_at("sums", "ko").store_in("shared")
    if wide:
        copied = copied.split("j", "jo", "ji", 4, tail="guard").thread("k", "jo").vectorize("ji")
    else:
        copied = copied.thread("k", "j")
    made = pt.on("left").compute_at("sums", "ko").store_in("shared").thread("i", "k")
    if ahead:
        copied, made = copied.compute_ahead(ahead), made.compute_ahead(ahead)
    schedule = pt.Schedule(
        pt.on("out").copy_out("sums")
        .tile("i", "j", "ib", "jb", "ti", "tj", 8, 16).block("ib", "jb").thread("ti", "tj"),
        pt.on("sums").compute_at("out", "jb").store_in("register").thread("i", "j")
        .update().split("r.k", "ko", "ki", k, tail="peel").reorder("ko", "i", "j", "ki").thread("i", "j"),
        pt.on("b").copy_in("sums", "right", "k", "j"), copied, made,
    )  # fmt: skip
    shape = (a.shape[0], b.shape[1])
    return pt.Pipeline(out, shape=shape, schedule=schedule, target="cuda-sim")


def matrices(rows: int, inner: int, columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {"a": rng.random((rows, inner), dtype=np.float32), "b": rng.random((inner, columns), dtype=np.float32)}


@pytest.mark.parametrize("ahead", [1, 2, 3])
@pytest.mark.parametrize("size", [(16, 40, 32), (19, 37, 33), (8, 8, 16), (9, 5, 17), (9, 16, 17)], ids=str)
def test_results(ahead: int, size: tuple[int, int, int]) -> None:
    assert_agrees(product(ahead), **matrices(*size))


def test_results_of_vectors_and_of_what_is_computed() -> None:
    assert_agrees(product(2, factor=3, wide=True), **matrices(24, 50, 36))


def test_threads_wait_once_per_iteration() -> None:
    """Whole slices: 40/8. Without slots there are two barriers for each, one before and one behind the copies."""
    (ahead,), (plain,) = (assert_agrees(product(n), **matrices(16, 40, 32)) for n in (1, 0))
    blocks = 4
    assert ahead.barriers < plain.barriers
    assert plain.barriers - ahead.barriers == 5 * blocks


def test_slots() -> None:
    (kernel,) = kernels(product(2))
    slots = {s.buffer: s.slots for s in walk(kernel.body) if isinstance(s, Alloc) and s.slots > 1}
    assert slots == {"left": 3, "right": 3}
    waits = [int(s.value.args[0].value) for s in walk(kernel.body) if effect_of(s) is Effect.WAIT_GROUP]
    assert waits and set(waits) == {1}


def test_only_what_is_copied_is_asynchronous() -> None:
    (kernel,) = kernels(product(factor=3))
    stores = [s for s in walk(kernel.body) if isinstance(s, Store) and s.buffer in ("left", "right")]
    assert {s.buffer for s in stores if s.manner is Manner.ASYNCHRONOUS} == {"right"}
    # What is left over has memory of its own and is used at once.
    assert {s.buffer for s in stores if s.manner is not Manner.ASYNCHRONOUS} == {"left", "right"}


def test_one_barrier_in_the_loop() -> None:
    (kernel,) = kernels(product())
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.var == "sums.u1.ko"]
    assert loops and all(sum(effect_of(i) is Effect.BARRIER for i in walk(s)) == 1 for s in loops)
    assert all(s.kind is Kind.SERIAL for s in loops)


def test_what_one_thread_computes_and_uses() -> None:
    x = pt.Var("x")
    img, copied, row, out = pt.Input("img", "float32", ndim=1), *(pt.Func(n) for n in ("copied", "row", "out"))
    copied[x] = img[x]
    row[x] = copied[x] + copied[x + 1]
    out[x] = row[x] * 2
    p = pt.Pipeline(out, shape=(img.shape[0] - 1,), target="cuda-sim")
    schedule = pt.Schedule(
        pt.on("out").split("x", "xo", "xi", 8).block("xo").thread("xi"),
        pt.on("row").compute_at("out", "xo"),
        pt.on("copied").compute_at("row", "x").compute_ahead(),
    )
    for size in (33, 5):
        assert_agrees(p.with_schedule(schedule), img=np.arange(size, dtype=np.float32))


# Six elements, by vectors or written out: of four, two of them are stored twice, of two, none.
CUT = {
    "vectors": (lambda f: f.vectorize("x", 4, tail="shift"), False),
    "vectors that are apart": (lambda f: f.vectorize("x", 2), True),
    "copies": (lambda f: f.unroll("x", 4, tail="shift"), False),
    "copies of vectors": (lambda f: f.split("x", "xo", "xi", 4, tail="shift").unroll("xo").vectorize("xi"), False),
    "copies of vectors that are apart": (lambda f: f.split("x", "xo", "xi", 2).unroll("xo").vectorize("xi"), True),
    "loops": (lambda f: f.split("x", "xo", "xi", 4, tail="shift"), False),
    "loops that are apart": (lambda f: f.split("x", "xo", "xi", 2), True),
    "threads": (lambda f: f.split("x", "xo", "xi", 4, tail="shift").thread("xo").vectorize("xi"), True),
}


@pytest.mark.parametrize("kind", CUT)
def test_a_thread_copies_nothing_twice_asynchronously(kind: str) -> None:
    """Copies of one group arrive in no certain order."""
    cut, is_asynchronous = CUT[kind]
    x = pt.Var("x")
    img, copied, row, out = pt.Input("img", "float32", ndim=1), *(pt.Func(n) for n in ("copied", "row", "out"))
    copied[x] = img[x]
    row[x] = sum((copied[x + k] for k in range(1, 6)), copied[x])
    out[x] = row[x] * 2
    p = pt.Pipeline(out, shape=(img.shape[0] - 5,), target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("out").split("x", "xo", "xi", 8).block("xo").thread("xi"),
            pt.on("row").compute_at("out", "xo"),
            cut(pt.on("copied").compute_at("row", "x").compute_ahead()),
        )
    )
    manners = {s.manner for k in kernels(p) for s in walk(k.body) if isinstance(s, Store) and s.buffer == "copied"}
    assert manners == {Manner.ASYNCHRONOUS if is_asynchronous else Manner.PLAIN}
    assert_agrees(p, img=np.arange(38, dtype=np.float32))


@pytest.mark.parametrize("capability", ["sm_70", "sm_75", "sm_80", "sm_90"])
def test_code(capability: str) -> None:
    code = product(wide=True).asm(capability)
    assert ("cp.async.wait_group" in code) == ("cp.async.commit_group" in code) == (capability >= "sm_80")
    # 16 bytes where the address is known to be a multiple of it, 4 where the factor is transposed.
    widths = set(re.findall(r"cp\.async\.c[ag]\.shared\.global \[.*\], \[.*\], (\d+);", code))
    assert widths == ({"4", "16"} if capability >= "sm_80" else set())


REFUSED = {
    "at root": (lambda: pt.on("f").compute_root().compute_ahead(), "f is not computed at a serial loop"),
    "at a block": (lambda: pt.on("f").compute_at("out", "yo").compute_ahead(), "f is not computed at a serial loop"),
    "sliding": (lambda: pt.on("f").store_at("out", "yo").compute_at("out", "row").compute_ahead(), "f is stored out"),
    "registers": (lambda: pt.on("f").compute_at("out", "row").store_in("register").compute_ahead(), "do not share f"),
}


def pairs(target: str | None) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] * 2
    out[y, x] = f[y, x] + f[y + 1, x]
    return pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1]), target=target)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    host = pt.on("out").split("y", "yo", "row", 4).reorder("yo", "row", "x").block("yo").thread("x")
    stage, why = REFUSED[case]
    with pytest.raises(UserError, match=re.escape(why)):
        pairs("cuda-sim").with_schedule(pt.Schedule(host, stage()))


def test_refused_in_a_warp() -> None:
    host = pt.on("out").split("y", "yo", "row", 4).split("x", "w", "lane", 32)
    host = host.reorder("yo", "w", "row", "lane").block("yo").warp("w").lane("lane")
    ahead = pt.on("f").compute_at("out", "row").lane("x").compute_ahead()
    with pytest.raises(UserError, match="f is not computed at a serial loop between blocks and threads"):
        pairs("cuda-sim").with_schedule(pt.Schedule(host, ahead))


def test_refused_on_a_cpu() -> None:
    with pytest.raises(UserError, match="has no blocks of threads"):
        pairs(None).with_schedule(pt.Schedule(pt.on("f").compute_at("out", "y").compute_ahead()))


def test_what_is_computed_in_the_same_loop_is_not_read() -> None:
    y, x = pt.vars("y x")
    img, g, f, out = pt.Input("img", "float32", ndim=2), pt.Func("g"), pt.Func("f"), pt.Func("out")
    g[y, x] = img[y, x] * 2
    f[y, x] = g[y, x] + 1
    out[y, x] = f[y, x] + f[y + 1, x]
    p = pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1]), target="cuda-sim")
    host = pt.on("out").tile("y", "x", "yo", "xo", "row", "xi", 4, 32).block("yo", "xo").thread("xi")
    at = pt.on("f").compute_at("out", "row").thread("x").compute_ahead()
    with pytest.raises(UserError, match="f reads g, which is computed in the same loop"):
        p.with_schedule(pt.Schedule(host, at, pt.on("g").compute_at("out", "row").thread("x")))
    inlined = p.with_schedule(pt.Schedule(host, at, pt.on("g").compute_inline()))
    picture = np.random.default_rng(0).random((21, 70), dtype=np.float32)
    assert_agrees(inlined, img=picture)
    assert_agrees(
        p.with_schedule(pt.Schedule(host, at, pt.on("g").compute_at("out", "xo").thread("y", "x"))), img=picture
    )


def test_what_updates_follow_is_not_copied_asynchronously() -> None:
    """They read and change what would still be on its way."""
    y, x = pt.vars("y x")
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x]
    f[y, x] = f[y, x] * 2
    out[y, x] = f[y, x] + f[y + 1, x]
    p = pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1]), target="cuda-sim")
    host = pt.on("out").tile("y", "x", "yo", "xo", "row", "xi", 4, 32).block("yo", "xo").thread("xi")
    at = pt.on("f").compute_at("out", "row").thread("x").update().thread("x").compute_ahead()
    assert_agrees(
        p.with_schedule(pt.Schedule(host, at)), img=np.random.default_rng(0).random((21, 70), dtype=np.float32)
    )
