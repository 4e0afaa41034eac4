"""Clamps are decided once per block: blocks inside of the picture have none."""

from __future__ import annotations

import pytest

import pantile as pt
from pantile.expr.nodes import Load, Op
from pantile.expr.visit import walk as walk_expressions
from pantile.ir.nodes import Stmt
from pantile.target.kinds import Kind

from ..lowered import all_expressions
from .simulated import assert_agrees, blur, branches, kernels, loops, of_kind, picture, x, y

TILES = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")


def one_kernel(*more: pt.schedule.StageSchedule) -> pt.Pipeline:
    return blur(TILES, *(more or (pt.on("rows").compute_at("out", "xo").thread("y", "x"),)), clamped=True)


def clamps(s: Stmt) -> int:
    """Minima and maxima in places that are read."""
    loads = [e for e in all_expressions(s) if isinstance(e, Load) and e.buffer == "img"]
    return sum(isinstance(n, Op) and n.op in ("min", "max") for e in loads for n in walk_expressions(*e.indices))


def test_one_decision_for_each_block() -> None:
    body = loops(one_kernel(), "partition_blocks")
    (inner,) = of_kind(of_kind(body, Kind.BLOCK)[0].body, Kind.BLOCK)
    (decision,) = branches(inner)
    assert clamps(decision.then) == 0
    assert decision.otherwise is not None and clamps(decision.otherwise) > 0


def test_the_decision_is_the_same_for_all_threads() -> None:
    """It stands outside of thread loops, in the kernel too."""
    (kernel,) = kernels(one_kernel())
    inside = {id(i) for s in of_kind(kernel.body, Kind.THREAD) for i in branches(s)}
    assert any(id(i) not in inside for i in branches(kernel.body))


def test_nothing_is_decided_for_loops_that_shall_not() -> None:
    never = TILES.partition("yo", "never").partition("xo", "never")
    p = blur(never, pt.on("rows").compute_at("out", "xo").thread("y", "x"), clamped=True)
    assert not branches(loops(p, "partition_blocks"))
    assert_agrees(p, img=picture(20, 70))


def test_where_a_block_begins_is_no_reason_for_two_versions() -> None:
    """It is a minimum, computed once per block either way."""
    p = blur(TILES, pt.on("rows").compute_inline())
    assert not branches(loops(p, "partition_blocks"))
    assert_agrees(p, img=picture(22, 71))


def test_but_for_threads_that_have_several_elements_side_by_side() -> None:
    wide = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 128).split("xi", "xi", "own", 4)
    p = blur(wide.vectorize("own").block("yo", "xo").thread("yi", "xi"), pt.on("rows").compute_inline())
    assert len(branches(loops(p, "partition_blocks"))) == 1
    assert_agrees(p, img=picture(22, 171))


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 31), (8, 32), (9, 33), (16, 64), (25, 100), (1, 97), (41, 1)])
def test_sizes_smaller_and_larger_than_blocks(shape: tuple[int, int]) -> None:
    assert_agrees(one_kernel(), img=picture(*shape))
    assert_agrees(one_kernel(pt.on("rows").compute_at("out", "xi")), img=picture(*shape))
    assert_agrees(blur(clamped=True), img=picture(*shape))


@pytest.mark.parametrize("shape", [(9, 6, 70), (9, 1, 3), (2, 4, 33)])
def test_what_is_left_over_of_a_block_loop_goes_through_blocks(shape: tuple[int, int, int]) -> None:
    """Planes are peeled, with blocks of columns inside of them: each block decides for itself."""
    img, out, c = pt.Input("img", "float32", ndim=3), pt.Func("out"), pt.Var("c")
    out[y, c, x] = pt.edge(img)[y - 2, c, x]
    rest = pt.on("out").split("c", "co", "ci", 4, tail="peel").split("x", "xo", "xi", 32)
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(
        pt.Schedule(rest.reorder("y", "co", "ci", "xo", "xi").block("y", "co", "ci", "xo").thread("xi"))
    )
    assert_agrees(p, img=picture(*shape))
