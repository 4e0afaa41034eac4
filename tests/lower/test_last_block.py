"""The last block of a split, moved inwards, runs in the loop of the whole blocks."""

from __future__ import annotations

import pytest

from pantile.expr.build import minimum
from pantile.expr.linear import Facts
from pantile.expr.nodes import Expr, Load, const, var
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Block, For, Let, Stmt, Store
from pantile.ir.visit import walk
from pantile.lower.partition import partition
from pantile.target.kinds import Kind
from tests.lower.lowered import stores

W, X, LO = var("w"), var("x"), var("lo")
FACTS = Facts({"w": (4, None)})


def blocks(place: Expr, limit: Expr, extent: Expr, first: int = 0) -> For:
    """for x in blocks: let lo = min(4*x, limit); f[lo .. lo + 3] = img[place]."""
    body = Block(tuple(Store("f", (LO + k,), Load(INT32, 1, "img", (place + k,))) for k in range(4)))
    inside = Let("lo", minimum((X - first) * 4, limit), body)
    return For("x", const(first, INDEX), extent, Kind.SERIAL, inside)


def loops(s: Stmt) -> list[str]:
    return [i.var for i in walk(s) if isinstance(i, For)]


def partitioned(s: Stmt) -> Stmt:
    return partition(s, FACTS, {}, ())


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("width", [4, 5, 7, 8, 9, 12, 30])
def test_every_block_runs_once(width: int, first: int) -> None:
    before = blocks(LO, W - 4, (W + 3) // 4, first)
    after = partitioned(before)
    assert loops(after) == ["x.piece", "x"]
    assert stores(after, {"w": width}) == stores(before, {"w": width})


def test_a_body_that_knows_the_block_s_number_has_a_second_loop() -> None:
    assert loops(partitioned(blocks(LO + X, W - 4, (W + 3) // 4))) == ["x", "x"]


def test_halves_of_places_have_a_second_loop_unless_the_last_block_is_aligned_too() -> None:
    assert loops(partitioned(blocks(LO // 2, W - 4, (W + 3) // 4))) == ["x", "x"]
    assert loops(partitioned(blocks(LO // 2, W // 4 * 4 - 4, (W + 3) // 4))) == ["x.piece", "x"]


def test_little_code_for_a_few_iterations_has_a_second_loop() -> None:
    assert loops(partitioned(blocks(LO, const(26, INDEX), const(8, INDEX)))) == ["x", "x"]
