"""Walking, rewriting and printing statements."""

from __future__ import annotations

import re

from pantile.expr.nodes import Load, const, var
from pantile.expr.types import INDEX, INT32, UINT8
from pantile.expr.visit import names, substitute
from pantile.ir.nodes import (
    Alloc,
    Block,
    BufferArg,
    CapturedBuffer,
    For,
    If,
    Kernel,
    Launch,
    Let,
    Prefetch,
    Produce,
    Program,
    Realize,
    ScalarArg,
    Stmt,
    Store,
)
from pantile.ir.show import show, show_program
from pantile.ir.visit import block, expressions, map_exprs, transform, walk, walk_program
from pantile.target.kinds import Kind, Memory

x, y, h = var("x"), var("y"), var("h")
ZERO = const(0, INDEX)
STORE = Store("f", (y, x), Load(UINT8, 1, "img", (y, x + 1)), x < h)
EVERYTHING = Produce("f", For("y", ZERO, h, Kind.PARALLEL, Realize("g", UINT8, ((ZERO, h), (y, h)), Memory.AUTO, Let(
    "t", y + 1, For("x", y, h, Kind.SERIAL, If(x < h, Block((STORE, Prefetch("img", (y, x)))), Alloc(
        "s", INT32, h, Memory.SCRATCH, ZERO, STORE))))), h))  # fmt: skip

TEXT = """\
produce f:
    parallel for y in 0..h:  # h bytes of scratch each
        realize g: uint8[0..h, y..y + h]
        let t = y + 1
        for x in y..y + h:
            if x < h:
                f[y, x] = img[y, x + 1] if x < h
                prefetch img[y, x]
            else:
                alloc s: int32[h] in scratch at byte 0
                f[y, x] = img[y, x + 1] if x < h"""


def test_show() -> None:
    assert show(EVERYTHING) == TEXT


def test_show_blocks() -> None:
    blocks = [For("y", ZERO, h, Kind.BLOCK, STORE, const(n, INDEX), 256) for n in (0, 1280)]
    head = "block for y in 0..h:  # 256 threads each"
    assert [show(s).splitlines()[0] for s in blocks] == [head, f"{head}, 1280 bytes shared"]


def test_show_program() -> None:
    p = Program("k", (BufferArg("img", UINT8, 2, False, (None, 1)),), (ScalarArg("gain", INT32),), STORE)
    assert show_program(p).splitlines()[0] == "kernel k(img: uint8[:, dense], gain: int32):"


LAUNCHING = Kernel("y.0", "y", ZERO, (h,), (), Block((Launch("x.1", (y, x), ("f",), h, h), STORE)))
LAUNCHED = Kernel("x.1", "x", var("x.begin"), (y, var("x.begin")), (CapturedBuffer("f", UINT8),), STORE)
HOST = Launch("y.0", (h,), (), h)
OUTLINED = Program("k", (), (), Block((HOST, HOST, STORE)), (LAUNCHED, LAUNCHING))


def test_show_kernels() -> None:
    assert show_program(OUTLINED).splitlines() == [
        "host k():",
        "    launch y.0(h) h times",
        "    launch y.0(h) h times",
        f"    {show(STORE)}",
        "",
        "kernel x.1(y: index, x.begin: index, f: uint8[]) for x from x.begin:",
        f"    {show(STORE)}",
        "",
        "kernel y.0(h: index) for y from 0:",
        "    launch x.1(y, x, f) h times  # h bytes of scratch each",
        f"    {show(STORE)}",
    ]


def test_a_program_is_walked_with_each_kernel_where_it_is_first_launched() -> None:
    found = [s.kernel for s in walk_program(OUTLINED) if isinstance(s, Launch)]
    assert found == ["y.0", "x.1", "y.0"]
    assert [type(s).__name__ for s in walk_program(OUTLINED)] == [
        "Block", "Launch", "Block", "Launch", "Store", "Store", "Launch", "Store",
    ]  # fmt: skip


def test_launches_are_rebuilt_with_other_arguments() -> None:
    renamed = map_exprs(LAUNCHING.body, lambda e: substitute(e, {"h": var("height"), "x": y}))
    assert "launch x.1(y, y, f) height times  # height bytes of scratch each" in show(renamed)


def test_nothing_changed_is_the_same_object() -> None:
    assert map_exprs(EVERYTHING, lambda e: e) is EVERYTHING
    assert transform(EVERYTHING, lambda s: None) is EVERYTHING


def test_map_exprs_reaches_every_expression() -> None:
    renamed = map_exprs(EVERYTHING, lambda e: substitute(e, {"h": var("height")}))
    assert show(renamed) == re.sub(r"\bh\b", "height", TEXT)
    assert not any("h" in names(e) for s in walk(renamed) for e in expressions(s))


def test_transform_goes_from_the_inside_out() -> None:
    seen: list[str] = []

    def note(s: Stmt) -> Stmt | None:
        seen.append(type(s).__name__)
        return None

    transform(EVERYTHING, note)
    assert (
        seen[0] == "Store"
        and seen[-1] == "Produce"
        and sorted(seen) == sorted(type(s).__name__ for s in walk(EVERYTHING))
    )


def test_block_is_flat() -> None:
    joined = block(STORE, Block((STORE, STORE)))
    assert isinstance(joined, Block) and len(joined.stmts) == 3
    assert block(STORE) is STORE
