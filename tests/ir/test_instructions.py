"""Instructions as data: the verifier and the simulator follow the table."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pantile.errors import InternalError
from pantile.expr.nodes import Expr, Instruction, Load, Var, const
from pantile.expr.types import FLOAT16, FLOAT32, INDEX, INT32, dtype
from pantile.ir.instructions import WARP_BARRIER, matrix_load, shuffle, wait_group
from pantile.ir.nodes import Block, Evaluate, Program, Stmt
from pantile.ir.verify import verify
from pantile.simulator.accesses import Active
from pantile.simulator.instructions import execute
from pantile.simulator.races import Epochs
from pantile.target.layout import Layout, Unit
from pantile.target.mma import MMAS, Mma

from ..simulator.hand_built import T, kernel, load, store, threads


class Launch:
    """Where the instruction is executed, for messages."""

    kernel_name, first_block, epoch, last_entries = "k", 0, 0, None
    epochs = Epochs(np.zeros(1, np.int64), np.zeros((1, 1), np.int64))


def fragment(matrix: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """The registers of 32 lanes, for each of several warps of one block."""
    registers = np.zeros((len(matrix), 32, layout.count(Unit.REGISTER)), matrix.dtype)
    for at in product(*map(range, layout.shape)):
        place = layout.place(*at)
        registers[:, place.thread, place.register] = matrix[(slice(None), *at)]
    return registers.reshape(1, -1, layout.count(Unit.REGISTER))


def executed(e: Instruction, *args: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(execute(e, list(args), {}, Active(np.ones((1, args[0].shape[1]), np.bool_)), Launch()))


@pytest.mark.parametrize("mma", [m for m in MMAS.values() if m.operand != "bfloat16"], ids=lambda mma: mma.name)
def test_matrices_are_multiplied(mma: Mma) -> None:
    """By three warps at once. NumPy has no bfloat16; kernels with it are in other tests."""
    rng, warps, t = np.random.default_rng(5), 3, dtype(mma.accumulator)
    low = 0 if mma.operand == "uint8" else -8
    a = rng.integers(low, 8, (warps, 16, mma.terms)).astype(mma.operand)
    b = rng.integers(low, 8, (warps, mma.terms, 8)).astype(mma.operand)
    c = rng.integers(-8, 8, (warps, 16, 8)).astype(mma.accumulator)
    layouts = mma.a, mma.b(), mma.c
    args = [fragment(m, layout) for m, layout in zip((a, b, c), layouts, strict=True)]
    names = [Var(dtype(str(m.dtype)), m.shape[2], n) for n, m in zip("abc", args, strict=True)]
    d = executed(Instruction(t, 4, mma.name, tuple(names)), *args)
    wanted = c + a.astype(mma.accumulator) @ b.astype(mma.accumulator)
    np.testing.assert_array_equal(d, fragment(wanted, mma.c))


@pytest.mark.parametrize(("count", "is_packed"), [*product((2, 4), (True, False))])
def test_rows_become_fragments(count: int, is_packed: bool) -> None:
    """Lane 4*i + j gets elements 2*j and 2*j + 1 of row i of each matrix, or of column i."""
    rows = np.arange(2 * 8 * count * 8, dtype=np.float16).reshape(2, count, 8, 8)
    given = np.zeros((2, 32, 8), np.float16)
    given[:, : 8 * count] = rows.reshape(2, -1, 8)
    e = Instruction(FLOAT16, 2 * count, matrix_load(count, is_packed), (Load(FLOAT16, 8, "rows", ()),))
    found = executed(e, given.reshape(1, 64, 8)).reshape(2, 32, count, 2)
    turned = rows if is_packed else rows.swapaxes(2, 3)
    np.testing.assert_array_equal(found, turned.reshape(2, count, 32, 2).swapaxes(1, 2))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (shuffle(load("img", T), load("img", T)), "lane of shfl(img[t], img[t]) is float32, not index"),
        (Instruction(INT32, 1, "shfl", (load("img", T), T)), "value of shfl(img[t], t) is float32, not int32"),
        (Instruction(FLOAT32, 1, "shfl", (load("img", T),)), "no instruction shfl takes 1 operands"),
        (Instruction(FLOAT32, 1, "multiply", (load("img", T),)), "no instruction multiply takes 1 operands"),
        (
            Instruction(FLOAT32, 8, "ldmatrix.x4", (Var(FLOAT32, 8, "v"),)),
            "rows of ldmatrix.x4(v) is not loaded from memory",
        ),
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
