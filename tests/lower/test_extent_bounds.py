"""Constants that extents never exceed: no less than they are anywhere, and found where a block has to hold them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pantile.expr.build import maximum, minimum
from pantile.expr.linear import simplify
from pantile.expr.nodes import Const, Expr, const, var
from pantile.expr.types import INDEX
from pantile.expr.visit import substitute
from pantile.lower.extent_bounds import most

t, n = var("t"), var("n")  # the number of a tile, and the size of a picture
last = minimum(t * 8, n - 8)  # where a tile begins that is moved inwards


def clamped(e: Expr, high: Expr) -> Expr:
    return maximum(minimum(e, high), const(0, INDEX))


@pytest.mark.parametrize(
    ("extent", "bound"),
    [
        (minimum(t * 8 + 7, n) - t * 8 + 1, 8),
        (n - n // 8 * 8, 7),
        (last + 8 - last, 8),
        (minimum(last + 7, n - 1) - last + 1, 8),
        ((t * 8 + 7) // 2 - t * 8 // 2 + 1, 4),
        ((last + 7) // 2 - last // 2 + 1, 5),
        ((minimum(t * 8 + 7, n) + 7) // 8 * 8 - minimum(t * 4, (minimum(t * 8 + 7, n) + 1) // 2) // 4 * 8, 8),
        (clamped(t * 8 + 9, n) - clamped(t * 8 - 1, n), 10),
        (clamped(clamped(t * 4 + 5, n // 2) * 2 + 2, n) - clamped(clamped(t * 4 - 1, n // 2) * 2 - 1, n), 15),
        (minimum(t * 32 + 31, n - 1) // 8 - t * 4 + 1, 4),  # cells that a block of pixels lies in
        ((minimum(t * 32, n - 32) + 31) // 8 - minimum(t * 32, n - 32) // 8 + 1, 5),  # of one that is moved
        (n // 4 * 2 - (n + 3) // 8 * 4, 2),
        (n // 16 - n // 64 * 4, 3),
        (3 * (n // 2) - n // 10 * 15 + 1, 13),
        ((n + 3) // 4 * 3 - n // 8 * 6, 6),
        ((minimum(t + 19, n) - t + 1) // 10, 2),
        (maximum(minimum(t + 7, n) - t + 1, 0), 8),
        # As in camera_pipe at the size of one block.
        (2 * (minimum(t * 32 + 31, n) // 4) - minimum(t * 32 - 1, minimum(t * 32 + 31, n) // 4 * 4 + 3) // 2, 15),
        (maximum(t // 2, t // 2 + t % 2 * 2 - 1) - minimum(t // 2, t // 2 + t % 2 * 2 - 1) + 1, 2),
    ],
)
def test_bounds(extent: Expr, bound: int) -> None:
    found = most(extent, {})
    assert found == bound
    assert max(_value(extent, a, b) for a, b in itertools.product(range(-3, 12), range(60))) <= found


@pytest.mark.parametrize(
    "extent", [n - t, n // 16 - n // 60 * 4, n // 8 * 4 - n // 4, maximum(t, n) - t, minimum(t, n) * 2 - t]
)
def test_what_has_none(extent: Expr) -> None:
    assert most(extent, {}) is None


_parts = st.recursive(
    st.sampled_from([t, n]) | st.integers(-9, 9).map(lambda k: const(k, INDEX)),
    lambda e: st.one_of(
        st.tuples(e, e).map(lambda ab: ab[0] + ab[1]),
        st.tuples(e, e).map(lambda ab: ab[0] - ab[1]),
        st.tuples(e, e).map(lambda ab: minimum(*ab)),
        st.tuples(e, e).map(lambda ab: maximum(*ab)),
        st.tuples(e, st.integers(2, 6)).map(lambda ek: ek[0] * ek[1]),
        st.tuples(e, st.integers(2, 6)).map(lambda ek: ek[0] // ek[1]),
        st.tuples(e, st.integers(2, 6)).map(lambda ek: ek[0] % ek[1]),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(_parts, st.integers(1, 9), st.integers(1, 9))
def test_bounds_of_differences_hold_everywhere(e: Expr, apart: int, n_apart: int) -> None:
    """The expression at one place minus itself at another, as the length of what lies between two others."""
    extent = substitute(e, {"t": t + apart, "n": n + n_apart}) - e
    found = most(extent, {})
    if found is not None:
        assert max(_value(extent, a, b) for a, b in itertools.product((-40, -7, -1, 0, 1, 2, 5, 40), repeat=2)) <= found


def _value(e: Expr, tile: int, size: int) -> int:
    found = simplify(substitute(e, {"t": const(tile, INDEX), "n": const(size, INDEX)}))
    assert isinstance(found, Const)
    return int(found.value)


def test_that_the_search_gives_up() -> None:
    """The cases of clamps in quotients in clamps are larger than the extent itself."""

    def nested(e: Expr) -> Expr:
        for k in range(6):
            e = clamped((e * 3 + k) // 2, var(f"n{k}") - k) + minimum((e + 5) // 4, var(f"n{k}") // 3)
        return e

    assert most(nested(t * 8 + 7) - nested(t * 8), {}) is None
