"""Blocks that differ in nothing but where they begin have one version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.compile import to_kernels, to_llvm, to_loops, trace_of
from pantile.ir.nodes import For, If, Program
from pantile.ir.visit import walk
from pantile.lower.passes import Trace
from pantile.target.kinds import Kind
from pantile.variant import Variant

from .simulated import assert_agrees, blur, picture


def product(target: str) -> pt.Pipeline:
    app = APPS["matmul"]
    assert app.on_gpu is not None
    return app.build().with_options(target=target).with_schedule(app.on_gpu())


def lowered(p: pt.Pipeline, change: Callable[[Variant], Variant] = lambda v: v) -> Program:
    s = p._calls.general
    return to_loops(s._resolved, s._plan, change(s.variants.usual), s.options, Trace())


def decisions(program: Program) -> int:
    return sum(isinstance(s, If) and s.otherwise is not None for s in walk(program.body))


def test_the_last_block_is_moved_inwards_in_the_same_version() -> None:
    assert decisions(lowered(product("sm_90"))) == 0


def test_rows_of_any_length_have_a_version_for_blocks_inside_whose_accesses_are_long() -> None:
    assert decisions(lowered(product("sm_90"), lambda v: replace(v, multiples=()))) == 1


def test_accesses_of_the_one_version_are_as_long() -> None:
    p = product("sm_90")
    options, trace = p._calls.general.options, trace_of(p._calls.general.options)
    text = to_llvm(to_kernels(lowered(p), options, trace), options, trace)
    stores = [line for line in text.splitlines() if "store float" in line]
    assert "cp.async.cg.shared.global.16" in text and "align 16" in stores[-16]


def sums(target: str) -> pt.Pipeline:
    """Of rows, four numbers at a time and the others one by one."""
    y, r = pt.Var("y"), pt.RDom((0, (a := pt.Input("a", "float32", ndim=2)).shape[1]), name="r", names="k")
    total = pt.Func("total")
    total[y] = 0.0
    total[y] += a[y, r.k]
    s = pt.on("total").update().split("r.k", "four", "one", 4, tail="peel").block("y").unroll("one")
    return pt.Pipeline(total, shape=(a.shape[0],), target=target).with_schedule(pt.Schedule(s))


def test_nothing_is_left_over_of_rows_of_longest_accesses() -> None:
    def loops(program: Program) -> int:
        return sum(isinstance(s, For) and s.kind is Kind.SERIAL for s in walk(program.body))

    any_length = lowered(sums("sm_90"), lambda v: replace(v, multiples=()))
    assert loops(lowered(sums("sm_90"))) == loops(any_length) - 1


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 8])
def test_sums_of_rows_of_any_length(columns: int) -> None:
    assert_agrees(sums("cuda-sim"), a=np.random.default_rng(6).random((3, columns), dtype=np.float32))


@pytest.mark.parametrize("shape", [(65, 9, 516), (66, 8, 514), (64, 17, 512)])
def test_sizes_around_those_of_blocks(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    rng = np.random.default_rng(5)
    a, b = (rng.random(s, dtype=np.float32) for s in ((rows, inner), (inner, columns)))
    assert_agrees(product("cuda-sim"), a=a, b=b)


def tiles(rows: pt.StageSchedule) -> pt.Pipeline:
    """A blur in blocks of 8 by 32 pixels, with a tile of its rows."""
    out = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")
    return blur(out, rows)


def test_tiles_in_shared_memory_are_moved_with_their_block() -> None:
    p = tiles(pt.on("rows").compute_at("out", "xo").thread("y", "x"))
    assert decisions(lowered(p)) == 0
    for shape in ((8 + 2, 32 + 2), (21, 75), (8 + 3, 32 + 3)):
        assert_agrees(p, img=picture(*shape))


def test_registers_that_slide_down_are_moved_with_their_block() -> None:
    out = pt.on("out").tile("y", "x", "yo", "xo", "row", "xi", 4, 32).reorder("yo", "xo", "xi", "row")
    rows = pt.on("rows").store_at("out", "xi").compute_at("out", "row").store_in("register")
    p = blur(out.block("yo", "xo").thread("xi").unroll("row"), rows)
    assert decisions(lowered(p)) == 0
    assert_agrees(p, img=picture(21, 75))


def striped(unit: int) -> pt.Pipeline:
    """Rows that differ by their parity, in blocks of 8; as many of them as are a multiple of something."""
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[y, x] = pt.select(y % 2 == 0, img[y, x], 1 - img[y, x])
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "row", "xi", 8, 32).reorder("yo", "xo", "xi", "row")
    schedule = pt.Schedule(tiles.block("yo", "xo").thread("xi").unroll("row"))
    shape = (img.shape[0] // unit * unit, img.shape[1])
    return pt.Pipeline(out, shape=shape, target="cuda-sim").with_schedule(schedule)


@pytest.mark.parametrize(("unit", "versions"), [(1, 2), (2, 1), (8, 1)])
def test_remainders_of_rows_are_known_in_both_versions_or_in_one(unit: int, versions: int) -> None:
    p = striped(unit)
    assert decisions(lowered(p)) == versions - 1
    assert_agrees(p, img=picture(21, 75))
