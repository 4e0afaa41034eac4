"""Memory of blocks and threads: constant sizes and strides, and one place for what does not live at the same time."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.expr.nodes import Const
from pantile.expr.visit import names
from pantile.ir.nodes import Alloc, Stmt, Store
from pantile.ir.visit import all_loads, walk
from pantile.target.gpu import MOST_SHARED
from pantile.target.kinds import Memory

from .simulated import assert_agrees, blur, kernels, loops, picture, x, y

TILES = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")


def allocated(s: Stmt) -> dict[str, tuple[Memory, int, int | None]]:
    """Buffer -> its memory, elements and offset in bytes, the same wherever it is made."""
    found = {}
    for a in (i for i in walk(s) if isinstance(i, Alloc) and i.memory is not Memory.HEAP):
        assert isinstance(a.size, Const)
        place = a.memory, int(a.size.value), None if a.offset is None else int(a.offset.value)
        assert found.setdefault(a.buffer, place) == place
    return found


def test_constant_sizes_and_strides() -> None:
    p = blur(TILES, pt.on("rows").compute_at("out", "xo").thread("y", "x"))
    (kernel,) = kernels(p)
    assert allocated(kernel.body) == {"rows": (Memory.SHARED, 10 * 32, 0)}
    assert kernel.shared == 10 * 32 * 4
    places = [i for s in walk(kernel.body) if isinstance(s, Store) and s.buffer == "rows" for i in s.indices]
    places += [i for e in all_loads(kernel.body) if e.buffer == "rows" for i in e.indices]
    assert places and not any("stride" in n for i in places for n in names(i))


def test_it_is_as_small_for_clipped_blocks() -> None:
    p = blur(TILES, pt.on("rows").compute_at("out", "xo").thread("y", "x"))
    assert allocated(loops(p, "flatten", large=False))["rows"][1] <= 10 * 32


def test_a_thread_keeps_its_own() -> None:
    p = blur(TILES, pt.on("rows").compute_at("out", "xi"))
    (kernel,) = kernels(p)
    assert allocated(kernel.body) == {"rows": (Memory.REGISTER, 3, None)} and kernel.shared == 0
    assert_agrees(p, img=picture(30, 70))


def of_four() -> pt.Pipeline:
    """b and d both read what is computed before them, and nothing else lives meanwhile."""
    img = pt.Input("img", "float32", ndim=2)
    a, b, c, out = (pt.Func(n) for n in ("a", "b", "c", "out"))
    a[y, x] = img[y, x] + 1.0
    b[y, x] = a[y, x] + a[y, x + 1]
    c[y, x] = b[y, x] + b[y, x + 1]
    out[y, x] = c[y, x] + c[y + 1, x]
    inner = [pt.on(n).compute_at("out", "xo").thread("y", "x") for n in ("a", "b", "c")]
    p = pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1] - 2), target="cuda-sim")
    return p.with_schedule(pt.Schedule(TILES, *inner))


def test_lifetimes_that_overlap_have_places_apart() -> None:
    (kernel,) = kernels(of_four())
    found = sorted((at, at + size * 4) for _, size, at in allocated(kernel.body).values() if at is not None)
    assert len(found) == 3
    assert kernel.shared >= max(end for _, end in found)
    assert_agrees(of_four(), img=picture(30, 70))


def test_lifetimes_that_do_not_share_a_place() -> None:
    """Two stages, each read by one update alone."""
    img, f, g, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[y, x] = img[y, x] + 1.0
    g[y, x] = img[y, x] * 2.0
    out[y, x] = f[y, x] + f[y, x + 1]
    out[y, x] += g[y, x] + g[y, x + 1]
    update = TILES.update(0).tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")
    inner = [pt.on(n).compute_at("out", "xo").thread("y", "x") for n in ("f", "g")]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1), target="cuda-sim")
    p = p.with_schedule(pt.Schedule(update, *inner))
    assert_agrees(p, img=picture(30, 70))
    for kernel in kernels(p):
        ((_, size, at),) = allocated(kernel.body).values()
        assert (size, at) == (8 * 33, 0)
        assert 4 * size <= kernel.shared < 8 * size


def test_a_size_that_nobody_knows() -> None:
    p = blur(pt.on("out").block("y").thread("x"), pt.on("rows").compute_at("out", "y").thread("x"))
    text = (
        r'pt.on\("rows"\): the region of rows that is kept has no constant size there; compute and store it inside a '
        "split loop, or compute it at root"
    )
    with pytest.raises(pt.errors.UserError, match=text):
        p(img=picture(9, 9))


def test_a_size_of_what_lanes_exchange_that_nobody_knows() -> None:
    """Lowering has made memory for the columns that other lanes have computed."""
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] * 2
    out[y, x] = rows[0, x] + rows[y, x + 1]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1), target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("out").split("x", "xo", "lane", 30).split("xo", "xo", "w", 4).block("y", "xo").warp("w").lane("lane"),
            pt.on("rows").compute_at("out", "w").lane("x"),
        )
    )
    with pytest.raises(UserError, match=r'pt.on\("rows"\): the region of rows that is kept has no constant size there'):
        p(img=picture(9, 9))


def test_a_size_that_only_data_limits() -> None:
    """The condition says that a thread needs no more values than its param, which may be any number."""
    k, img, f, out = pt.Param("k", "int64"), pt.Input("img", "float32", ndim=1), pt.Func("f"), pt.Func("out")
    r = pt.RDom((0, 4))
    f[x] = pt.select(x <= k, x, img[x])
    f[r[0]] = f[r[0]] + 1
    out[x] = f[x]
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(
        pt.Schedule(pt.on("out").split("x", "xo", "xi", 8).block("xo").thread("xi"), pt.on("f").compute_at("out", "xi"))
    )
    with pytest.raises(UserError, match=r'pt.on\("f"\): the region of f that is kept has no constant size there'):
        p(img=picture(20), k=2)


def test_more_than_a_thread_has_is_refused() -> None:
    img, f, out = pt.Input("img", "float32", ndim=1), pt.Func("f"), pt.Func("out")
    f[x] = img[x] * 2
    out[x] = f[x] + f[x + 100_000]
    p = pt.Pipeline(out, shape=(img.shape[0] - 100_000,), target="cuda-sim").with_schedule(
        pt.Schedule(pt.on("out").split("x", "xo", "xi", 8).block("xo").thread("xi"), pt.on("f").compute_at("out", "xi"))
    )
    text = (
        r'pt.on\("f"\): 400004 bytes of f would be on the stack, with 0 of other buffers, and there is room for '
        "262144; compute it in smaller blocks, or compute it outside of threads"
    )
    with pytest.raises(UserError, match=text):
        p.loops()


def test_an_input_that_is_copied_into_the_block() -> None:
    staged = pt.on("img").copy_in("rows", "near", "u", "v")
    p = blur(
        TILES,
        pt.on("rows").compute_at("out", "xi"),
        staged,
        pt.on("near").compute_at("out", "xo").thread("u", "v").store_in("shared"),
    )
    (kernel,) = kernels(p)
    assert allocated(kernel.body)["near"] == (Memory.SHARED, 10 * 34, 0)
    assert_agrees(p, img=picture(30, 70))
    np.testing.assert_array_equal(p(img=np.ones((5, 5), np.float32)), np.full((3, 3), 9.0))


def test_more_than_a_block_has_is_refused() -> None:
    y, x = pt.vars("y x")
    img, near, out = pt.Input("img", "float32", ndim=2), pt.Func("near"), pt.Func("out")
    near[y, x] = img[y, x] * 2
    out[y, x] = near[y, x] + near[y, x + 1]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1), target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 256, 256).block("yo", "xo").thread("xi"),
            pt.on("near").compute_at("out", "xo").store_in("shared").thread("x"),
        )
    )
    text = (
        "the block that computes near would need 263,168 bytes of memory that its threads share; a GPU has 232,448 at "
        "most: cut its tiles smaller, or compute at root what is kept there"
    )
    with pytest.raises(UserError, match=text):
        p.loops()


def test_rows_of_clamped_lanes_that_do_not_fit_beside_a_stage_are_refused() -> None:
    """Lowering has made them for `out`, while `near` takes all that a block has."""
    img, near, out = pt.Input("img", "float32", ndim=2), pt.Func("near"), pt.Func("out")
    clamped = pt.edge(img)
    near[y, x] = img[y, x] * 2
    out[y, x] = sum((clamped[y, x + k] for k in range(-4, 5)), near[y, x])
    p = pt.Pipeline(out, shape=img.shape, target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("out")
            .tile("y", "x", "yo", "xo", "yi", "xi", MOST_SHARED // 64, 16)
            .block("yo", "xo")
            .vectorize("xi"),
            pt.on("near").compute_at("out", "xo").thread("y", "x"),
            pt.on("img_edge").compute_inline(),
        )
    )
    with pytest.raises(UserError, match="the block that computes out would need"):
        loops(p, "flatten")
