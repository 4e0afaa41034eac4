"""What indices are not below, and that divisions of such are unsigned and right."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.codegen.nonnegative import least, least_of_kernels
from pantile.expr.build import maximum, minimum
from pantile.expr.nodes import Expr, Load, const, var
from pantile.expr.types import FLOAT64, INDEX
from pantile.ir.nodes import Block, For, Launch, Let, Program, Stmt, Store
from pantile.ir.visit import walk_program
from pantile.lower.outline import outline
from pantile.target.kinds import Kind
from tests.codegen.kernels import Kernel, argument, emitted, i64, loop

Y, N, Z = var("y"), var("n"), var("z")
LOWS = {"y": -14, "n": 0}


@pytest.mark.parametrize(
    ("e", "low"),
    [
        (Y * 2 + 1, -27),
        (3 * Y, -42),
        (minimum(Y * 256, N - 256) + 12, -3572),
        (minimum(Y, N - 256), -256),
        (maximum(Z, 0), 0),
        (maximum(Z, Y), -14),
        (Y // 4, -4),
        (N // (N + 1), 0),
        (Y // N, -14),
        (Z % 7, 0),
        (N * N, 0),
        (Y * Y, None),
        (Y * -1, None),
        (N - Y, None),
        (Y + Z, None),
        (minimum(Y, Z), None),
        (Z % Y, None),
    ],
    ids=str,
)
def test_least(e: Expr, low: int | None) -> None:
    assert least(e, LOWS) == low


def remainders(first: int, value: Expr) -> Program:
    body = Store("out", (Y - first,), value)
    return Program("k", (argument("out", INDEX, writable=True),), (), For("y", i64(first), i64(64), Kind.SERIAL, body))


@pytest.mark.parametrize("first", [-14, 0, 3, -(1 << 40), -(1 << 62) - 5])
@pytest.mark.parametrize("by", [3, 7, 43, 640, (1 << 62) + 1])
def test_remainders_of_what_may_be_negative(first: int, by: int) -> None:
    out = np.zeros(64, np.int64)
    assert Kernel(remainders(first, (Y * 1 + 1) % by))({"out": out}) == 0
    assert out.tolist() == [(y + 1) % by for y in range(first, first + 64)]


def test_rows_of_a_window_are_found_by_one_division() -> None:
    text = emitted(remainders(-14, (Y * 2 + 1) % 3))
    assert text.count("urem") == 1
    assert not any(word in text for word in ("ashr", "xor", "udiv"))


def test_quotients_of_what_is_not_negative() -> None:
    assert "udiv i64" in emitted(remainders(0, Y // 3)) and "xor" not in emitted(remainders(0, Y // 3))
    assert "xor" in emitted(remainders(-1, Y // 3))


def nested(first: int) -> Stmt:
    """A parallel loop in another one, in which something is known by name."""
    store = Store("out", (var("j") + var("low") * 0,), var("low") % 5)
    inner = loop("j", 4, store, Kind.PARALLEL)
    return loop("i", 4, Let("low", var("i") * 3 + first, inner), Kind.PARALLEL)


def test_kernels_know_what_all_their_launches_say() -> None:
    program = outline(Program("k", (argument("out", INDEX, writable=True),), (), Block((nested(2), nested(-7)))))
    outer, inner = (next(k.name for k in program.kernels if k.var == var) for var in "ij")
    assert [s.kernel for s in walk_program(program) if isinstance(s, Launch)].count(outer) == 2
    assert least_of_kernels(program)[inner] == {"low": -7}


def test_weights_that_are_a_parameter_are_no_indices() -> None:
    """Two loops that differ in a weight are one kernel, which is given the weight."""
    doubles = [Load(FLOAT64, 1, "out", (var(f"i{k}"),)) * const(k + 0.5, FLOAT64) for k in range(2)]
    loops = [loop(f"i{k}", 4, Store("out", (var(f"i{k}"),), e), Kind.PARALLEL) for k, e in enumerate(doubles)]
    program = outline(Program("k", (argument("out", FLOAT64, writable=True),), (), Block(tuple(loops))))
    assert [v.dtype for v in program.kernels[0].scalars] == [FLOAT64]
    assert least_of_kernels(program) == {program.kernels[0].name: {}}


def test_a_name_that_stands_for_something_else_is_forgotten() -> None:
    body = Block(
        (
            Let("a", i64(4), Store("out", (i64(0),), var("a") // 3)),
            Let("a", const(0, INDEX) - 4, Store("out", (i64(1),), var("a") // 3)),
        )
    )
    out = np.zeros(64, np.int64)
    assert Kernel(Program("k", (argument("out", INDEX, writable=True),), (), body))({"out": out}) == 0
    assert out[:2].tolist() == [1, -2]
