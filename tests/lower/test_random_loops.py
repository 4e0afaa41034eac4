"""Passes on random loops: what is in memory in the end is what it was."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pantile.expr.linear import Facts
from pantile.expr.types import INT32
from pantile.ir.nodes import BufferArg, For, Stmt
from pantile.ir.show import show
from pantile.ir.visit import walk
from pantile.lower.collect import collect
from pantile.lower.partition import partition
from pantile.lower.promote import promote
from pantile.lower.simplify import clean_program, simplify_program
from pantile.lower.trim import trim
from pantile.lower.unroll import unroll
from pantile.lower.unswitch import unswitch
from pantile.lower.vectorize import vectorize

from ..analysis.indices import cases
from .interpret import changed
from .loops import random_loops

FACTS = Facts({"n": (1, None), "m": (0, None)})
SEEDS = st.integers(0, 1 << 32)


def partitioned(s: Stmt, rng: Random, ordered: bool) -> Stmt:
    loops = list(dict.fromkeys(i.var for i in walk(s) if isinstance(i, For)))
    modes = {v: rng.choice(["always", "always", "auto", "never"]) for v in loops}
    return partition(s, FACTS, modes, loops if ordered else ())


# In the order of `passes.LOOP_PASSES`.
PASSES: dict[str, Callable[[Stmt, Random, bool], Stmt]] = {
    "clean": lambda s, *_: clean_program(s, FACTS),
    "trim": lambda s, *_: trim(s, FACTS),
    "unswitch": lambda s, *_: unswitch(s),
    "partition": partitioned,
    "vectorize": lambda s, *_: vectorize(s),
    "unroll": lambda s, *_: unroll(s),
    "collect": lambda s, *_: collect(s, [BufferArg(name, INT32, 2, False, (None, 1)) for name in "ab"]),
    "promote": lambda s, *_: promote(s),
    "simplify": lambda s, *_: simplify_program(s, FACTS),
}


def assert_kept(seed: int, vectors: bool, ordered: bool, *passes: str) -> None:
    """Run some passes, one after the other. Memory is compared in the end, and if it is not right, after each."""
    rng, loops = Random(seed), [random_loops(seed, vectors, ordered)]
    sizes = {"n": rng.randint(1, 12), "m": rng.randint(0, 12), "a.shape.1": 9, "b.shape.1": 40}
    for name in passes:
        loops.append(PASSES[name](loops[-1], rng, ordered))
    expected = changed(loops[0], sizes)
    if changed(loops[-1], sizes) == expected:
        return
    for name, before, after in zip(passes, loops, loops[1:], strict=False):
        assert changed(after, sizes) == expected, f"{name}, {sizes}:\n{show(before)}\nbecomes\n{show(after)}"


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", ["clean", "trim", "unswitch", "partition", "simplify"])
def test_one_pass(name: str, ordered: bool) -> None:
    @cases(15)
    @given(SEEDS)
    def run(seed: int) -> None:
        assert_kept(seed, False, ordered, name)

    run()


@pytest.mark.parametrize("ordered", [False, True])
def test_all_passes(ordered: bool) -> None:
    @cases(40)
    @given(SEEDS)
    def run(seed: int) -> None:
        assert_kept(seed, True, ordered, *PASSES)

    run()
