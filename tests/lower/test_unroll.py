"""How much code unrolled loops may become, and that those which stay loops compute the same."""

from __future__ import annotations

import os
import re
import warnings

import numpy as np
import pytest

import pantile as pt
from pantile.expr.build import ramp
from pantile.expr.nodes import Load, const, var
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Block, For, Stmt, Store
from pantile.ir.visit import walk
from pantile.lower.size import size
from pantile.lower.unroll import unroll
from pantile.schedule.directives import StageSchedule
from pantile.schedule.refuse import warn_smaller
from pantile.target.kinds import Kind


def unrolled(times: int, stores: int, name: str = "u") -> Stmt:
    """A loop around so many stores."""
    x = var(name)
    body = Block(tuple(Store("g", (x + k,), Load(INT32, 1, "f", (x,))) for k in range(stores)))
    return For(name, const(0, INDEX), const(times, INDEX), Kind.UNROLL, body)


def loops(s: Stmt) -> list[Kind]:
    return [i.kind for i in walk(s) if isinstance(i, For)]


def test_a_loop_around_little_is_unrolled() -> None:
    assert not loops(unroll(unrolled(64, 8)))


def test_wide_vectors_count_where_there_are_none() -> None:
    """LLVM writes out each lane for a GPU."""
    lanes = ramp(var("v"), 1, 64)
    vector = Store("g", (lanes,), Load(INT32, 64, "f", (lanes,)))
    loop = For("v", const(0, INDEX), const(512, INDEX), Kind.UNROLL, vector)
    assert not loops(unroll(loop))
    assert loops(unroll(loop, widest=4)) == [Kind.SERIAL]


def test_a_loop_around_much_runs_serially() -> None:
    found = unroll(For("v", const(0, INDEX), const(16, INDEX), Kind.UNROLL, unrolled(16, 32)))
    assert loops(found) == [Kind.SERIAL]
    assert size(found) < 16_000


def test_many_unrolled_loops_do_not_add_up_without_end() -> None:
    program = Block(tuple(unrolled(64, 16, f"u{k}") for k in range(100)))
    found = unroll(program)
    assert size(found) < 64_000 + 9 * size(program, unrolled=False)
    assert {*loops(found)} == {Kind.SERIAL}


def rows_of_clipped_stages(rows: int) -> pt.Pipeline:
    """So many rows at a time of a stage that others are computed in each row of."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "int32", ndim=2)
    before = img
    stages = []
    for k in range(3):
        stage = pt.Func(f"f{k}")
        above = [pt.select(y >= i, before[y - i, x], k) for i in range(3)]
        stage[y, x] = above[0] + 2 * above[1] + 3 * above[2]
        before = stage
        stages.append(stage.name)
    p = pt.Pipeline(before, shape=img.shape)
    inner = [pt.on(name).compute_at("f2", "row").split("y", "block", "line", 3) for name in stages[:2]]
    return p.with_schedule(pt.Schedule(pt.on("f2").split("y", "strip", "row", rows).unroll("row"), *inner))


def test_rows_of_clipped_stages_are_right_however_many_are_unrolled() -> None:
    p = rows_of_clipped_stages(32)
    image = np.arange(70 * 9, dtype=np.int32).reshape(70, 9)
    assert np.array_equal(p(img=image), p.reference(img=image))
    assert p.llvm().count("\n") < 40_000


def test_clipped_blocks_side_by_side_need_no_more_than_there_is() -> None:
    y, x, img, f, g = pt.Var("y"), pt.Var("x"), pt.Input("img", "int32", 2), pt.Func("f"), pt.Func("g")
    f[y, x] = img[y, x] + 1
    g[y, x] = f[y, x] * 2
    blocks = pt.on("g").split("y", "block", "row", 4, tail="guard").unroll("block", 2)
    p = pt.Pipeline(g).with_schedule(pt.Schedule(blocks, pt.on("f").compute_at("g", "block"))).with_options(debug=True)
    image = np.arange(15 * 9, dtype=np.int32).reshape(15, 9)
    assert np.array_equal(p(img=image), p.reference(img=image))


def test_a_loop_that_is_not_unrolled_as_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", os.devnull)
    p = rows_of_clipped_stages(128)
    image = np.arange(270 * 9, dtype=np.int32).reshape(270, 9)
    told = r'pt.on\("f2"\).unroll\("row"\): that would be too much code to compile, so loop row stays a loop; unroll it'
    with pytest.warns(RuntimeWarning, match=told) as warned:
        found = p(img=image)
    assert [w.filename for w in warned] == [__file__]
    assert np.array_equal(found, p.reference(img=image))


@pytest.mark.parametrize(("schedule", "verb", "loop", "definition", "told"), [
    (pt.on("f").partition("x", "always"), "partition", "x", 0, r"partition\(.*, so loop x stays whole; leave it out"),
    (pt.on("f").partition("x", "auto"), "partition", "x", 0, None),
    (pt.on("f").unroll("x", 4), "unroll", "x_u", 0, r'unroll\("x", 4\): .* so loop x_u stays a loop'),
    (pt.on("f").unroll("x", 4), "unroll", "x_u", 1, None),
    (pt.on("f").update().unroll("x"), "unroll", "x", 1, r'unroll\("x"\): '),
    (pt.on("f").update().pure().unroll("x"), "unroll", "x", 1, None),
])  # fmt: skip
def test_the_directive_that_asks_for_too_much(
    schedule: StageSchedule, verb: str, loop: str, definition: int, told: str | None
) -> None:
    x, f = pt.Var("x"), pt.Func("f")
    f[x] = x
    stage = pt.Pipeline(f, shape=(3,)).graph.stages[0]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warn_smaller(stage, schedule, definition, loop, verb)
    assert len(warned) == (told is not None)
    assert told is None or re.search(told, str(warned[0].message))
