"""Expressions that share subexpressions at every level take time by their nodes, not by the trees they stand for."""

from __future__ import annotations

import random

import pytest

from pantile.analysis.interval import Interval, interval
from pantile.expr.build import maximum, minimum, select
from pantile.expr.congruence import congruence
from pantile.expr.linear import Facts, Linear, _BoundProver, linear, simplify
from pantile.expr.nodes import Expr, Instruction, Load, var
from pantile.expr.show import Sharing
from pantile.expr.types import INDEX, INT32
from pantile.expr.visit import key, same, transform

LEVELS = 40  # as trees, these have 2**40 leaves


def shared(name: str = "x") -> Expr:
    e: Expr = var(name)
    for _ in range(LEVELS):
        e = minimum(e // 2, maximum(e * 3 - 1, var("n")))
    return e


def test_equal_expressions_have_equal_keys() -> None:
    assert [key(shared()) == key(shared()), key(shared()) == key(shared("y"))] == [True, False]


def test_instructions_with_other_names_have_other_keys() -> None:
    """Kernels that differ in an instruction are not merged, and their values not shared."""
    shuffled, other = (Instruction(INT32, 1, name, (var("x"), var("y"))) for name in ("shuffle", "other"))
    assert key(shuffled) != key(other)


def test_values_that_do_not_vary_are_points() -> None:
    e = shared()
    found = interval(e, {"y": Interval(0, 9)})
    itself = found.is_point and found.low is e  # a name, since pytest would print the tree
    assert itself


def test_classes_of_shared_operands_are_found_once() -> None:
    assert congruence(shared(), {"x": (4, 0), "n": (4, 0)}) == (1, 0)
    assert congruence(shared() * 4 + 3, {"z": (4, 0)}) == (4, 3)


def test_what_was_simplified_is_not_simplified_again() -> None:
    facts = Facts({"x": (0, None)})
    x, y = var("x"), var("y")
    e = minimum(x + 1, y) * 2 - 1
    once = simplify(e, facts)
    assert simplify(e, facts) is once
    assert simplify(once, facts) is once


def test_what_a_select_between_equal_ones_becomes_is_not_changed_again() -> None:
    """Both loads become the same one, the select that one, which has its place already."""
    made: dict[tuple[object, ...], Expr] = {}

    def flat(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        y, x = e.indices
        return made.setdefault(key(e), Load(INT32, 1, e.buffer, (y * 100 + x,)))

    first, second = (Load(INT32, 1, "f", (var("y", INDEX), var("x", INDEX))) for _ in range(2))
    e = select(var("x", INDEX) < 3, first, second)
    assert e is not first
    assert transform(e, flat) is made[key(first)]


def test_other_facts_are_noticed() -> None:
    facts = Facts({"x": (0, 9), "y": (0, 9)})
    e = maximum(var("x"), var("y"))
    assert simplify(e, facts) is e
    facts.bounds["x"] = (9, 20)
    assert same(simplify(e, facts), var("x"))
    facts.bounds["x"] = (0, 9)
    assert simplify(e, facts) is e


def test_bounds_are_searched_once_for_all_that_know_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = Facts._prove_bound

    def counted(facts: Facts, form: Linear, side: int) -> int | None:
        searched.append(side)
        return search(facts, form, side)

    monkeypatch.setattr(Facts, "_prove_bound", counted)
    e = minimum(var("searched.x"), var("searched.y")) + 1
    known = {"searched.x": (0, 9), "searched.y": (3, 5)}
    assert [Facts(known).upper(e), Facts({**known, "z": (0, 1)}).upper(e), len(searched)] == [6, 6, 1]
    assert [Facts(known).lower(e), len(searched)] == [1, 2]
    assert [Facts({**known, "searched.y": (3, 4)}).upper(e), len(searched)] == [5, 3]


def test_what_a_search_remembers_changes_nothing_that_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where it gives up, either."""
    rng = random.Random(7)
    known = {"a": (0, 9), "b": (-4, None), "c": (None, 30), "d": (2, 2)}

    def nested(depth: int) -> Expr:
        if depth == 0:
            return var(rng.choice("abcd")) * rng.choice((1, 1, -2, 3)) + rng.randint(-5, 5)
        x, y = nested(depth - 1), nested(rng.randrange(depth))
        return rng.choice([minimum(x, y), maximum(x, y), x // rng.choice((2, 3, 4)) * 2, x + y, x - y])

    forms = [linear(nested(rng.randint(1, 6))) for _ in range(150)]
    searched = [_BoundProver(known).bound(form, side) for form in forms for side in (-1, 1)]
    monkeypatch.setattr(_BoundProver, "_memoized_bound", _BoundProver._bound)
    assert [_BoundProver(known).bound(form, side) for form in forms for side in (-1, 1)] == searched
    assert 30 < sum(found is None for found in searched) < 270


def test_what_is_shared_is_named_where_it_is_written() -> None:
    text = Sharing([shared()], taken={"e2"})
    assert [name for name, _ in text.lets][:3] == ["e1", "e3", "e4"]
    whole = "".join(f"{name} = {value}" for name, value in text.lets) + text.text(shared())
    assert len(whole) < 100 * LEVELS
    written = {"min": min, "max": max, "x": 1234567, "n": 3}
    for name, value in text.lets:
        written[name] = eval(value, written)
    expected = 1234567
    for _ in range(LEVELS):
        expected = min(expected // 2, max(expected * 3 - 1, 3))
    assert eval(text.text(shared()), written) == expected


def test_what_is_short_is_written_out() -> None:
    x = var("x")
    text = Sharing([(x + 1) * (x + 1) * (x + 1)])
    assert (text.lets, text.text((x + 1) * (x + 1))) == ([], "(x + 1)*(x + 1)")
