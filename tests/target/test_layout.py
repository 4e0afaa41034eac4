"""Layouts give every element of a box a place of its own, and say how they share it out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pantile.target.layout import Digit, Layout, Place, Unit

REGISTER, THREAD = Unit.REGISTER, Unit.THREAD


def test_columns_side_by_side_and_strided() -> None:
    side_by_side = Layout(((Digit(2, REGISTER), Digit(32, THREAD)),))
    strided = Layout(((Digit(32, THREAD),),)).of_box((64,))
    assert [side_by_side.place(n) for n in (0, 1, 2, 63)] == [(0, 0), (0, 1), (1, 0), (31, 1)]
    assert [strided.place(n) for n in (0, 1, 32, 63)] == [(0, 0), (1, 0), (0, 1), (31, 1)]


def test_warps_of_two_rows() -> None:
    two_rows = Layout(((Digit(2, THREAD, 16), Digit(4, THREAD, 32)), (Digit(16, THREAD),)))
    place = two_rows.place(3, 5)
    assert two_rows.shape == (8, 16) and place == Place(53, 0) and (place.warp, place.lane) == (1, 21)


def test_swizzles() -> None:
    """Places of 16 bytes in shared memory: those of a row, and those of a column, are in all of its eight banks."""
    swizzle = Layout(((Digit(8, REGISTER, 8),), (Digit(8, REGISTER, xor=0),)))
    places = swizzle.place(*np.indices((8, 8))).register
    assert sorted(places.reshape(-1)) == [*range(64)]
    assert places[3].tolist() == [24 + (c ^ 3) for c in range(8)]
    assert all(sorted(places[:, c] % 8) == [*range(8)] for c in range(8))
    assert str(swizzle) == "over (8 registers; 8 registers xor dim 0)"


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (
            Layout(((Digit(4, REGISTER), Digit(16, THREAD, 16)), (Digit(16, THREAD),))),
            "over (4 registers, 16 threads, 16 apart; 16 threads)",
        ),
        (Layout(((), (Digit(2, REGISTER), Digit(32, THREAD)))), "over (registers; 2 registers, 32 threads)"),
        (Layout(((), ())), "of each thread"),
    ],
)
def test_layouts_read(layout: Layout, text: str) -> None:
    assert str(layout) == text


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Layout, tuple[int, ...]]:
    """A layout of a buffer and the extents of its box, whose last digits along a dim may be registers that remain."""
    sizes = draw(st.lists(st.sampled_from((2, 3, 4, 8)), max_size=4))
    weights = [int(np.prod(sizes[:k])) for k in range(len(sizes))]
    threads = draw(st.permutations([Digit(n, THREAD, w) for n, w in zip(sizes, weights, strict=True)]))
    dims: list[list[Digit]] = [[] for _ in range(draw(st.integers(1, 3)))]
    for digit in threads:
        dim = draw(st.sampled_from(dims))
        below = draw(st.integers(1, 3))
        dim += [*([Digit(below, REGISTER)] if below > 1 else []), digit]
    layout = Layout(tuple(map(tuple, dims)))
    return layout, tuple(n * draw(st.integers(1, 3)) for n in layout.shape)


@given(layouts())
def test_every_element_has_a_place_of_its_own(case: tuple[Layout, tuple[int, ...]]) -> None:
    layout, extents = case
    whole = layout.of_box(extents)
    places = [whole.place(*at) for at in product(*map(range, extents))]
    assert whole.shape == extents
    assert {*places} == {Place(*at) for at in product(*(range(whole.count(unit)) for unit in (THREAD, REGISTER)))}
    assert len({*places}) == len(places)


@given(layouts(), st.data())
def test_neighbouring_threads_hold_elements_a_step_apart(
    case: tuple[Layout, tuple[int, ...]], data: st.DataObject
) -> None:
    layout, extents = case
    whole = layout.of_box(extents)
    at = [data.draw(st.integers(0, n - 1)) for n in extents]
    for dim in range(len(extents)):
        for far, digit in layout.steps(dim):
            if at[dim] // far % digit.size < digit.size - 1:
                there = [n + far if k == dim else n for k, n in enumerate(at)]
                here, next_to_it = whole.place(*at), whole.place(*there)
                assert next_to_it == Place(here.thread + digit.weight, here.register)
