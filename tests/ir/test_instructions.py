"""Instructions as data: the verifier and the simulator follow the table, for those that do not exist yet, too."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pantile.errors import InternalError
from pantile.expr.build import cast
from pantile.expr.nodes import Expr, Instruction, Load, Var, const, var
from pantile.expr.types import FLOAT16, FLOAT32, INDEX, INT32
from pantile.ir.instructions import (
    INSTRUCTIONS,
    WARP_BARRIER,
    InstructionSpec,
    Operand,
    ThreadGroup,
    shuffle,
    wait_group,
)
from pantile.ir.nodes import Block, Evaluate, For, Program, Stmt, Store
from pantile.ir.verify import verify
from pantile.simulator.accesses import Active
from pantile.simulator.instructions import execute
from pantile.simulator.races import Epochs
from pantile.target.kinds import Kind
from pantile.target.layout import Digit, Layout, Unit

from ..simulator.hand_built import T, kernel, load, store, threads

REGISTER, LANE = Unit.REGISTER, Unit.THREAD
# The fragments of mma.m16n8k16 as the PTX manual gives them: four lanes side by side have neighbours of a row.
A = Layout(((Digit(8, LANE, 4), Digit(2, REGISTER, 2)), (Digit(2, REGISTER), Digit(4, LANE), Digit(2, REGISTER, 4))))
B = Layout(((Digit(2, REGISTER), Digit(4, LANE), Digit(2, REGISTER, 2)), (Digit(8, LANE, 4),)))
C = Layout(((Digit(8, LANE, 4), Digit(2, REGISTER, 2)), (Digit(2, REGISTER), Digit(4, LANE))))


class Launch:
    """Where the instruction is executed, for messages."""

    kernel_name, first_block, epochs = "k", 0, Epochs(np.zeros(1, np.int64), np.zeros((1, 1), np.int64))


def loop(name: str, extent: int, body: Stmt) -> Stmt:
    return For(name, const(0, INDEX), const(extent, INDEX), Kind.SERIAL, body)


def matrix_product() -> Stmt:
    i, j, k = var("i"), var("j"), var("k")
    a, b = (cast(FLOAT32, Load(FLOAT16, 1, name, at)) for name, at in (("a", (i, k)), ("b", (k, j))))
    begin = Store("d", (i, j), Load(FLOAT32, 1, "c", (i, j)))
    add = Store("d", (i, j), Load(FLOAT32, 1, "d", (i, j)) + a * b)
    return Block((loop("i", 16, loop("j", 8, begin)), loop("i", 16, loop("j", 8, loop("k", 16, add)))))


@pytest.fixture
def mma(monkeypatch: pytest.MonkeyPatch) -> str:
    operands = (Operand("a", A, FLOAT16), Operand("b", B, FLOAT16), Operand("c", C))
    spec = InstructionSpec("mma", ThreadGroup.WARP, "", operands, Operand("d", C), matrix_product())
    monkeypatch.setitem(INSTRUCTIONS, "mma", spec)
    return "mma"


def fragment(matrix: np.ndarray[Any, Any], layout_of: Any, registers: int) -> np.ndarray[Any, Any]:
    """The registers of 32 lanes, by the manual's formulas for the row and column of a register."""
    values = [[matrix[layout_of(lane >> 2, lane % 4, n)] for n in range(registers)] for lane in range(32)]
    return np.array(values, matrix.dtype)[None]


def test_a_matrix_instruction_is_data(mma: str) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-8, 8, (16, 16)).astype(np.float16), rng.integers(-8, 8, (16, 8)).astype(np.float16)
    c = rng.integers(-8, 8, (16, 8)).astype(np.float32)

    def of_a(group: int, thread: int, n: int) -> tuple[int, int]:
        return group + 8 * (n // 2 % 2), thread * 2 + n % 2 + 8 * (n // 4)

    def of_b(group: int, thread: int, n: int) -> tuple[int, int]:
        return thread * 2 + n % 2 + 8 * (n // 2), group

    def of_c(group: int, thread: int, n: int) -> tuple[int, int]:
        return group + 8 * (n // 2), thread * 2 + n % 2

    args = [fragment(m, f, n) for m, f, n in ((a, of_a, 8), (b, of_b, 4), (c, of_c, 4))]
    call = Instruction(FLOAT32, 4, mma, (Var(FLOAT16, 8, "a"), Var(FLOAT16, 4, "b"), Var(FLOAT32, 4, "c")))
    d = execute(call, args, Active(np.ones((1, 32), np.bool_)), Launch())
    wanted = c + a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(d, fragment(wanted, of_c, 4))


@pytest.mark.parametrize("layout", [A, B, C], ids="ABC")
def test_a_layout_gives_every_element_a_place_of_its_own(layout: Layout) -> None:
    places = [layout.place(*at) for at in product(*map(range, layout.shape))]
    assert len({*places}) == len(places) == 32 * layout.count(REGISTER)
    assert {p.lane for p in places} == {*range(32)}
    assert {p.register for p in places} == {*range(layout.count(REGISTER))}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (shuffle(load("img", T), load("img", T)), "lane of shfl(img[t], img[t]) is float32, not index"),
        (Instruction(INT32, 1, "shfl", (load("img", T), T)), "value of shfl(img[t], t) is float32, not int32"),
        (Instruction(FLOAT32, 1, "shfl", (load("img", T),)), "no instruction shfl takes 1 operands"),
        (Instruction(FLOAT32, 1, "mma", (load("img", T),)), "no instruction mma takes 1 operands"),
    ],
)
def test_operands_are_verified(value: Expr, text: str) -> None:
    made = kernel(threads(64, store("out", T, value)))
    with pytest.raises(InternalError) as caught:
        verify(Program("p", (), (), Block(()), (made,)))
    assert text in str(caught.value)


def test_immediates_are_numbers_and_effects_are_executed_by_all_threads() -> None:
    def check(*body: Stmt) -> None:
        verify(Program("p", (), (), Block(()), (kernel(*body),)))

    check(wait_group(1))
    with pytest.raises(InternalError, match=r"groups of wait_group.* is not a number"):
        check(Evaluate(Instruction(INT32, 1, "wait_group", (Var(INDEX, 1, "b"),))))
    with pytest.raises(InternalError, match="in loop t a thread may wait"):
        check(threads(64, wait_group(0)))
    check(threads(64, WARP_BARRIER))
    with pytest.raises(InternalError, match="is computed, and not used"):
        check(Evaluate(shuffle(load("img", Var(INDEX, 1, "b")), const(0, INDEX))))
