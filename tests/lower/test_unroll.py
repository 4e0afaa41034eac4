"""How much code unrolled loops may become, and that those which stay loops compute the same."""

from __future__ import annotations

import numpy as np

import pantile as pt
from pantile.expr.nodes import Load, const, var
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Block, For, Kind, Stmt, Store
from pantile.ir.visit import walk
from pantile.lower.size import size
from pantile.lower.unroll import unroll


def unrolled(times: int, stores: int, name: str = "u") -> Stmt:
    """A loop around so many stores."""
    x = var(name)
    body = Block(tuple(Store("g", (x + k,), Load(INT32, 1, "f", (x,))) for k in range(stores)))
    return For(name, const(0, INDEX), const(times, INDEX), Kind.UNROLL, body)


def loops(s: Stmt) -> list[Kind]:
    return [i.kind for i in walk(s) if isinstance(i, For)]


def test_a_loop_around_little_is_unrolled() -> None:
    assert not loops(unroll(unrolled(64, 8)))


def test_a_loop_around_much_runs_serially() -> None:
    found = unroll(For("v", const(0, INDEX), const(16, INDEX), Kind.UNROLL, unrolled(16, 32)))
    assert loops(found) == [Kind.SERIAL]
    assert size(found) < 16_000


def test_many_unrolled_loops_do_not_add_up_without_end() -> None:
    program = Block(tuple(unrolled(64, 16, f"u{k}") for k in range(100)))
    found = unroll(program)
    assert size(found) < 64_000 + 9 * size(program, unrolled=False)
    assert {*loops(found)} == {Kind.SERIAL}


def test_rows_of_clipped_stages_are_right_however_many_are_unrolled() -> None:
    y, x = pt.vars("y x")
    img = pt.Input("img", "int32", ndim=2)
    before = img
    stages = []
    for k in range(3):
        stage = pt.Func(f"f{k}")
        rows = [pt.select(y >= i, before[y - i, x], k) for i in range(3)]
        stage[y, x] = rows[0] + 2 * rows[1] + 3 * rows[2]
        before = stage
        stages.append(stage.name)
    p = pt.Pipeline(before, shape=img.shape)
    inner = [pt.on(name).compute_at("f2", "row").split("y", "block", "line", 3) for name in stages[:2]]
    rows = pt.on("f2").split("y", "strip", "row", 32).unroll("row")
    p = p.with_schedule(pt.Schedule(rows, *inner))
    image = np.arange(70 * 9, dtype=np.int32).reshape(70, 9)
    assert np.array_equal(p(img=image), p.reference(img=image))
    assert p.llvm().count("\n") < 40_000
