"""Places in registers of threads are numbers, wherever a block is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Const
from pantile.expr.visit import walk_loads
from pantile.ir.nodes import Store
from pantile.ir.visit import all_loads, walk

from .simulated import assert_agrees, blur, loops, picture, realized, sizes, x, y

ROWS = (
    pt.on("out")
    .tile("y", "x", "yo", "xo", "yi", "xi", 32, 32)
    .split("yi", "ty", "row", 8)
    .reorder("yo", "xo", "ty", "xi", "row")
    .block("yo", "xo")
    .thread("ty", "xi")
    .unroll("row")
)


@pytest.mark.parametrize("clamped", [False, True])
def test_registers_are_numbered(clamped: bool) -> None:
    p = blur(ROWS, pt.on("rows").compute_at("out", "xi").unroll("y"), clamped=clamped)
    made = loops(p, "distribute_registers")
    assert all(sizes(r) == [10, 1] for r in realized(made, "rows"))
    accesses = [e.indices for e in all_loads(made) if e.buffer == "rows"]
    accesses += [s.indices for s in walk(made) if isinstance(s, Store) and s.buffer == "rows"]
    assert accesses and all(isinstance(i, Const) for indices in accesses for i in indices)
    assert not re.search(r"\.local", p.asm("sm_80"))
    assert_agrees(p, img=picture(50, 70))


def test_rows_that_slide_along_unrolled_ones() -> None:
    p = blur(ROWS, pt.on("rows").store_at("out", "xi").compute_at("out", "row"))
    assert all(sizes(r) == [3, 1] for r in realized(loops(p, "distribute_registers"), "rows"))
    assert not re.search(r"\.local", p.asm("sm_80"))
    for size in ((50, 70), (34, 34), (33, 40), (9, 5), (3, 3)):
        assert_agrees(p, img=picture(*size))


def test_rows_of_a_serial_loop_are_not_numbers() -> None:
    serial = ROWS.directives[:-1]
    p = blur(pt.schedule.StageSchedule("out", serial), pt.on("rows").compute_at("out", "xi"))
    made = loops(p, "distribute_registers")
    (first, *_) = [e for s in walk(made) for e in walk_loads(*(s.indices if isinstance(s, Store) else ()))] or [None]
    assert first is None and any(not isinstance(e.indices[0], Const) for e in all_loads(made) if e.buffer == "rows")
    assert_agrees(p, img=picture(50, 70))


def test_a_stage_that_is_in_registers_in_one_place_is_in_memory_in_another() -> None:
    """The update computes its own part of e in each thread; what the pure definition needs, which a param decides, all
    threads have. Only the places of the former are counted from where it begins."""
    x, img, k = pt.Var("x"), pt.Input("img", "int32", ndim=1), pt.Param("k", "bool")
    e, m = pt.Func("e"), pt.Func("m")
    e[x] = pt.edge(img)[x]
    m[x] = e[x - 1] + e[pt.within(pt.cast("int16", k) & 3, 0, 3)]
    m[x] = m[x] * 100 + e[x + 2]
    p = pt.Pipeline(m, shape=(1,), target="cuda-sim").with_schedule(pt.Schedule(pt.on("e").compute_at("m", "x_thread")))
    assert p(img=np.arange(5, 12, dtype=np.int32), k=True) == [(5 + 6) * 100 + 7]


def test_a_copy_of_an_input_in_registers_of_the_blocks_of_a_clone() -> None:
    """Neither is a stage of the pipeline as it was written."""
    img, f, out = pt.Input("img", "int32", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] + img[y + 1, x]
    out[y, x] = f[y, x] // 3
    p = pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1]), target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("f").clone_in("out", "clone"),
            pt.on("clone").compute_root().split("y", "yo", "yi", 4).reorder("yo", "x", "yi").block("yo").thread("yi"),
            pt.on("img").copy_in("clone", "near", "ny", "nx"),
            pt.on("near").compute_at("clone", "yo").thread("ny", "nx").store_in("register"),
        )
    )
    with pytest.raises(pt.UserError, match=r"the region of near that is kept has no constant size"):
        p(img=np.zeros((13, 5), np.int32))
