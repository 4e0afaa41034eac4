"""Fragments of matrix instructions, as the PTX manual gives them ("Matrix multiply-accumulate operation using mma")."""

from __future__ import annotations

from itertools import product

import pytest

from pantile.target.layout import Layout, Unit
from pantile.target.mma import MMAS, Mma

ALL = pytest.mark.parametrize("mma", [*MMAS.values()], ids=lambda mma: mma.name)


@ALL
def test_each_lane_has_the_elements_of_the_manual(mma: Mma) -> None:
    """`group` is groupID and `thread` is threadID_in_group; registers of 8-bit elements hold four of them, not two."""
    e = 4 if mma.terms == 32 else 2
    for lane in range(32):
        group, thread = lane // 4, lane % 4
        for n in range(8 * e // 2):
            row, column = group + 8 * (n // e % 2), thread * e + n % e + 2 * mma.terms // 4 * (n // (2 * e))
            assert mma.a.place(row, column) == (lane, n)
        for n in range(2 * e):
            assert mma.b().place(thread * e + n % e + mma.terms // 2 * (n // e), group) == (lane, n)
        for n in range(4):
            assert mma.c.place(group + 8 * (n // 2), thread * 2 + n % 2) == (lane, n)


@ALL
def test_an_element_has_a_place_of_its_own(mma: Mma) -> None:
    for layout in (mma.a, mma.b(), mma.b(2), mma.c):
        places = {layout.place(*at) for at in product(*map(range, layout.shape))}
        assert len(places) == layout.shape[0] * layout.shape[1] == 32 * layout.count(Unit.REGISTER)


@ALL
def test_several_fragments_of_b_are_side_by_side(mma: Mma) -> None:
    one, two = mma.b(), mma.b(2)
    each = one.count(Unit.REGISTER)
    for k, j in product(range(mma.terms), range(16)):
        lane, register = one.place(k, j % 8)
        assert two.place(k, j) == (lane, register + j // 8 * each)


def test_a_layout_says_what_it_is() -> None:
    found: Layout = MMAS["float16", "float32"].c
    assert str(found) == "over (8 threads, 4 apart, 2 registers; 2 registers, 4 threads)"
