"""Names: whatever users call their things, they mean what they say, or are refused.

What was wrong crashed or gave wrong pixels, so everything runs in a process of its own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pantile as pt
from tests.fuzz.isolate import isolated
from tests.long import LONG
from tests.schedule.hostile import PLACES, TEXTS, filled

PICTURE = np.arange(37 * 23, dtype=np.int32).reshape(37, 23)


def assert_right(pipeline: pt.Pipeline, *chains: Any, **arguments: Any) -> None:
    """The pipeline computes what it means, under its own schedule or the one given."""
    p = pipeline.with_schedule(pt.Schedule(*chains)) if chains else pipeline
    assert np.array_equal(p(**arguments), p.reference(**arguments))


def img() -> pt.Input:
    return pt.Input("img", "int32", 2)


def doubled(*names: str) -> pt.Pipeline:
    y, x = (pt.Var(n) for n in names or ("y", "x"))
    f = pt.Func("f")
    f[y, x] = img()[y, x] * 2
    return pt.Pipeline(f)


def updated(first: str, second: str) -> pt.Pipeline:
    """A stage with an update, computed inside another, its coordinates called like this."""
    a, b, y, x = pt.vars(f"{first} {second} y x")
    f, g = pt.Func("f"), pt.Func("g")
    f[a, b] = img()[a, b]
    f[a, b] += 1
    g[y, x] = f[y, x] + f[y, x + 1]
    return pt.Pipeline(g, shape=(37, 22))


# Every word that lowering makes names of, and some that it does not; u1 and min beside each other.
WORDS = ["out", "min", "u1", "max", "shape", "stride", "value", "held", "lo", "at", "rest", "row", "column", "first",
         "steady", "steady_end", "edge", "f", "img", "d0"]  # fmt: skip


def test_coordinates_may_have_any_name() -> None:
    def check() -> None:
        for a, b in itertools.pairwise(WORDS):
            assert_right(updated(a, b), pt.on("g"), pt.on("f").compute_at("g", "y"), img=PICTURE)

    isolated(check)


def test_new_loops_may_have_any_name() -> None:
    def check() -> None:
        for a, b in zip(WORDS[::2], WORDS[1::2], strict=True):
            blocks = pt.on("f").split("x", a, b, 4, tail="guard").split(b, b, "lo2", 3).vectorize("lo2")
            assert_right(doubled(), blocks, img=PICTURE)
            fused = pt.on("f").split("x", "xo", b, 4).fuse("y", "xo", a).parallel(a, 2)
            assert_right(doubled(), fused, img=PICTURE)

    isolated(check)


@pytest.mark.parametrize("names", ["min max", "lo rest", "shape stride", "u1 out"])
def test_loops_of_reductions_may_have_any_name(names: str) -> None:
    def check() -> None:
        x = pt.Var("x")
        for domain in ("r", "min", "shape", "u1", "f"):
            r = pt.RDom((0, 5), (0, 3), name=domain, names=names)
            f = pt.Func("f")
            f[x] = 0
            f[x] += img()[r[0], x + r[1]]
            first, second = (f"{domain}.{n}" for n in names.split())
            chain = pt.on("f").update().split(first, "a", domain, 2).unroll(second).vectorize("x", 4)
            assert_right(pt.Pipeline(f, shape=(20,)), chain.reorder("a", domain, "x", second, "x_v"), img=PICTURE)

    isolated(check)


def test_a_loop_may_be_fused_into_its_own_name_again_and_again() -> None:
    def check() -> None:
        y, x, c = pt.vars("y x c")
        f = pt.Func("f")
        f[y, x, c] = img()[y, x] + c * 1000
        p = pt.Pipeline(f, shape=(37, 23, 5))
        assert_right(p, pt.on("f").fuse("y", "x", "y").fuse("y", "c", "y").parallel("y", 16), img=PICTURE)
        assert_right(p, pt.on("f").fuse("x", "c", "x").split("x", "x", "xi", 4).fuse("y", "x", "x"), img=PICTURE)

    isolated(check)


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        (lambda: pt.on("f").split("x", "a.lo", "a", 4), "'a.lo' cannot be the name of a new loop"),
        (lambda: pt.on("f").split("xi", "xi.lo", "xi.lo.lo", 2), "'xi.lo' cannot be the name of a new loop"),
        (lambda: pt.on("f").fuse("y", "x", "f.x"), "'f.x' cannot be the name of a new loop"),
        (lambda: pt.on("f").tile("y", "x", "y", "x", "r.x", "xi", 2, 2), "'r.x' cannot be the name of a new loop"),
        (lambda: pt.on("f").update().rfactor("r.x", "img.shape.0"), "'img.shape.0' cannot be the name of a new loop"),
    ],
)
def test_new_loops_have_no_dots(chain: Callable[[], object], why: str) -> None:
    with pytest.raises(pt.UserError, match=why):
        chain()


# ---- partial results and their names


def total(param: str) -> pt.Pipeline:
    k = pt.Param(param, "int32", 7)
    s = pt.RDom((0, 37), (0, 23), name="s", names="y x")
    t = pt.Func("t")
    t[()] = 0
    t[()] += img()[s.y, s.x] * k
    return pt.Pipeline(t, shape=())


@pytest.mark.parametrize(
    ("param", "chain", "why"),
    [
        ("u", pt.on("t").update().rfactor("s.y", "u"), "'u' already names a param"),
        ("q", pt.on("t").update().split("s.y", "q", "w", 4).rfactor("w", "u"), "uses a name twice"),
        ("t_u", pt.on("t").update().rfactor("s.y", "u"), "would be called 't_u', which exists"),
    ],
)
def test_loops_that_become_coordinates_are_not_called_like_params(param: str, chain: Any, why: str) -> None:
    with pytest.raises(pt.UserError, match=why):
        total(param).with_schedule(pt.Schedule(chain)).compile(img=PICTURE)
    isolated(lambda: assert_right(total("other"), chain, img=PICTURE))


def test_dims_of_inner_reductions_give_way_to_params() -> None:
    def check() -> None:
        y, x = pt.vars("y x")
        k, r, s = pt.Param("r_0", "int32", 7), pt.RDom((0, 5)), pt.RDom((0, 3), name="s")
        f = pt.Func("f")
        f[y, x] = 0
        f[y, x] += r[0] * pt.sum(img()[y, x] * k + s[0] * r[0], over=s)
        assert np.array_equal(pt.Pipeline(f)(img=PICTURE), PICTURE * 7 * 3 * 10 + 3 * 30)

    isolated(check)


# ---- names that are not plain ASCII, and odd ones


@pytest.mark.parametrize("name", ["größe", "日本", "Ωμέγα", "x" * 200, "self", "args", "arguments", "positional"])
def test_everything_may_have_such_a_name(name: str) -> None:
    def check() -> None:
        source, gain = pt.Input(name, "int32", 2), pt.Param(name[:100] + "1", "int32", 3)
        f, g, v, x = pt.Func(name[:100] + "2"), pt.Func(name[:100] + "3"), pt.Var(name), pt.Var("x")
        f[v, x] = source[v, x] * gain
        g[v, x] = f[v, x] + pt.edge(source)[v, x - 1] + pt.sum(f[v, x], over=pt.RDom((0, 2), name=name, names=name))
        p = pt.Pipeline(g, name=name)
        loops = pt.on(g).parallel(v, 4).vectorize("x", 4).specialize(f"{gain.name} > 1")
        assert_right(p, loops, pt.on(f).compute_at(g, v), **{name: PICTURE})
        debug = p.with_schedule(pt.Schedule(loops, pt.on(f).compute_root())).with_options(debug=True)
        assert np.array_equal(debug(**{name: PICTURE}), p.reference(**{name: PICTURE}))
        for strategy in ("greedy", "posttile"):
            assert_right(p.with_schedule(strategy), **{name: PICTURE})
        assert pt.Schedule.from_json(p.schedule.to_json()) == p.schedule

    isolated(check)


def test_names_made_of_others_stay_short() -> None:
    y, x = pt.vars("y x")
    f = pt.Func("f" * 200, domain=((0, 8), (0, 8)))
    f[y, x] = img()[y, x]
    extended = pt.edge(f)
    assert extended.name == "f" * 195 + "_edge"
    g = pt.Func("g")
    g[y, x] = extended[y, x] + pt.wrap(f)[y, x] + pt.edge(f)[y, x + 1]
    p = pt.Pipeline(g, shape=(8, 8))
    assert sorted(map(len, p.graph.stage)) == [1, 200, 200, 200, 201]
    isolated(lambda: assert_right(p, img=PICTURE))


# ---- any text in any place of a schedule


def assert_refused_or_right(text: str) -> None:
    """The saved schedule is refused, or right."""
    y, x, k, r = pt.Var("y"), pt.Var("x"), pt.Param("k", "int32", 2), pt.RDom((0, 3), names="x")
    f, g = pt.Func("f"), pt.Func("g")
    f[y, x] = img()[y, x] * k
    g[y, x] = 0
    g[y, x] += f[y, x + r.x]
    p = pt.Pipeline(g, shape=(37, 21))
    try:
        scheduled = p.with_schedule(pt.Schedule.from_json(text))
        scheduled.loops()
    except pt.UserError:
        return
    isolated(lambda: assert_right(scheduled, img=PICTURE))


THERE = st.sampled_from(["f", "g", "y", "x", "r.x", "r.0", "img", "u1", "min", "lo", "xi", "größe", "f.out", "g.0"])
HOSTILE = st.sampled_from([t for t in TEXTS.values() if len(t) < 1000])
NUMBERS = st.sampled_from([1, 2, 3, 8, 64, 256, 1024, 2**20, 2**30, 2**63, 10**30])
CONDITIONS = st.sampled_from(["img.shape[0] > 30", "k == 1", "k * img.shape[1] // 3 < 2 or not k > 2", "r.x > 1", "x"])
FIELDS = THERE | THERE | THERE | HOSTILE | st.text(max_size=5) | NUMBERS | NUMBERS | CONDITIONS
SETTINGS = settings(max_examples=50 if LONG else 25, deadline=None, derandomize=True, database=None)


@st.composite
def any_fields(draw: st.DrawFn) -> str:
    """Directives with one field drawn, the others as in `PLACES`; most are refused."""
    directive = st.tuples(st.sampled_from(PLACES), FIELDS).map(lambda p: filled(*p))
    stages = draw(st.lists(st.sampled_from("fg") | THERE, max_size=2, unique=True))
    return json.dumps({"format": 1, "stages": {s: draw(st.lists(directive, max_size=3)) for s in stages}})


@SETTINGS
@given(any_fields())
def test_any_field_is_refused_or_right(text: str) -> None:
    assert_refused_or_right(text)


@pytest.mark.parametrize("names", [("x_v", "x"), ("y", "y_u"), ("y", "y_p")])
@pytest.mark.parametrize("how", ["plain", "greedy", "auto"])
def test_dims_may_be_called_what_parts_of_others_would_be(names: tuple[str, str], how: str) -> None:
    assert_right(doubled(*names).with_schedule(how), img=PICTURE)


LETTERS = st.text(st.characters(max_codepoint=0x2FF, categories=["Lu", "Ll"]), min_size=1, max_size=4)
PROPER = st.sampled_from([*WORDS, "k", "r", "x_v", "x_u", "u3"]) | LETTERS
ODD = st.text(max_size=5) | HOSTILE | THERE


@st.composite
def any_names(draw: st.DrawFn) -> str:
    """Directives that fit together, whose new loops have any names."""
    names = draw(st.lists(PROPER, min_size=5, max_size=5, unique=True))
    if draw(st.integers(0, 3)) == 0:
        names[draw(st.integers(0, 4))] = draw(ODD)
    a, b, c, d, u = names
    pure = draw(
        st.sampled_from(
            [
                [["split", "x", a, b, 8], ["vectorize", b], ["parallel", "y"]],
                [["tile", "y", "x", a, b, c, d, 4, 8], ["unroll", c, 2], ["parallel", a]],
                [["fuse", "y", "x", a], ["split", a, b, c, 16], ["split", c, c, d, 4], ["parallel", b]],
                [["split", "x", "x", a, 4], ["split", a, a, b, 2], ["fuse", "y", "x", c], ["partition", b, "always"]],
            ]
        )
    )
    update = draw(
        st.sampled_from(
            [
                [["tile", "y", "x", a, b, c, d, 4, 8], ["parallel", a]],
                [["split", "r.x", a, b, 2], ["unroll", b], ["split", "x", c, d, 5], ["reorder", a, c]],
                [["rfactor", "r.x", u], ["fuse", "y", "x", d], ["parallel", d, 7]],
            ]
        )
    )
    inner = draw(st.sampled_from([[], [["compute_at", "g", a]], [["split", "y", u, b, 3], ["vectorize", "x", 4]]]))
    return json.dumps({"format": 1, "stages": {"g": [*pure, ["update", 0], *update], "f": inner}})


@SETTINGS
@given(any_names())
def test_any_new_name_is_refused_or_right(text: str) -> None:
    assert_refused_or_right(text)
