"""What the host part of a program with kernels of blocks does, for given extents and params."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from pantile.errors import InternalError
from pantile.expr.nodes import Cast, Const, Expr, Load, Number, const, op, var
from pantile.expr.types import FLOAT32, INDEX, INT8, INT32, UINT8
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
    Produce,
    Program,
    ScalarArg,
    Stmt,
    Store,
)
from pantile.runtime.launches import Allocation, LaunchPlan, evaluate, launches, scalars_of
from pantile.target.kinds import Kind, Memory

ZERO = const(0, INDEX)
HEIGHT = var("img.shape.0")


def index(value: int) -> Const:
    return const(value, INDEX)


def kernel(name: str, *scalars: str) -> Kernel:
    body = Store("to", (var("b"),), Load(UINT8, 1, "from", (var("b"),)))
    captured = (CapturedBuffer("to", UINT8), CapturedBuffer("from", UINT8))
    return Kernel(name, "b", ZERO, tuple(var(s) for s in scalars), captured, body, 32)


def program(body: Stmt, *kernels: Kernel) -> Program:
    arrays = (BufferArg("img", UINT8, 1, False, (1,)), BufferArg("out", UINT8, 1, True, (1,)))
    return Program("p", arrays, (ScalarArg("gain", FLOAT32),), body, kernels)


def given(height: int, gain: float = 1.0) -> dict[str, Number]:
    return {"img.shape.0": height, "img.stride.0": 1, "out.shape.0": height, "out.stride.0": 1, "gain": gain}


def planned(made: Program, scalars: dict[str, Number]) -> LaunchPlan:
    """On a GPU that holds three blocks of each kernel."""
    return launches(made, scalars, lambda kernel: 3)


def test_launches_in_order_with_their_scalars_and_memory() -> None:
    first, second = kernel("k.0", "n"), kernel("k.1")
    body = Let(
        "rows", op("floordiv", HEIGHT + 31, index(32)),
        Alloc("f", UINT8, var("rows") * 32, Memory.HEAP, None, Produce("out", Block((
            Launch("k.0", (var("rows"),), ("f", "img"), var("rows")),
            Launch("k.1", (), ("out", "f"), index(8)),
        )))),
    )  # fmt: skip
    made = pickle.loads(pickle.dumps(program(body, first, second)))
    plan = planned(made, given(100))
    assert plan.allocations == (Allocation("f", UINT8, 128, 0, 2),)
    assert [(x.kernel.name, x.scalars, x.buffers, x.blocks) for x in plan.launches] == [
        ("k.0", (4,), ("f", "img"), 4),
        ("k.1", (), ("out", "f"), 8),
    ]


def test_each_time_through_a_loop_memory_is_its_own() -> None:
    inner = Alloc("f", UINT8, var("i"), Memory.HEAP, None, Launch("k", (), ("f", "img"), index(1)))
    plan = planned(program(For("i", index(2), index(3), Kind.SERIAL, inner), kernel("k")), given(1))
    assert [(a.name, a.elements, a.begin, a.end) for a in plan.allocations] == [
        ("f", 2, 0, 1),
        ("f@2", 3, 1, 2),
        ("f@3", 4, 2, 3),
    ]
    assert [x.buffers[0] for x in plan.launches] == ["f", "f@2", "f@3"]


def test_branches_and_launches_of_nothing() -> None:
    run = Launch("k", (), ("out", "img"), HEIGHT - 5)
    other = Launch("k", (), ("img", "out"), index(1))
    made = program(If(op("gt", HEIGHT, index(3)), run, other), kernel("k"))
    assert [x.blocks for x in planned(made, given(9)).launches] == [4]
    assert planned(made, given(5)).launches == ()
    assert planned(made, given(2)).launches[0].buffers == ("img", "out")


@pytest.mark.parametrize(
    ("e", "value"),
    [
        (op("floordiv", index(-7), index(2)), -4),
        (op("mod", index(-7), index(4)), 1),
        (op("floordiv", index(7), ZERO), 0),
        (op("mod", index(7), ZERO), 0),
        (op("select", op("lt", ZERO, index(1)), index(5), index(6)), 5),
        (op("not", op("lt", ZERO, index(1))), False),
        (op("shl", index(3), index(4)), 48),
        (op("add", const(127, INT8), const(1, INT8)), -128),
        (Cast(INT32, 1, const(1e20, FLOAT32)), 2**31 - 1),
        (Cast(INDEX, 1, const(-2.7, FLOAT32)), -2),
        (op("div", const(1.0, FLOAT32), const(3.0, FLOAT32)), 0.3333333432674408),
        (op("mul", var("gain", FLOAT32), const(2.0, FLOAT32)), 0.5),
    ],
)
def test_scalars_are_what_the_reference_says(e: Expr, value: Number) -> None:
    found = evaluate(e, given(1, 0.25))
    assert found == value and type(found) is type(value)


def test_scalars_by_name() -> None:
    assert scalars_of(program(Block(())), [(4,), (5,)], [(-1,), (2,)], [0.5]) == {
        "img.shape.0": 4,
        "img.stride.0": -1,
        "out.shape.0": 5,
        "out.stride.0": 2,
        "gain": 0.5,
    }


def test_what_a_host_part_cannot_do() -> None:
    with pytest.raises(InternalError, match="a Store is left in the host part of p"):
        planned(program(Store("out", (ZERO,), const(1, UINT8))), given(1))


def test_persistent_blocks_are_as_many_as_the_gpu_holds() -> None:
    held = var("k.resident")
    launch = Launch("k", (HEIGHT, op("min", HEIGHT, held)), ("out", "img"), op("min", HEIGHT, held))
    made = program(launch, replace(kernel("k", "tiles", "blocks"), resident="k.resident"))
    for height in (2, 5):
        (one,) = planned(made, given(height)).launches
        assert (one.scalars, one.blocks) == ((height, min(height, 3)), min(height, 3))
