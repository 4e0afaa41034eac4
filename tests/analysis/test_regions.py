"""What is read, against enumerated pixels: boxes of loads, and the boxes that whole pipelines require."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import pantile as pt
from pantile.analysis.interval import MOST_SCOPES, Interval
from pantile.analysis.regions import Box, expressions, load_boxes, required
from pantile.expr.build import cast, select
from pantile.expr.nodes import Expr, Load, coordinate, var
from pantile.expr.types import INT32
from pantile.graph.nodes import Graph, Stage
from pantile.lang.build import build

from .indices import affine, boxes, cases, conditions, indices, points, reads, value

Ranges = dict[str, tuple[int, int]]
Pixels = set[tuple[int, ...]]
Y, X = coordinate("y"), coordinate("x")
RANK = {"f": 1, "g": 2}
INDEX = indices([Y, X], 2)
CONDITION = conditions(indices([Y, X], 1))


def inside(place: tuple[int, ...], box: Box) -> bool:
    pairs = zip(place, box, strict=True)
    return all((s.low is None or s.low <= v) and (s.high is None or v <= s.high) for v, s in pairs)


def hull(pixels: Pixels) -> list[tuple[int, int]]:
    return [(min(side), max(side)) for side in zip(*pixels, strict=True)]


def ends(box: Box) -> list[tuple[Any, Any]]:
    return [(s.low, s.high) for s in box]


# ---- expressions


@st.composite
def loads(draw: st.DrawFn, index: st.SearchStrategy[Expr]) -> Expr:
    buffer = draw(st.sampled_from(list(RANK)))
    return Load(INT32, 1, buffer, tuple(draw(index) for _ in range(RANK[buffer])))


@st.composite
def reading(draw: st.DrawFn, depth: int = 2) -> Expr:
    """Sums and selects of loads."""
    kind = draw(st.sampled_from(["load", "add", "select"])) if depth else "load"
    if kind == "load":
        return draw(loads(INDEX))
    a, b = draw(reading(depth - 1)), draw(reading(depth - 1))
    return a + b if kind == "add" else select(draw(CONDITION), a, b)


def enumerated(e: Expr, box: Ranges) -> dict[str, Pixels]:
    found: dict[str, Pixels] = {}
    for at in points(box):
        for buffer, place in reads(e, at):
            found.setdefault(buffer, set()).add(place)
    return found


@cases(150)
@given(reading(), boxes("yx"))
def test_every_read_is_inside_its_box(e: Expr, box: Ranges) -> None:
    found = load_boxes([e], {n: Interval(*r) for n, r in box.items()})
    for buffer, pixels in enumerated(e, box).items():
        assert all(inside(p, found[buffer]) for p in pixels)


@cases(100)
@given(loads(affine([Y, X])), boxes("yx"))
def test_boxes_of_affine_reads_are_exact(e: Expr, box: Ranges) -> None:
    found = load_boxes([e], {n: Interval(*r) for n, r in box.items()})
    for buffer, pixels in enumerated(e, box).items():
        assert ends(found[buffer]) == hull(pixels)


@cases(100)
@given(reading(), boxes("yx"))
def test_boxes_as_expressions_hold(e: Expr, box: Ranges) -> None:
    found = load_boxes([e], {n: Interval(var(f"{n}.low"), var(f"{n}.high")) for n in "yx"})
    at = {f"{n}.{end}": v for n in "yx" for end, v in zip(("low", "high"), box[n], strict=True)}
    for buffer, pixels in enumerated(e, box).items():
        sides = [[value(v, at) if isinstance(v, Expr) else v for v in (s.low, s.high)] for s in found[buffer]]
        assert all(inside(p, tuple(Interval(*s) for s in sides)) for p in pixels)


def test_a_branch_that_is_not_taken_reads_nothing() -> None:
    e = select(X > 0, Load(INT32, 1, "f", (X - 1,)), cast(INT32, 0))
    assert ends(load_boxes([e], {"x": Interval(0, 9)})["f"]) == [(0, 8)]


def test_variables_and_constants_of_many_branches_are_limited_by_each_one() -> None:
    """All of them read 7*x, of the one x and the one 7."""
    count = 2 * MOST_SCOPES
    reads = [select(k > X, Load(INT32, 1, "f", (X * 7,)), 0) for k in range(1, count + 1)]
    assert ends(load_boxes(reads, {"x": Interval(0, 1000)})["f"]) == [(0, 7 * (count - 1))]


# ---- pipelines


@st.composite
def reading_indices(draw: st.DrawFn, exact: bool) -> tuple[Expr, Expr]:
    """Where a stage reads the one before it: shifted, scaled up or down, clamped, and more unless it must be exact."""

    def one(v: Expr, other: Expr) -> Expr:
        forms = [
            v + draw(st.integers(-2, 2)),
            2 * v + draw(st.integers(-2, 2)),
            (v + draw(st.integers(-2, 2))) // 2,
            pt.clamp(v - 1, draw(st.integers(-3, 0)), draw(st.integers(0, 5))),
        ]
        if not exact:
            forms += [(v + 1) % 3 + v, v + other // 2, v * (other % 2), pt.select(v > other, v - other, v), abs(v)]
        return forms[draw(st.integers(0, len(forms) - 1))]

    y, x = pt.vars("y x")
    return one(y, x), one(x, y)


@st.composite
def chains(draw: st.DrawFn, exact: bool) -> Graph:
    """A few stages, each reading one or two places of any before it, some summing over a window."""
    y, x = pt.vars("y x")
    sources: list[Any] = [pt.Input("img", "int32", 2)]
    for k in range(draw(st.integers(1, 4))):
        f, source = pt.Func(f"f{k}"), sources[draw(st.integers(0, k))]
        kind = draw(st.sampled_from(["plain", "plain", "two", "sum", "chosen"][: None if not exact else 4]))
        at = draw(reading_indices(exact))
        if kind == "sum":
            r = pt.RDom((draw(st.integers(-2, 0)), 3), (0, draw(st.integers(1, 2))), name=f"r{k}")
            f[y, x] = pt.sum(source[at[0] + r[0], at[1] + 2 * r[1]], over=r)
        elif kind == "chosen":
            f[y, x] = pt.select(x + y > draw(st.integers(-2, 6)), source[at], sources[-1][y - 3, x])
        else:
            f[y, x] = source[at] + (sources[-1][draw(reading_indices(exact))] if kind == "two" else 0)
        sources.append(f)
    return build(sources[-1], (5, 5))


def brute_force(graph: Graph, asked: Ranges) -> dict[str, Pixels]:
    """Pixels that each stage and input must have, where a stage that is needed somewhere is computed over a box."""
    pixels: dict[str, Pixels] = {graph.outputs[0].stage: {tuple(at.values()) for at in points(asked)}}
    for stage in (s for s in reversed(graph.stages) if s.name in pixels):
        sides = hull(pixels[stage.name])
        for at in points(dict(zip(stage.dims, sides, strict=True))):
            for buffer, place in all_reads(stage, at):
                if buffer not in stage.buffers:
                    pixels.setdefault(buffer, set()).add(place)
    return pixels


def all_reads(stage: Stage, at: dict[str, int]) -> list[tuple[str, tuple[int, ...]]]:
    """What computing one pixel reads, over all of its definitions."""
    found = []
    for d in stage.definitions:
        lows = {r.name: (value(r.min, at), value(r.min, at) + value(r.extent, at) - 1) for r in d.domain}
        for inner in points(lows):
            for e in expressions(d):
                found += list(reads(e, {**at, **inner}))
    return found


def asked_of(graph: Graph, box: Ranges) -> dict[str, Box]:
    return {graph.outputs[0].stage: tuple(Interval(*box[n]) for n in "yx")}


@cases(150)
@given(chains(exact=False), boxes("yx", 3))
def test_required_regions_hold_every_pixel(graph: Graph, box: Ranges) -> None:
    found = required(graph, asked_of(graph, box), {})
    for name, pixels in brute_force(graph, box).items():
        assert all(inside(p, found[name]) for p in pixels), name


@cases(100)
@given(chains(exact=True), boxes("yx", 3))
def test_required_regions_of_affine_reads_are_exact(graph: Graph, box: Ranges) -> None:
    found = required(graph, asked_of(graph, box), {})
    for name, pixels in brute_force(graph, box).items():
        assert ends(found[name]) == hull(pixels), name


@cases(50)
@given(chains(exact=True), st.lists(boxes("yx", 5), min_size=2, max_size=4))
def test_many_tiles_at_once(graph: Graph, tiles: list[Ranges]) -> None:
    arrays = {
        graph.outputs[0].stage: tuple(Interval(*(np.array([t[n][k] for t in tiles]) for k in (0, 1))) for n in "yx")
    }
    found = required(graph, arrays, {})
    for k, tile in enumerate(tiles):
        for name, box in required(graph, asked_of(graph, tile), {}).items():
            many = [tuple(int(np.broadcast_to(v, len(tiles))[k]) for v in side) for side in ends(found[name])]
            assert many == ends(box), name
