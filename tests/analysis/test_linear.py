"""Simplified expressions keep their value, and proved bounds hold, wherever the facts do."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pantile.expr.build import binary, cast
from pantile.expr.congruence import congruence
from pantile.expr.linear import Facts, linear, simplify
from pantile.expr.nodes import Const, Expr, Load, const, op, var
from pantile.expr.types import INDEX, INT64, dtype
from pantile.expr.visit import walk

from .indices import affine, boxes, cases, conditions, indices, points, value

NAMES = "xyz"
LOOPS = [var(n) for n in NAMES]
Box = dict[str, tuple[int, int]]


@st.composite
def known(draw: st.DrawFn, box: Box) -> Facts:
    """Facts that are true in the box: some bounds, some of them loose."""
    slack = st.none() | st.integers(0, 3)
    sides = {n: (draw(slack), draw(slack)) for n in draw(st.sets(st.sampled_from(NAMES)))}
    return Facts(
        {n: (None if a is None else box[n][0] - a, None if b is None else box[n][1] + b) for n, (a, b) in sides.items()}
    )


boxes_and_facts = boxes(NAMES).flatmap(lambda box: st.tuples(st.just(box), known(box)))


@cases(200)
@given(indices(LOOPS), boxes_and_facts)
def test_simplifying_keeps_the_value(e: Expr, where: tuple[Box, Facts]) -> None:
    box, facts = where
    simple = simplify(e, facts)
    assert simple.dtype == e.dtype
    for at in points(box):
        assert value(simple, at) == value(e, at), (at, str(simple))


@cases(100)
@given(conditions(indices(LOOPS, 2)), boxes_and_facts)
def test_simplifying_keeps_conditions(e: Expr, where: tuple[Box, Facts]) -> None:
    box, facts = where
    simple = simplify(e, facts)
    for at in points(box):
        assert bool(value(simple, at)) == bool(value(e, at)), (at, str(simple))


@cases(60)
@given(indices(LOOPS), boxes_and_facts)
def test_simplifying_again_changes_nothing_of_the_value(e: Expr, where: tuple[Box, Facts]) -> None:
    box, facts = where
    once = simplify(e, facts)
    twice = simplify(once, facts)
    assert size(twice) <= size(once)
    for at in points(box):
        assert value(twice, at) == value(e, at)


def size(e: Expr) -> int:
    return sum(1 for _ in walk(e))


@cases(200)
@given(indices(LOOPS), boxes_and_facts)
def test_proved_bounds_hold(e: Expr, where: tuple[Box, Facts]) -> None:
    box, facts = where
    low, high = facts.lower(e), facts.upper(e)
    for at in points(box):
        v = value(e, at)
        assert (low is None or low <= v) and (high is None or v <= high), (at, low, v, high)


@cases(100)
@given(indices(LOOPS, 2), indices(LOOPS, 2), boxes_and_facts)
def test_proved_orders_hold(a: Expr, b: Expr, where: tuple[Box, Facts]) -> None:
    box, facts = where
    if facts.ge(a, b):
        assert all(value(a, at) >= value(b, at) for at in points(box))


@cases(200)
@given(indices(LOOPS), st.fixed_dictionaries({n: st.tuples(st.integers(1, 6), st.integers(0, 5)) for n in NAMES}))
def test_classes_hold(e: Expr, classes: dict[str, tuple[int, int]]) -> None:
    modulus, r = congruence(e, classes)
    for steps in itertools.product((-2, 0, 1), repeat=len(NAMES)):
        at = {n: classes[n][1] + k * classes[n][0] for n, k in zip(NAMES, steps, strict=True)}
        assert (value(e, at) - r) % modulus == 0 if modulus else value(e, at) == r, (at, modulus, r)


@cases(100)
@given(affine(LOOPS, least_divisor=1), boxes(NAMES))
def test_bounds_of_affine_forms_are_exact(e: Expr, box: Box) -> None:
    facts = Facts(dict(box))
    values = [value(e, at) for at in points(box)]
    assert (facts.lower(e), facts.upper(e)) == (min(values), max(values))


@cases(100)
@given(indices(LOOPS), boxes(NAMES))
def test_linear_forms_keep_the_value(e: Expr, box: Box) -> None:
    again = linear(e).expr()
    for at in points(box):
        assert value(again, at) == value(e, at)


def test_what_cancels_and_what_is_proved_goes() -> None:
    x, y = var("x"), var("y")
    facts = Facts({"x": (0, 9), "y": (3, None)})
    assert text(x + y - x, facts) == "y"
    assert text(2 * x + 4 - (x + x), facts) == "4"
    assert text(x // 16, facts) == "0" and text(x % 16, facts) == "x"
    assert text((8 * x + 5) // 8, facts) == "x" and text((8 * x + 13) % 8, facts) == "5"
    assert text((4 * y + 6) // 8, facts) == "(y + 1)//2" and text((4 * y + 6) % 8, facts) == "(y + 1)%2*4 + 2"
    even = binary("min", 64 * x, y // 4 * 4 - 8) + 6
    assert text(even % 2, facts) == "0" and text((even + 1) % 2, facts) == "1"
    assert text((even + 1) // 2 - even // 2, facts) == "0"
    assert facts.lower(y // 3 * 3) == 3 and facts.lower(y // 3 * 3 - y) == -2
    assert simplify(y >= 3, facts).value is True  # type: ignore[attr-defined]
    assert simplify(x > 9, facts).value is False  # type: ignore[attr-defined]
    assert isinstance(simplify(const(3, INDEX) * 2, facts), Const)


def test_quotients_of_a_pyramid() -> None:
    """Sizes of levels of a pyramid meet as quotients of one extent by different powers of two."""
    w = var("w")
    facts = Facts({"w": (1, None)})
    assert text(((w + 1) // 2 + 1) // 2, facts) == "(w + 3)//4"
    assert text((w // 2 + 6) // 4 - 1, facts) == "(w + 4)//8"
    assert facts.lower(3 + w // 2 - (w + 1) // 2) == 2
    assert facts.ge(2 * ((w - 1) // 128) + 6, (w - 1) // 64 + 2)
    assert not facts.ge(2 * ((w - 1) // 128) + 2, (w - 1) // 64 + 2)


def test_quotients_of_quotients_stay_within_64_bits() -> None:
    pixel, w = cast(INDEX, Load(INT64, 1, "img", (var("x"),))), var("w")
    far, farther = 1 << 61, 1 << 62
    assert text(pixel // far // 2, Facts()) == f"index(img[x])//{farther}"
    assert text(pixel // far // far, Facts()) == f"index(img[x])//{far}//{far}"
    assert text((pixel // 8 + 5) // 2, Facts()) == "(index(img[x])//8 + 1)//2 + 2"  # it may be near 2**63
    assert text((w // 8 + 5) // 2, Facts()) == "(w + 8)//16 + 2"


def text(e: Expr, facts: Facts) -> str:
    return str(simplify(e, facts))


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_limits_of_data_are_known(kind: str) -> None:
    """Of what an index is made of: how early a sliding loop starts, for one, depends on it."""
    data = Load(dtype(kind), 1, "a", (const(0, INDEX),))
    low, high = const(-2, data.dtype), const(15, data.dtype)
    facts = Facts()
    for clamped in (op("max", op("min", data, high), low), op("min", op("max", data, low), high)):
        index = cast(INDEX, clamped) + 3
        assert (facts.lower(index), facts.upper(index)) == (1, 18)
    at_most = cast(INDEX, op("min", data, high))
    assert facts.upper(at_most) == 15
    assert facts.lower(at_most) == (None if kind == "int64" else data.dtype.min)
