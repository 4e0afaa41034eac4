"""Integers wrap in every range and every rewrite: random arithmetic on data, params and coordinates, evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pantile as pt
from pantile.analysis.interval import Interval, interval
from pantile.analysis.point import value_at
from pantile.expr.linear import Facts, simplify
from pantile.expr.magnitude import MAY_OVERFLOW, Magnitudes
from pantile.expr.nodes import Expr, Load, Op, Var, var
from pantile.expr.types import INDEX, INT32, INT64, DType, dtype
from pantile.expr.visit import names, walk
from pantile.graph.widen import IndexWidener
from pantile.reference.expressions import PointEvaluator
from tests.expr.integers import TYPES, integers, some_extreme

from .indices import cases

PARAMS = {f"p_{t}": t for t in TYPES}
COORDINATES = ("x", "y")
Box = dict[str, tuple[int, int]]


def leaf(draw: st.DrawFn, t: DType) -> Expr | None:
    if t is INT32 and draw(st.booleans()):
        return Var(INT32, 1, draw(st.sampled_from(COORDINATES)))
    if draw(st.booleans()):
        return Var(t, 1, f"p_{t}")
    return Load(t, 1, f"d_{t}", (Var(INT32, 1, "x"),))


@st.composite
def indices(draw: st.DrawFn) -> Expr:
    """As part of an index, as the graph has it."""
    t = draw(st.sampled_from(TYPES))
    return IndexWidener(PARAMS).index(draw(integers(leaf, t, 3)))


@st.composite
def values(draw: st.DrawFn) -> Expr:
    """As a pixel, as the graph has it."""
    return IndexWidener(PARAMS).value(draw(integers(leaf, draw(st.sampled_from(TYPES)), 3)))


def evaluated(e: Expr, at: dict[str, int], data: dict[str, int]) -> Any:
    """With wrapping, at one point."""
    scalars = {n: np.asarray(v) for n, v in at.items()}
    with np.errstate(all="ignore"):
        found = PointEvaluator({}, scalars, lambda load, _: np.asarray(data[load.buffer]), lambda e, v, low, high: v)
        return found.value(e).item()


def points(seed: int, box: Box) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Values of the variables, coordinates in their box, and of the data."""
    rng = Random(seed)
    params = {n: some_extreme(rng, t) for n, t in PARAMS.items()}
    for _ in range(8):
        at = params | {n: rng.randint(*box[n]) for n in COORDINATES}
        yield at, {f"d_{t}": some_extreme(rng, t) for t in TYPES}


@st.composite
def ranges(draw: st.DrawFn) -> Box:
    first = st.integers(-40, 40) | st.sampled_from([-(1 << 31), (1 << 31) - 9])
    lows = {n: draw(first) for n in COORDINATES}
    return {n: (low, low + draw(st.integers(0, 8))) for n, low in lows.items()}


def overflows(e: Expr, scope: dict[str, Interval]) -> bool:
    """Whether a call with such coordinates is refused, as index arithmetic may leave 64 bits."""
    found = (interval(n, scope) for n in walk(e) if isinstance(n, Op) and n.dtype is INDEX and n.op in MAY_OVERFLOW)
    return any(not (r.bounded and INDEX.min <= r.low and r.high <= INDEX.max) for r in found)


def holds(r: Interval, value: int) -> bool:
    return (r.low is None or r.low <= value) and (r.high is None or value <= r.high)


def scope_of(at: dict[str, int], box: Box) -> dict[str, Interval]:
    return {n: Interval.point(at[n]) for n in PARAMS} | {n: Interval(*box[n]) for n in COORDINATES}


SEEDS = st.integers(0, 1 << 20)


@cases(150)
@given(indices(), ranges(), SEEDS)
def test_ranges_of_a_call_hold_what_is_computed(e: Expr, box: Box, seed: int) -> None:
    for at, pixels in points(seed, box):
        scope = scope_of(at, box)
        assume(not overflows(e, scope))
        assert holds(interval(e, scope), evaluated(e, at, pixels)), (str(e), at, pixels)


@cases(150)
@given(indices(), ranges(), SEEDS)
def test_ranges_in_code_hold_what_is_computed(e: Expr, box: Box, seed: int) -> None:
    """Ends as expressions of params and of where the coordinates begin and end."""
    assume(not any(overflows(e, scope_of(at, box)) for at, _ in points(seed, box)))
    assert_held_in_code(e, box, seed)


@pytest.mark.parametrize("name", ["int64", "uint64", "uint32", "int32"])
def test_ranges_in_code_of_products_that_wrap(name: str) -> None:
    """The ends of a product may not fit the 64 bits in which code computes them."""
    t = dtype(name)
    product = Var(t, 1, f"p_{name}") * Load(t, 1, f"d_{name}", (Var(INT32, 1, "x"),))
    for seed in range(8):
        assert_held_in_code(IndexWidener(PARAMS).index(product), {"x": (0, 8), "y": (0, 8)}, seed)


def assert_held_in_code(e: Expr, box: Box, seed: int) -> None:
    found = interval(e, {n: Interval(var(f"{n}.low"), var(f"{n}.high")) for n in COORDINATES})
    for at, pixels in points(seed, box):
        at |= {f"{n}.low": low for n, (low, _) in box.items()} | {f"{n}.high": high for n, (_, high) in box.items()}
        ends = [evaluated(v, at, {}) if isinstance(v, Expr) else v for v in (found.low, found.high)]
        assert holds(Interval(*ends), evaluated(e, at, pixels)), (str(e), str(found.low), str(found.high), at, pixels)


@cases(150)
@given(indices() | values(), ranges(), SEEDS)
def test_simplifying_keeps_what_is_computed(e: Expr, box: Box, seed: int) -> None:
    simpler = simplify(e, Facts({n: box[n] for n in COORDINATES}))
    for at, pixels in points(seed, box):
        assume(not overflows(e, scope_of(at, box)))
        assert evaluated(simpler, at, pixels) == evaluated(e, at, pixels), (str(e), str(simpler), at, pixels)


def test_bounds_of_facts_are_those_of_the_type() -> None:
    """A 64-bit pixel may be anything, and so may what is made of it; a param is known as far as facts say."""
    pixel, param = Load(INT64, 1, "a", (var("x"),)), Var(INT32, 1, "n")
    widened = IndexWidener({"n"})
    assert Facts().lower(widened.index(pixel * 2)) is None
    assert (Facts().lower(widened.index(param)), Facts().upper(widened.index(param))) == (INT32.min, INT32.max)
    assert Facts({"n": (3, 9)}).upper(widened.index(param + 1)) == 10
    assert names(widened.index(param + 1)) == {"n"}


@cases(150)
@given(indices() | values(), ranges(), SEEDS)
def test_magnitudes_bound_what_is_computed(e: Expr, box: Box, seed: int) -> None:
    most = Magnitudes().of(e) if e.dtype.is_int else None
    for at, pixels in points(seed, box):
        assume(not overflows(e, scope_of(at, box)))
        assert most is None or abs(evaluated(e, at, pixels)) <= most, (str(e), most, at, pixels)


@pytest.mark.parametrize("offset", [
    "pt.clamp(v, 0, 2)", "pt.minimum(pt.maximum(v, 0), 2)", "2 - pt.clamp(v, -1, 2)", "v % 3", "(v & 3)",
    "pt.clamp(v // 1000, 0, 2)", "pt.clamp(v, 0, 2)*pt.clamp(v, 0, 1)", "pt.within(v & 3, 0, 3)",
])  # fmt: skip
@pytest.mark.parametrize("target", ["host", "cuda-sim"])
def test_a_clamped_pixel_of_64_bits_is_added_to_a_coordinate(offset: str, target: str) -> None:
    """The sum cannot wrap, so that it is an index, which has bounds."""
    y, x = pt.vars("y x")
    img, f, g = pt.Input("img", "int64", 2), pt.Func("f"), pt.Func("g")
    f[y, x] = img[y, x] + 1
    g[y, x] = f[y + eval(offset, {"pt": pt, "v": img[y, x]}), x]
    p = pt.Pipeline(g, shape=(5, 4), schedule=pt.Schedule(pt.on("f").compute_root()), target=target)
    pixels = np.random.default_rng(0).integers(-(1 << 63), (1 << 63) - 1, (9, 4))
    np.testing.assert_array_equal(p(img=pixels), p.reference(img=pixels))


def test_a_type_that_holds_all_values_of_another_does_not_widen_their_range() -> None:
    """What a tile reads is found in code, and what all tiles read, from that."""
    narrow = pt.cast("int8", var("x") * 16)
    of_tile = interval(pt.cast("int32", narrow), {"x": Interval(var("first"), var("first") + 3)})
    of_all = interval(of_tile.low, {"first": Interval(0, var("n"))}).low
    assert min(value_at(of_all, {"n": n}) for n in (0, 3, 100)) == -128


def test_what_a_shift_leaves_of_unknown_numbers_is_little() -> None:
    """The shift is a quotient of an index of which only the type is known; a panel is a quotient of that again."""
    x, img, gain = pt.Var("x"), pt.Input("img", "int64", ndim=1), pt.Param("gain", "int64")
    mirrored, out = pt.Func("mirrored"), pt.Func("out")
    mirrored[x] = pt.mirror(img)[x]
    out[x] = mirrored[x] + mirrored[pt.halving_add(3 * gain, 7 & gain) >> 61]
    p = pt.Pipeline(out, shape=img.shape)
    panels = pt.Schedule(pt.on("mirrored").compute_inline().panels("x", "panel", "lane", 8))
    for value in (3, -65536, -(1 << 63)):
        arguments = {"img": np.arange(11), "gain": value}
        np.testing.assert_array_equal(p.with_schedule(panels)(**arguments), p.reference(**arguments))
