"""The verifier accepts what is right and names what is wrong."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from pantile.errors import InternalError
from pantile.expr.build import ramp
from pantile.expr.nodes import Broadcast, Cast, Const, Expr, Load, Op, Ramp, Shuffle, Var, const, op, var
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
from pantile.ir.verify import FOR_CODE, Property, Verifier, verify
from pantile.target.kinds import Kind, Memory
from pantile.target.layout import Digit, Layout, Unit

x = var("x")
ZERO = const(0, INDEX)
EIGHT = const(8, INDEX)
ONE_BYTE = const(1, UINT8)


def program(body: Stmt) -> Program:
    return Program("k", (BufferArg("out", UINT8, 1, True, (1,)), BufferArg("in", UINT8, 1, False, (1,))), (), body)


def store(value: Expr, index: Expr = ZERO, mask: Expr | None = None) -> Store:
    return Store("out", (index,), value, mask)


def loop(body: Stmt, kind: Kind = Kind.SERIAL) -> For:
    return For("x", ZERO, EIGHT, kind, body)


def assert_sound(made: Program, has: Collection[Property] = ()) -> None:
    """It is accepted: nothing is raised."""
    verify(made, has)


def test_accepts_a_sound_program() -> None:
    load = Load(UINT8, 4, "t", (ramp(x, 1, 4),))
    inner = Let("v", load, store(op("min", var("v", UINT8, 4), Broadcast(UINT8, 4, ONE_BYTE)), ramp(x, 1, 4)))
    assert_sound(program(loop(Alloc("t", UINT8, EIGHT, Memory.STACK, None, inner))), FOR_CODE)


def test_what_has_no_dims_is_in_one_place_for_all_lanes() -> None:
    whole = Realize("t", UINT8, (), Memory.AUTO, store(Load(UINT8, 4, "t", ()), ramp(ZERO, 1, 4)))
    assert_sound(program(whole), frozenset({Property.BOXES}))


def test_siblings_may_use_one_name() -> None:
    assert_sound(program(Block((loop(store(ONE_BYTE, x)), loop(store(ONE_BYTE, x))))), FOR_CODE)


def held(extent: int, *dims: tuple[Digit, ...]) -> Stmt:
    """A buffer that threads share."""
    box = ((ZERO, const(extent, INDEX)),)
    return Realize("t", UINT8, box, Memory.REGISTER, store(ONE_BYTE), layout=Layout(dims))


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
    "stack size": (loop(Alloc("t", UINT8, x, Memory.STACK, None, store(ONE_BYTE))), "its size x is not constant"),
    "input": (Store("in", (ZERO,), ONE_BYTE), "in, an input, is stored into"),
    "stored type": (store(const(1, INT32)), "a int32 is stored into out, which holds uint8"),
    "loaded type": (
        store(Cast(UINT8, 1, Load(FLOAT32, 1, "out", (ZERO,)))),
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
    "layout of another rank": (held(8, (), ()), "t cannot be shared of each thread"),
    "threads twice": (
        held(8, (Digit(4, Unit.THREAD), Digit(2, Unit.THREAD, 2))),
        "t cannot be shared over .4 threads, 2 threads, 2 apart",
    ),
    "ramp": (store(const(1, UINT8, 2), Ramp(INDEX, 2, const(0, INDEX, 2), ZERO)), "base and stride of"),
    "shuffle": (store(Shuffle(UINT8, 1, (ONE_BYTE,), (1,))), "picks lanes outside 0..1"),
}
FOUR_THREADS = (Digit(2, Unit.REGISTER), Digit(4, Unit.THREAD))
TWO_INDICES = Store("out", (ZERO, ZERO), ONE_BYTE)
PROMISED: dict[str, tuple[Stmt, Property, str]] = {
    "vector": (store(const(1, UINT8, 4), ramp(ZERO, 1, 4)), Property.SCALAR, "has 4 lanes"),
    "lanes": (
        loop(For("v", ZERO, x, Kind.VECTOR, store(ONE_BYTE))), Property.CONSTANT_LANES, "its extent x is not constant"
    ),
    "vector loop": (
        loop(store(ONE_BYTE, x), Kind.VECTOR), Property.NO_VECTOR_LOOPS, "loop x is still marked vector"
    ),
    "unrolled loop": (
        loop(store(ONE_BYTE, x), Kind.UNROLL), Property.NO_UNROLLED_LOOPS, "loop x is still marked unroll"
    ),
    "parallel loop": (
        loop(store(ONE_BYTE, x), Kind.PARALLEL), Property.NO_PARALLEL_LOOPS, "loop x is still marked parallel"
    ),
    "block loop": (loop(store(ONE_BYTE, x), Kind.BLOCK), Property.NO_BLOCK_LOOPS, "loop x is still marked block"),
    "threads in threads": (
        loop(For("t", ZERO, EIGHT, Kind.THREAD, store(ONE_BYTE)), Kind.THREAD), Property.THREAD_LOOPS,
        "the threads of loop t are in a loop of threads already, x",
    ),
    "uncounted threads": (
        loop(For("t", ZERO, x, Kind.THREAD, store(ONE_BYTE))), Property.THREAD_LOOPS,
        "the threads of loop t do not know how often it runs",
    ),
    "shared registers": (
        held(8, FOUR_THREADS),
        Property.OF_THREADS, r"the threads still share t over \(2 registers, 4 threads\)",
    ),
    "another rank": (TWO_INDICES, Property.BOXES, "out is accessed with 2 indices, and has 1 dims"),
    "flat too early": (
        Alloc("t", UINT8, EIGHT, Memory.HEAP, None, store(ONE_BYTE)), Property.BOXES, "t is flat memory already"
    ),
    "two indices": (TWO_INDICES, Property.FLAT, "accessed with 2 indices after flattening"),
    "narrow index": (store(ONE_BYTE, const(0, INT32)), Property.FLAT, "the index 0 of out is int32"),
    "realize": (
        Realize("t", UINT8, ((ZERO, EIGHT),), Memory.AUTO, store(ONE_BYTE)), Property.FLAT,
        "t is realized but not allocated",
    ),
    "undecided": (
        Alloc("t", UINT8, EIGHT, Memory.AUTO, None, store(ONE_BYTE)), Property.FLAT, "nobody has decided where t lives"
    ),
    "trivial let": (Let("a", EIGHT, store(ONE_BYTE)), Property.CLEAN, "a is a name for 8"),
    "decided branch": (If(const(True, BOOL), store(ONE_BYTE)), Property.CLEAN, "a branch is always, or never, taken"),
    "empty loop": (For("x", ZERO, ZERO, Kind.SERIAL, store(ONE_BYTE)), Property.CLEAN, "loop x never runs"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(WRONG))
def test_refuses(case: str) -> None:
    body, message = WRONG[case]
    with pytest.raises(InternalError, match=message):
        verify(program(body))


@pytest.mark.parametrize("case", list(PROMISED))
def test_refuses_what_breaks_a_promise(case: str) -> None:
    body, promise, message = PROMISED[case]
    assert_sound(program(body))
    with pytest.raises(InternalError, match=message):
        verify(program(body), {promise})


def test_every_property_is_checked() -> None:
    assert {promise for _, promise, _ in PROMISED.values()} == set(Property)


def test_what_a_pass_keeps_is_checked_in_the_scope_that_it_is_in() -> None:
    """An expression is checked both where its name is defined and where it is not any more."""
    kept = store(ONE_BYTE, x)
    verifier = Verifier("k", program(kept).buffers, ())
    verifier.check(loop(kept), ())
    with pytest.raises(InternalError, match="loop IR of k after a pass: x is not defined"):
        verifier.check(kept, (), "a pass")


def test_constants_need_no_scope() -> None:
    assert_sound(program(store(Const(UINT8, 1, 3))))


def launched(kernel: Kernel, *scalars: Expr) -> Program:
    launch = Launch(kernel.name, scalars, tuple("out" for _ in kernel.buffers), EIGHT)
    return Program("k", (BufferArg("out", UINT8, 1, True, (1,)),), (), launch, (kernel,))


STORING = store(ONE_BYTE, x + var("n"))
OUT = CapturedBuffer("out", UINT8)


def test_kernels_know_what_they_capture() -> None:
    assert_sound(launched(Kernel("x.0", "x", ZERO, (var("n"),), (OUT,), STORING), EIGHT), FOR_CODE)


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
)
def test_kernels_that_do_not_fit_their_launches(kernel: Kernel, scalars: tuple[Expr, ...], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        verify(launched(kernel, *scalars), FOR_CODE)
