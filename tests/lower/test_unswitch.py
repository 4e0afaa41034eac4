"""How much code versions of loops may become."""

from __future__ import annotations

from pantile.expr.build import select
from pantile.expr.nodes import Load, const, var
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Block, For, If, Stmt, Store
from pantile.ir.visit import walk
from pantile.lower.size import size
from pantile.lower.unswitch import unswitch
from pantile.target.kinds import Kind


def grid(levels: int) -> Stmt:
    """Loops in each other, each before a store under conditions on all loops around it."""
    body: Stmt = Block(())
    for k in reversed(range(levels)):
        parts = [body]
        for limit in ("low", "high"):
            holds = var(f"i{k - 1}") > var(limit)
            read = Load(INT32, 1, "f", (var(f"i{k}"),), holds)
            parts.append(Store("g", (var(f"i{k}"),), select(holds, read, const(0, INT32))))
        body = For(f"i{k}", const(0, INDEX), var("n"), Kind.SERIAL, Block(tuple(parts)))
    return body


def test_a_few_loops_have_a_version_for_each_outcome() -> None:
    found = unswitch(grid(1))
    assert isinstance(found, If)
    assert sum(isinstance(s, For) for s in walk(found)) == 4


def test_versions_of_loops_in_loops_do_not_multiply_without_end() -> None:
    assert size(grid(8)) < size(unswitch(grid(8))) < 10_000


def test_versions_of_unrolled_loops_count_as_often_as_they_are_repeated() -> None:
    def unrolled(times: int) -> Stmt:
        return For("u", const(0, INDEX), const(times, INDEX), Kind.UNROLL, grid(3))

    assert size(unswitch(unrolled(100))) < size(unrolled(100)) + 10_000
    assert size(unswitch(unrolled(2))) > 4 * size(unrolled(2))


def test_versions_of_loops_one_after_the_other_add_less_than_twice_the_program() -> None:
    program = Block(tuple(grid(8) for _ in range(100)))
    assert size(unswitch(program)) < 3 * size(program)
