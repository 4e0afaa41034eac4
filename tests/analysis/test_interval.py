"""Intervals against enumerated points: ints, NumPy arrays and expressions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pantile as pt
from pantile.analysis.bounds import ends_are_numbers
from pantile.analysis.interval import Evaluator, Interval, IntervalProgram, interval, narrowed_by, refine
from pantile.analysis.point import value_at
from pantile.expr import build
from pantile.expr.build import cast, expr, select
from pantile.expr.linear import Facts
from pantile.expr.nodes import Const, Expr, Load, Op, const, coordinate, op, var
from pantile.expr.types import FLOAT32, FLOAT64, INDEX, INT32, INT64, dtype
from pantile.expr.visit import walk

from .indices import affine, boxes, cases, conditions, float_indices, indices, points, value

NAMES = "xyz"
COORDINATES = [coordinate(n) for n in NAMES]
Box = dict[str, tuple[int, int]]


def scope_of(box: Box) -> dict[str, Interval]:
    return {n: Interval(low, high) for n, (low, high) in box.items()}


def holds(i: Interval, v: int) -> bool:
    return (i.low is None or i.low <= v) and (i.high is None or v <= i.high)


@cases(100)
@given(conditions(indices(COORDINATES, 1)), boxes(NAMES), st.booleans())
def test_conditions_bound_no_other_variables_than_they_are_said_to(c: Expr, box: Box, wanted: bool) -> None:
    scope = scope_of(box)
    found = refine(scope, c, wanted)
    changed = {n for n in scope if (found[n].low, found[n].high) != (scope[n].low, scope[n].high)}
    assert changed <= narrowed_by(c)


@cases(100)
@given(indices(COORDINATES), boxes(NAMES))
def test_steps_that_are_found_once_are_those_of_the_interval(e: Expr, box: Box) -> None:
    steps = IntervalProgram(e)
    for scope in (scope_of(box), scope_of({n: (low, high + 3) for n, (low, high) in box.items()})):
        found, wanted = steps.interval(scope), interval(e, scope)
        assert (found.low, found.high) == (wanted.low, wanted.high)
    arrays = {n: Interval(np.array([low, low - 1]), np.array([high, high + 1])) for n, (low, high) in box.items()}
    found, wanted = steps.interval(arrays), interval(e, arrays)
    for a, b in ((found.low, wanted.low), (found.high, wanted.high)):
        assert a is b is None or np.array_equal(a, b)


@cases(300)
@given(indices(COORDINATES), boxes(NAMES))
def test_every_value_is_inside(e: Expr, box: Box) -> None:
    found = interval(e, scope_of(box))
    for at in points(box):
        assert holds(found, value(e, at)), (at, found)


@cases(100)
@given(affine(COORDINATES), boxes(NAMES))
def test_affine_forms_are_exact(e: Expr, box: Box) -> None:
    found = interval(e, scope_of(box))
    values = [value(e, at) for at in points(box)]
    assert (found.low, found.high) == (min(values), max(values))


@cases(150)
@given(indices(COORDINATES), st.lists(boxes(NAMES), min_size=1, max_size=4))
def test_arrays_are_many_boxes_at_once(e: Expr, some: list[Box]) -> None:
    scope = {n: Interval(*(np.array([b[n][k] for b in some]) for k in (0, 1))) for n in NAMES}
    found = interval(e, scope)
    for k, box in enumerate(some):
        low, high = (v if v is None or np.ndim(v) == 0 else int(v[k]) for v in (found.low, found.high))
        assert all(holds(Interval(low, high), value(e, at)) for at in points(box))
        if not any(is_narrowed(n) for n in walk(e)):
            one = interval(e, scope_of(box))
            assert (low, high) == (one.low, one.high)


def is_narrowed(e: Expr) -> bool:
    """Whether knowing an operand's very number, which arrays do not have just one of, narrows the result."""
    if not isinstance(e, Op):
        return False
    return e.op in ("mod", "and", "select") or (e.op == "floordiv" and not isinstance(e.args[1], Const))


@cases(100)
@given(affine(COORDINATES), st.lists(boxes(NAMES), min_size=1, max_size=4))
def test_arrays_of_affine_forms_are_exact(e: Expr, some: list[Box]) -> None:
    scope = {n: Interval(*(np.array([b[n][k] for b in some]) for k in (0, 1))) for n in NAMES}
    found = interval(e, scope)
    low, high = (np.broadcast_to(v, len(some)).tolist() for v in (found.low, found.high))
    ones = [interval(e, scope_of(b)) for b in some]
    assert low == [i.low for i in ones] and high == [i.high for i in ones]


@cases(150)
@given(indices(COORDINATES), boxes(NAMES))
def test_bounds_as_expressions_hold(e: Expr, box: Box) -> None:
    scope = {n: Interval(var(f"{n}.low"), var(f"{n}.high")) for n in NAMES}
    found = interval(e, scope)
    ends = {f"{n}.{end}": v for n in NAMES for end, v in zip(("low", "high"), box[n], strict=True)}
    low, high = (value(v, ends) if isinstance(v, Expr) else v for v in (found.low, found.high))
    for at in points(box):
        assert holds(Interval(low, high), value(e, at)), (at, low, high)


@cases(300)
@given(indices(COORDINATES), boxes(NAMES))
def test_bounds_as_expressions_are_within_those_of_numbers(e: Expr, box: Box) -> None:
    """Code, which has expressions, computes no more of a stage than the check of a call, which has numbers, looks at.
    Remainders and masks of less than a period are narrower in numbers."""
    assume(not any(isinstance(n, Op) and n.op in ("mod", "and") for n in walk(e)))
    scope = {n: Interval(var(f"{n}.low"), var(f"{n}.high")) for n in NAMES}
    ends = {f"{n}.{end}": v for n in NAMES for end, v in zip(("low", "high"), box[n], strict=True)}
    in_code, at_call = interval(e, scope), interval(e, scope_of(box))
    low, high = (value(v, ends) if isinstance(v, Expr) else v for v in (in_code.low, in_code.high))
    assert low is None or at_call.low is None or low >= at_call.low
    assert high is None or at_call.high is None or high <= at_call.high


@cases(100)
@given(affine(COORDINATES), boxes(NAMES))
def test_bounds_of_affine_forms_as_expressions_are_exact(e: Expr, box: Box) -> None:
    scope = {n: Interval(var(f"{n}.low"), var(f"{n}.high")) for n in NAMES}
    found = interval(e, scope)
    ends = {f"{n}.{end}": v for n in NAMES for end, v in zip(("low", "high"), box[n], strict=True)}
    values = [value(e, at) for at in points(box)]
    low, high = (value(v, ends) if isinstance(v, Expr) else v for v in (found.low, found.high))
    assert (low, high) == (min(values), max(values))


@cases(100)
@given(indices(COORDINATES), boxes(NAMES))
def test_names_that_are_not_in_scope_stand_for_themselves(e: Expr, box: Box) -> None:
    found = interval(e, scope_of({"x": box["x"]}))
    for at in points(box):
        low, high = (value(v, at) if isinstance(v, Expr) else v for v in (found.low, found.high))
        assert holds(Interval(low, high), value(e, at)), (at, low, high)


def test_a_clamp_bounds_a_float_of_any_value() -> None:
    pixel = Load(FLOAT32, 1, "img", ())
    found = interval(pt.cast("int32", pt.clamp(pixel, 0, 1) * 10 + 0.5), {})
    assert (found.low, found.high) == (0, 10)
    from_below = interval(pt.maximum(pixel, 2) * 2 - 1, {})
    assert 2.99 < from_below.low <= 3 and from_below.high is None


SCALES = {FLOAT32: var("scale", FLOAT32), FLOAT64: var("scale64", FLOAT64)}
FLOAT_INDICES = st.sampled_from(list(SCALES.values())).flatmap(lambda scale: float_indices(COORDINATES, scale))


@cases(300)
@given(FLOAT_INDICES, boxes(NAMES), st.sampled_from([1.5, 0.5, -3.25, 0.1, -1e-3, 0.0, math.inf, -math.inf, math.nan]))
def test_places_by_floats(e: Expr, box: Box, scale: float) -> None:
    """Ends as expressions hold every value, and ends as numbers hold those; unless some of them are no numbers."""
    given = {s.name: build.round_to(scale, t) for t, s in SCALES.items()}
    known = {name: Interval.point(number) for name, number in given.items()}
    numbers = interval(e, scope_of(box) | known)
    in_code = {n: Interval(var(f"{n}.low"), var(f"{n}.high")) for n in NAMES}
    if not ends_are_numbers(e, in_code, scope_of(box) | known):
        return
    found = interval(e, in_code)
    ends = {f"{n}.{end}": v for n in NAMES for end, v in zip(("low", "high"), box[n], strict=True)}
    low, high = (value_at(v, ends | given) if isinstance(v, Expr) else v for v in (found.low, found.high))
    for at in points(box):
        assert holds(Interval(low, high), value_at(e, at | given)), (at, low, high)
    assert holds(numbers, low) and holds(numbers, high), (numbers, low, high)


@cases(100)
@given(FLOAT_INDICES, st.lists(boxes(NAMES), min_size=1, max_size=4))
def test_places_by_floats_in_many_boxes_at_once(e: Expr, some: list[Box]) -> None:
    given = {s.name: 0.75 for s in SCALES.values()}
    scope = {n: Interval(*(np.array([b[n][k] for b in some]) for k in (0, 1))) for n in NAMES}
    found = interval(e, scope | {name: Interval.point(number) for name, number in given.items()})
    for k, box in enumerate(some):
        low, high = (v if v is None or np.ndim(v) == 0 else int(v[k]) for v in (found.low, found.high))
        assert all(holds(Interval(low, high), value_at(e, at | given)) for at in points(box))


def test_a_place_by_a_float_is_tight() -> None:
    """Of rows of a picture made larger by half, those that are read and no other."""
    (y,) = pt.vars("y")
    e = cast(INDEX, pt.cast("int32", pt.floor((y + 0.5) / 1.5 - 0.5)))
    found = interval(e, {"y": Interval(10, 20)})
    assert (found.low, found.high) == (6, 13)


@cases(150)
@given(conditions(indices(COORDINATES, 1)), st.booleans(), boxes(NAMES))
def test_refining_keeps_all_points_where_the_condition_holds(condition: Expr, holding: bool, box: Box) -> None:
    inner = refine(scope_of(box), condition, holding)
    for at in points(box):
        if bool(value(condition, at)) == holding:
            assert all(holds(inner[n], at[n]) for n in NAMES), (at, inner)


def test_a_product_in_a_sum_may_be_fused() -> None:
    """The interval holds the value rounded once, as well as the value rounded after every operation."""
    rng, v = np.random.default_rng(0), var("v", FLOAT32)
    for a, b, high in rng.random((200, 3), dtype=np.float32).tolist():
        found = interval(v * a + b, {"v": Interval(0.0, high)})
        once = float(np.float32(float(np.float32(high)) * float(np.float32(a)) + float(np.float32(b))))
        assert found.low <= 0 + b and once <= found.high


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@cases(300)
@given(st.lists(st.sampled_from(INTEGERS), min_size=2, max_size=4), st.integers(-9, 9), st.integers(0, 9))
def test_data_wraps(types: list[str], offset: int, least: int) -> None:
    """Pixels that are cast, shifted and bounded from below: all of them are inside."""
    first = dtype(types[0])
    ends = (-(1 << 62), 1 << 62) if first == INT64 else (first.min, first.max)
    pixel, pixels = Load(first, 1, "img", ()), np.array([0, 1, 10, first.max // 2, *ends], types[0])
    for t in types[1:]:
        pixel, pixels = pt.cast(t, pixel), pixels.astype(t)
        low, shift = np.array([least, offset]).astype(t)
        pixel = pt.maximum(pixel + pt.cast(t, int(shift)), pt.cast(t, int(low)))
        pixels = np.maximum(pixels + shift, low)
    found = interval(pixel, {})
    assert all(holds(found, int(v)) for v in pixels), (pixel, pixels, found)


def test_what_is_cast_to_bool_is_0_or_1() -> None:
    (x,) = pt.vars("x")
    img = pt.Input("img", "uint8", ndim=1)
    found = touched_index(pt.cast("int32", pt.cast("bool", img[x])) + 3)
    assert (found.low, found.high) == (3, 4)


def touched_index(e: pt.Expr) -> Interval:
    """The interval of an expression of a Func of x."""
    f = pt.Func("f")
    f[pt.Var("x")] = e
    return interval(pt.Pipeline(f, shape=(4,)).graph.stages[-1].pure.values[0], {})


def test_a_shift_by_all_bits_but_one_has_no_known_ends() -> None:
    """2**63 is no index: the ends would be products with it."""
    x = coordinate("x")
    found = interval(x << const(63, INDEX), {"x": Interval(x, x + 1)})
    assert found.low is None and found.high is None


def test_clamped_coordinates_fit_a_narrower_type() -> None:
    """The range of a clamp is known whatever is clamped: here a choice between a coordinate and a number."""
    y, x, n = (coordinate(name) for name in "yxn")
    chosen = select(cast(INT64, x) * 3 > cast(INT64, y), cast(INT64, x), const(1, INT64))
    e = cast(INT32, op("max", op("min", chosen, const(3, INT64)), const(-2, INT64)))
    r = interval(e, {"x": Interval(0, n - 1), "y": Interval(0, n - 1)})
    assert Facts().lower(expr(r.low, INDEX)) == 0 and Facts().upper(expr(r.high, INDEX)) == 3


def test_sums_of_clamped_data_stay_in_their_type() -> None:
    """The ends are clamps of what a coordinate is as bits: one less is no less than the type has."""
    bits = pt.cast("int64", pt.bits("uint32", cast(INT32, coordinate("y"))))
    clamped = pt.clamp(pt.maximum(pt.cast("int64", Load(dtype("uint8"), 1, "img", ())), bits), -2, 15)
    r = interval(pt.cast("int32", clamped) - 1, {})
    assert Facts().lower(expr(r.low, INDEX)) >= -3 and Facts().upper(expr(r.high, INDEX)) == 14


def test_the_smaller_mask_limits() -> None:
    """Also where the other operand is a number that only arithmetic on its ends has found."""
    number = pt.cast("int32", pt.floor(pt.cast("float32", const(5, INT32)) * 1e6))
    for masked in (number & 7, const(7, INT32) & number):
        found = interval(masked, {})
        assert (found.low, found.high) == (0, 7)


def test_one_end_may_be_larger_than_any_index() -> None:
    found = interval(op("mul", var("data", INT64), const(3, INT64)), {"data": Interval(0 - var("n"), INT64.max)})
    assert (found.low, found.high) == (INT64.min, INT64.max)


def test_ends_that_no_index_holds_beside_expressions() -> None:
    scope = {"r": Interval(-1, coordinate("k")), "v": Interval(INT64.min, INT64.max)}
    r, v = (coordinate(name) for name in scope)
    assert interval(r * v, scope).high == -INT64.min  # -1 * INT64.min, which is more than any other product can be
    for e in (r + v * 4, v * 4 - r, v * 4 * r):
        found = interval(e, scope)
        assert found.low is None or found.high is None, e
    assert interval(build.maximum(r, v * 4), scope).high == 4 * INT64.max


def test_divided_by_what_a_number_and_a_coordinate_limit() -> None:
    divisor, end = var("divisor", FLOAT64), cast(FLOAT64, COORDINATES[0])
    found = interval(op("div", const(6.5, FLOAT64), divisor), {"divisor": Interval(0.0, end, sure=True)})
    assert isinstance(found.low, Expr)  # known where it is not divided by 0


def test_what_conditions_compare_is_evaluated_once_where_it_is_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, place = Load(INT32, 1, "data", (COORDINATES[0],)), COORDINATES[1]
    for k in range(60):
        shared = op("add", op("mul", shared, const(3, INT32)), const(k, INT32))
    e: Expr = const(0, INDEX)
    for k in range(10):
        e = select(cast(INDEX, shared) + place <= k, place + k, e)
    visited: list[Expr] = []
    node = Evaluator.node

    def counted(self: Evaluator, e: Expr) -> Interval:
        visited.append(e)
        return node(self, e)

    monkeypatch.setattr(Evaluator, "node", counted)
    interval(e, scope_of({"x": (0, 9), "y": (0, 9)}))
    assert len(visited) < 10 * (60 * 4 + 20)  # once per scope, though both branches ask for it
