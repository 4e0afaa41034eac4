"""The verifier accepts what is right and names what is wrong."""

from __future__ import annotations

import pytest

from pantile.errors import InternalError
from pantile.expr.build import ramp
from pantile.expr.nodes import Broadcast, Const, Expr, Load, Op, Ramp, Shuffle, Var, const, op, var
from pantile.expr.types import BOOL, FLOAT32, INDEX, INT32, UINT8
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
    Program,
    Realize,
    Stmt,
    Store,
)
from pantile.ir.verify import verify
from pantile.target.kinds import Kind, Memory

x = var("x")
ZERO = const(0, INDEX)
EIGHT = const(8, INDEX)
ONE_BYTE = const(1, UINT8)


def program(body: Stmt) -> Program:
    return Program("k", (BufferArg("out", UINT8, 1, True, (1,)),), (), body)


def store(value: Expr, index: Expr = ZERO, mask: Expr | None = None) -> Store:
    return Store("out", (index,), value, mask)


def loop(body: Stmt, kind: Kind = Kind.SERIAL) -> For:
    return For("x", ZERO, EIGHT, kind, body)


def test_accepts_a_sound_program() -> None:
    load = Load(UINT8, 4, "t", (ramp(x, 1, 4),))
    inner = Let("v", load, store(op("min", var("v", UINT8, 4), Broadcast(UINT8, 4, ONE_BYTE)), ramp(x, 1, 4)))
    verify(program(loop(Alloc("t", UINT8, EIGHT, Memory.STACK, None, inner))), flat=True)


def test_siblings_may_use_one_name() -> None:
    verify(program(Block((loop(store(ONE_BYTE, x)), loop(store(ONE_BYTE, x))))), flat=True)


WRONG: dict[str, tuple[Stmt, str]] = {
    "undefined name": (store(ONE_BYTE, x), "x is not defined where it is used"),
    "out of scope": (Block((loop(store(ONE_BYTE, x)), store(ONE_BYTE, x))), "x is not defined"),
    "hidden name": (loop(loop(store(ONE_BYTE, x))), "the name x is defined twice in one scope"),
    "undefined buffer": (store(Load(UINT8, 1, "t", (ZERO,))), "the buffer t does not exist where it is used"),
    "hidden buffer": (
        Alloc("out", UINT8, EIGHT, Memory.HEAP, None, store(ONE_BYTE)),
        "the buffer out is defined twice",
    ),
    "type of a name": (loop(store(Var(UINT8, 1, "x"))), "x is index with 1 lanes but is used as uint8"),
    "stored type": (store(const(1, INT32)), "a int32 is stored into out, which holds uint8"),
    "loaded type": (
        store(Op(UINT8, 1, "neg", (Load(FLOAT32, 1, "out", (ZERO,)),))),
        "holds uint8 but is loaded as float32",
    ),
    "operand types": (store(Op(UINT8, 1, "add", (ONE_BYTE, const(1, INT32)))), "types differ in"),
    "operand lanes": (store(Op(UINT8, 2, "add", (ONE_BYTE, const(1, UINT8, 2)))), "lanes differ in"),
    "result type": (store(Op(UINT8, 1, "lt", (ONE_BYTE, ONE_BYTE))), "is marked uint8 but gives bool"),
    "arity": (store(Op(UINT8, 1, "add", (ONE_BYTE,))), "add does not take 1 arguments"),
    "float operation": (store(Op(UINT8, 1, "sqrt", (ONE_BYTE,))), "sqrt of uint8"),
    "select": (store(Op(UINT8, 1, "select", (ONE_BYTE, ONE_BYTE, ONE_BYTE))), "the condition of .* is uint8"),
    "stored lanes": (store(const(1, UINT8, 4), ramp(ZERO, 1, 8)), "4 lanes are stored through 8 lanes"),
    "mask": (store(ONE_BYTE, ZERO, const(True, BOOL, 2)), "the mask .* is boolx2 for 1 lanes"),
    "extent": (For("x", ZERO, const(8, INT32), Kind.SERIAL, store(ONE_BYTE)), "the extent of loop x is int32"),
    "condition": (If(ONE_BYTE, store(ONE_BYTE)), "is uint8, not a scalar bool"),
    "index type": (store(ONE_BYTE, const(0, FLOAT32)), "the index 0 of out is float32"),
    "ramp": (store(const(1, UINT8, 2), Ramp(INDEX, 2, const(0, INDEX, 2), ZERO)), "base and stride of"),
    "shuffle": (store(Shuffle(UINT8, 1, (ONE_BYTE,), (1,))), "picks lanes outside 0..1"),
}
WRONG_WHEN_FLAT: dict[str, tuple[Stmt, str]] = {
    "vector loop": (loop(store(ONE_BYTE, x), Kind.VECTOR), "loop x is still marked vector"),
    "two indices": (Store("out", (ZERO, ZERO), ONE_BYTE), "accessed with 2 indices after flattening"),
    "narrow index": (store(ONE_BYTE, const(0, INT32)), "the index 0 of out is int32"),
    "realize": (Realize("t", UINT8, ((ZERO, EIGHT),), Memory.AUTO, store(ONE_BYTE)), "t is realized but not allocated"),
    "stack size": (loop(Alloc("t", UINT8, x, Memory.STACK, None, store(ONE_BYTE))), "its size x is not constant"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_refuses(case: str) -> None:
    body, message = WRONG[case]
    with pytest.raises(InternalError, match=message):
        verify(program(body))


@pytest.mark.parametrize("case", list(WRONG_WHEN_FLAT))
def test_refuses_before_code_generation(case: str) -> None:
    body, message = WRONG_WHEN_FLAT[case]
    with pytest.raises(InternalError, match=message):
        verify(program(body), flat=True)


def test_constants_need_no_scope() -> None:
    verify(program(store(Const(UINT8, 1, 3))))


def launched(kernel: Kernel, *scalars: Expr) -> Program:
    launch = Launch(kernel.name, scalars, tuple("out" for _ in kernel.buffers), EIGHT)
    return Program("k", (BufferArg("out", UINT8, 1, True, (1,)),), (), launch, (kernel,))


STORING = store(ONE_BYTE, x + var("n"))
OUT = CapturedBuffer("out", UINT8)


def test_kernels_know_what_they_capture() -> None:
    verify(launched(Kernel("x.0", "x", ZERO, (var("n"),), (OUT,), STORING), EIGHT), flat=True, outlined=True)


@pytest.mark.parametrize(
    ("kernel", "scalars", "message"),
    [
        (Kernel("x.0", "x", ZERO, (), (OUT,), STORING), (), "n is not defined where it is used"),
        (Kernel("x.0", "x", ZERO, (var("n"),), (), STORING), (EIGHT,), "the buffer out does not exist"),
        (Kernel("x.0", "x", var("m"), (var("n"),), (OUT,), STORING), (EIGHT,), "m is not defined where it is used"),
        (Kernel("x.0", "x", EIGHT, (var("n"),), (OUT,), STORING), (EIGHT,), "begins at 8, which is neither 0 nor capt"),
        (Kernel("x.0", "x", ZERO, (var("n"),), (OUT,), STORING), (), "captures index, uint8 but is given uint8"),
        (Kernel("x.0", "x", ZERO, (var("n"),), (OUT,), STORING), (ONE_BYTE,), "index, uint8 but is given uint8, uint8"),
        (Kernel("x.0", "x", ZERO, (), (), Launch("x.0", (), (), EIGHT)), (), "x.0 is launched but is no kernel"),
    ],
)  # fmt: skip
def test_kernels_that_do_not_fit_their_launches(kernel: Kernel, scalars: tuple[Expr, ...], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        verify(launched(kernel, *scalars), flat=True, outlined=True)


def test_no_parallel_loops_are_left_once_they_are_outlined() -> None:
    with pytest.raises(InternalError, match="loop x is still marked parallel"):
        verify(program(loop(store(ONE_BYTE, x), Kind.PARALLEL)), flat=True, outlined=True)
