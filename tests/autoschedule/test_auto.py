"""auto: the cheapest of what strategies propose, and of what crossing and resizing makes of it."""

from __future__ import annotations

import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import STRATEGIES, Auto
from pantile.autoschedule.search.crossing import crossings
from pantile.autoschedule.search.priced import Priced
from pantile.autoschedule.search.resizing import WIDEST, resizings

from .problems import ORDINARY, chain, problem_of

SOURCES = [name for name, s in STRATEGIES.items() if not s.measures and s is not Auto]
Y, X = pt.vars("y x")


def two_outputs() -> pt.Pipeline:
    """A stencil and a pointwise stage, which have nothing to do with each other."""
    img, f, g, h = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("g"), pt.Func("h")
    f[Y, X] = pt.edge(img)[Y, X] * 2.0
    g[Y, X] = f[Y - 1, X] + f[Y + 1, X]
    h[Y, X] = img[Y, X] + 1.0
    return pt.Pipeline([g, h], shape=[img.shape, img.shape])


@pytest.mark.parametrize("name", ["blur", "harris", "bilateral_grid"])
def test_no_strategy_is_cheaper(name: str) -> None:
    app = APPS[name]
    problem = problem_of(app.build(), ORDINARY, **app.sizes["small"])
    priced = Priced(problem)
    found = priced.candidate("auto", Auto().find(problem).schedule)
    assert found is not None
    for source in SOURCES:
        other = priced.candidate(source, STRATEGIES[source]().find(problem).schedule)
        assert other is not None and found.seconds <= other.seconds


def test_the_search_ends() -> None:
    problem = problem_of(chain(12), ORDINARY, img=(2000, 2000))
    for steps in (0, 5, 40):
        found = Auto(steps=steps).find(problem)
        assert found.report.counts["schedules priced"] <= steps + len(SOURCES)


def test_parts_that_nothing_outside_refers_to_change_places() -> None:
    graph = two_outputs().graph
    fused = pt.Schedule(pt.on("f").compute_at("g", "y"), pt.on("g").parallel("y"), pt.on("h").parallel("y"))
    apart = pt.Schedule(pt.on("f").compute_root(), pt.on("g").vectorize("x", 4), pt.on("h").vectorize("x", 8))
    found = list(crossings(graph, fused, apart))
    assert fused.replace(apart.on("f"), apart.on("g")) in found
    assert fused.replace(apart.on("h")) in found
    assert all((s.on("f") == fused.on("f")) == (s.on("g") == fused.on("g")) for s in found)


def test_inlined_stages_go_with_those_that_read_them() -> None:
    graph = two_outputs().graph
    one = pt.Schedule(pt.on("f").compute_inline(), pt.on("g").parallel("y"), pt.on("h").parallel("y"))
    other = pt.Schedule(pt.on("f").compute_root(), pt.on("g").vectorize("x", 4), pt.on("h").parallel("y"))
    assert list(crossings(graph, one, other)) == [one.replace(other.on("f"), other.on("g"))]


def test_each_factor_is_doubled_and_halved() -> None:
    schedule = pt.Schedule(pt.on("g").tile("y", "x", "yo", "xo", "yi", "xi", 16, 64).vectorize("xi", WIDEST))
    changed = {repr(s.on("g")) for _, s in resizings(schedule)}
    sizes = [(32, 64, WIDEST), (8, 64, WIDEST), (16, 128, WIDEST), (16, 32, WIDEST), (16, 64, WIDEST // 2)]
    assert changed == {
        repr(pt.on("g").tile("y", "x", "yo", "xo", "yi", "xi", a, b).vectorize("xi", c)) for a, b, c in sizes
    }


def test_the_report_says_what_was_proposed() -> None:
    app = APPS["blur"]
    text = app.build().with_schedule("auto", estimates=app.sizes["small"], machine=ORDINARY).explain()
    assert "proposed: naive" in text and "predicted seconds" in text
