"""All that stores is in a block loop; block loops that belong together are directly inside each other."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.errors import InternalError
from pantile.expr.nodes import Const, Load, Var, const
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Block, For, If, Realize, Store
from pantile.ir.visit import children, walk
from pantile.lower.gpu.make_blocks import make_blocks
from pantile.target.kinds import Kind

from .simulated import assert_agrees, blur, kernels, loops, of_kind, picture, x, y


def serial() -> pt.Pipeline:
    return blur(pt.on("out").compute_root(), pt.on("rows").compute_root())


def test_what_no_block_loop_was_asked_for_is_one_block() -> None:
    found = of_kind(loops(serial(), "make_blocks"), Kind.BLOCK)
    assert [s.var for s in found] == ["rows.block", "out.block"]
    assert all(isinstance(s.extent, Const) and s.extent.value == 1 for s in found)
    counts = assert_agrees(serial(), img=picture(7, 9))
    assert [(c.blocks, c.threads) for c in counts] == [(1, 32), (1, 32)]


def test_memory_of_all_blocks_is_outside_of_them() -> None:
    (memory,) = [s for s in walk(loops(serial(), "make_blocks")) if isinstance(s, Realize)]
    assert memory.buffer == "rows" and len(of_kind(memory.body, Kind.BLOCK)) == 2


@pytest.mark.parametrize("memory", ["register", "stack", "shared"])
@pytest.mark.parametrize(("rows", "tail", "sizes"), [(3, "guard", [1]), (11, "peel", [2, 1])])
def test_memory_of_a_block_is_inside_of_a_block(memory: str, rows: int, tail: str, sizes: list[int]) -> None:
    """Also where the block loop has one iteration, or where it is the rest of a split, and it is no loop any more."""
    img, f, out = pt.Input("img", "float32", ndim=1), pt.Func("f"), pt.Func("out")
    f[y] = img[y] * 2.0
    out[y] = f[y] + 1.0
    tiles, kept = pt.on("out").split("y", "yo", "yi", min(rows, 4), tail=tail).block("yo"), pt.on("f").store_in(memory)
    if tail == "guard":
        tiles, kept = tiles.thread("yi"), kept.thread("y")
    p = pt.Pipeline(out, shape=(rows,), target="cuda-sim")
    p = p.with_schedule(pt.Schedule(tiles, kept.compute_at("out", "yo")))
    body = loops(p, "make_blocks")
    inside = {id(i) for s in of_kind(body, Kind.BLOCK) for i in walk(s)}
    assert all(id(s) in inside for s in walk(body) if isinstance(s, Realize))
    assert [c.blocks for c in assert_agrees(p, img=picture(rows))] == sizes


def test_all_stores_are_in_block_loops() -> None:
    tiles = pt.on("out").split("y", "yo", "yi", 8).block("yo")
    for p in (serial(), blur(), blur(tiles, pt.on("rows").compute_root())):
        body = loops(p, "make_blocks")
        inside = {id(i) for s in of_kind(body, Kind.BLOCK) for i in walk(s)}
        assert all(id(s) in inside for s in walk(body) if isinstance(s, Store))


def test_serial_loops_around_blocks_stay_on_the_host() -> None:
    p = blur(pt.on("out").split("x", "xo", "xi", 8).reorder("y", "xo", "xi").block("xo").thread("xi"))
    counts = assert_agrees(p, img=picture(6, 40))
    assert [c.blocks for c in counts[-4:]] == [5] * 4, "a launch for each row"


def test_a_rest_is_on_its_own() -> None:
    """An update splits by a loop for whole parts and one for the rest: each a kernel, and blocks directly inside."""
    img, f = pt.Input("img", "float32", ndim=2), pt.Func("f")
    f[y, x] = 0.0
    f[y, x] += img[y, x]
    schedule = pt.on("f").update(0).tile("y", "x", "yo", "xo", "yi", "xi", 4, 8).block("yo", "xo").thread("yi", "xi")
    p = pt.Pipeline(f, shape=img.shape, target="cuda-sim").with_schedule(pt.Schedule(schedule))
    for s in of_kind(loops(p, "make_blocks"), Kind.BLOCK):
        inner = of_kind(s.body, Kind.BLOCK)
        assert not inner or _leads_to(s, inner[0])
    for shape in ((1, 1), (4, 8), (9, 21), (3, 30)):
        assert_agrees(p, img=picture(*shape))


def _leads_to(s: For, inner: For) -> bool:
    at = s.body
    while at is not inner:
        if len(children(at)) != 1:
            return False
        (at,) = children(at)
    return True


def test_a_scan_runs_row_by_row_in_threads() -> None:
    img, f = pt.Input("img", "float32", ndim=2), pt.Func("f")
    r = pt.RDom((1, img.shape[0] - 1))
    f[y, x] = img[y, x]
    f[r[0], x] += f[r[0] - 1, x]
    p = pt.Pipeline(f, shape=img.shape, target="cuda-sim", strict=True)
    found = p(img=picture(9, 300))
    np.testing.assert_allclose(found, np.cumsum(picture(9, 300), axis=0), rtol=1e-5)
    assert len(kernels(p)) == 2


@pytest.mark.parametrize("is_serial", [False, True])
def test_a_condition_on_data_is_asked_by_the_blocks(is_serial: bool) -> None:
    """Which blocks there are is decided before any of them runs; the data may be computed by another one."""
    img, limit, f = pt.Input("img", "float32", ndim=1), pt.Func("limit"), pt.Func("f")
    r = pt.RDom((1, 1))
    limit[x] = img[x] > 0.5
    f[x] = img[x]
    f[x] += pt.select(limit[0], 1.0, 2.0)
    f[x] += r.where(pt.cast("int32", 9 * img[1]) >= r[0])[0] + img[x]
    own = [pt.on("f").compute_root()] if is_serial else []
    p = pt.Pipeline(f, target="cuda-sim").with_schedule(pt.Schedule(pt.on("limit").compute_root(), *own))
    assert_agrees(p, img=picture(300))


def test_a_condition_that_its_own_branch_changes_is_not_asked_again() -> None:
    """No pass makes such a thing; one that did would be found here."""
    zero, flag = const(0, INDEX), Load(INT32, 1, "flag", (const(0, INDEX),)) > 0
    change = For("b", zero, const(4, INDEX), Kind.BLOCK, Store("flag", (zero,), const(0, INT32)))
    use = For("b", zero, const(4, INDEX), Kind.BLOCK, Store("f", (Var(INDEX, 1, "b"),), const(1, INT32)))
    assert len(of_kind(make_blocks(If(flag, Block((use, use)))), Kind.BLOCK)) == 2
    with pytest.raises(InternalError, match="a condition around block loops depends on what they store"):
        make_blocks(If(flag, Block((change, use))))
