"""The verifier accepts what every pass makes of many pipelines under many schedules, for large arrays and for any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.errors import InternalError
from pantile.graph.nodes import Graph
from pantile.ir.nodes import Prefetch
from pantile.ir.show import show
from pantile.ir.verify import FOR_CODE, FOR_KERNELS
from pantile.ir.visit import walk
from pantile.lower.passes import GRAPH_PASSES, GUARANTEED, LOOP_PASSES, Device, LoweringRequest
from pantile.schedule.plan import Plan
from tests.apps.cases import CASES as APP_CASES
from tests.apps.short import app_and_case
from tests.golden.examples import EXAMPLES

from .lowered import TARGET, lowered

Y, X, BIN = pt.vars("y x i")
IMG = pt.Input("img", "uint8", ndim=2)


def histogram() -> pt.Pipeline:
    hist, r = pt.Func("hist"), pt.RDom((0, IMG.shape[0]), (0, IMG.shape[1]), names="y x")
    hist[BIN] = 0
    hist[IMG[r.y, r.x]] += 1
    return pt.Pipeline(hist, shape=(256,))


def scan() -> pt.Pipeline:
    f, out, r = pt.Func("f"), pt.Func("out"), pt.RDom((1, IMG.shape[1] - 1), names="x")
    f[Y, X] = pt.cast("float32", IMG[Y, X])
    f[Y, r.x] = f[Y, r.x] + 0.5 * f[Y, r.x - 1]
    out[Y, X] = f[Y, X] * 2
    return pt.Pipeline(out, shape=IMG.shape)


def nearest() -> pt.Pipeline:
    """Two values per point."""
    best, out, r = pt.Func("best"), pt.Func("out"), pt.RDom((0, 9), names="k")
    best[Y, X] = pt.argmin(abs(pt.cast("int32", pt.edge(IMG)[Y, X + r.k]) - 100), over=r)
    out[Y, X] = best[Y, X][0] + best[Y, X][1]
    return pt.Pipeline(out, shape=IMG.shape)


def pyramid() -> pt.Pipeline:
    src, down, up, out = pt.edge(IMG), pt.Func("down"), pt.Func("up"), pt.Func("out")
    down[Y, X] = src[2 * Y, 2 * X] // 2 + src[2 * Y + 1, 2 * X + 1] // 2
    up[Y, X] = pt.select(X % 2 == 0, down[Y // 2, X // 2], down[Y // 2, X // 2 + 1])
    out[Y, X] = up[Y, X] + up[Y + 1, X]
    return pt.Pipeline(out, shape=IMG.shape)


def piecewise() -> pt.Pipeline:
    """Reads that only some pixels may do."""
    f, out = pt.Func("f"), pt.Func("out")
    f[Y, X] = pt.select(X > 0, IMG[Y, X - 1], 0)
    out[Y, X] = f[Y, X] + pt.select(Y > 0, f[Y - 1, X], f[Y, X])
    return pt.Pipeline(out, shape=IMG.shape)


S = pt.Schedule
TABLE: dict[str, tuple[Callable[[], pt.Pipeline], list[pt.Schedule]]] = {
    "histogram": (histogram, [
        S(), S(pt.on("hist").vectorize("i", 8).update().unroll("r.x", 4)),
        S(pt.on("hist").update().rfactor("r.y", "u"), pt.on("hist_u").update().parallel("u")),
    ]),
    "scan": (scan, [
        S(), S(pt.on("out").parallel("y", 8).vectorize("x", 8),
               pt.on("f").compute_at("out", "y").vectorize("x", 4)
               .update().reorder("r.x", "y").vectorize("y", 4)),
    ]),
    "nearest": (nearest, [S(), S(pt.on("out").vectorize("x", 8).parallel("y"), pt.on("best").compute_at("out", "y"))]),
    "pyramid": (pyramid, [
        S(), S(pt.on("out").parallel("y", 16).vectorize("x", 8),
               pt.on("up").store_at("out", "y").compute_at("out", "y_p").vectorize("x", 8),
               pt.on("down").store_at("out", "y").compute_at("out", "y_p").vectorize("x", 4)),
        S(pt.on("out").fuse("y", "x", "p").parallel("p", 64), pt.on("up").compute_inline()),
        S(pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 16, tail="guard").unroll("xi", 4),
          pt.on("up").compute_at("out", "xo").reorder_storage("x", "y"), pt.on("down").compute_at("out", "yo")),
    ]),
    "piecewise": (piecewise, [
        S(), S(pt.on("out").vectorize("x", 8).partition("x", "always"), pt.on("f").compute_inline()),
        S(pt.on("out").vectorize("x", 8).partition("x", "never").specialize("img.shape[1] >= 64"),
          pt.on("f").compute_at("out", "y").vectorize("x", 8).store_in("heap")),
    ]),
}  # fmt: skip
CASES = {f"{name}-{k}": (make, s) for name, (make, schedules) in TABLE.items() for k, s in enumerate(schedules)}
CASES |= {
    f"{e.name}-{k}": (lambda e=e: pt.Pipeline(*e.build()), s)
    for e in EXAMPLES
    for k, s in enumerate(dict.fromkeys(section.schedule for section in e.sections))
}
# Apps of one family differ little in kind: the first of them, if it has not too many stages.
FAMILIES = {name.split("_")[0]: name for name in reversed(APPS) if not APP_CASES[name].slow}
CASES |= {
    f"{name}-{how}": (app.build, app.schedule(how, TARGET, cores=2))
    for name, (app, _) in {name: app_and_case(name) for name in FAMILIES.values()}.items()
    for how in (("plain", "expert") if app.expert else ("plain",))
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("large", [True, False], ids=["large", "any"])
def test_every_pass_makes_well_formed_loops(case: str, large: bool) -> None:
    make, schedule = CASES[case]
    results = lowered(make().with_schedule(schedule), large)
    assert list(results) == ["nest", *(p.name for p in LOOP_PASSES if Device.CPU in p.on)]


def test_code_is_made_of_what_the_last_pass_guarantees() -> None:
    for device, guaranteed in GUARANTEED.items():
        last = [p.name for p in LOOP_PASSES if device in p.on][-1]
        assert guaranteed[last] >= FOR_KERNELS
        assert guaranteed["outline"] >= FOR_CODE


@pytest.mark.parametrize("by", ["debug", "environment"])
def test_the_pass_that_breaks_its_promise_is_named(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = [replace(p, run=lambda body, of: body) if p.name == "unroll" else p for p in LOOP_PASSES]
    monkeypatch.setattr("pantile.lower.passes.LOOP_PASSES", tuple(lazy))
    monkeypatch.setenv("PANTILE_VERIFY", "0" if by == "debug" else "1")
    p = scan().with_schedule(S(pt.on("out").unroll("x", 4))).with_options(debug=by == "debug")
    with pytest.raises(InternalError, match=r"loop IR of out after unroll: loop out\.x_u is still marked unroll"):
        p.loops()


@pytest.mark.parametrize("name", [p.name for p in GRAPH_PASSES])
def test_graphs_are_verified_after_each_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(graph: Graph, plan: Plan, request: LoweringRequest) -> tuple[Graph, Plan]:
        return replace(graph, outputs=()), plan

    broken = [replace(p, run=forget) if p.name == name else p for p in GRAPH_PASSES]
    monkeypatch.setattr("pantile.lower.passes.GRAPH_PASSES", tuple(broken))
    with pytest.raises(InternalError, match=f"graph out after {name}"):
        scan().loops()


def test_prefetch_asks_for_each_line_that_will_be_read() -> None:
    out = pt.Func("out")
    out[Y, X] = IMG[Y, X] + IMG[Y + 1, X]
    p = pt.Pipeline(out, shape=(IMG.shape[0] - 1, IMG.shape[1]))
    schedule = S(pt.on("out").split("x", "x", "xi", 128).vectorize("xi", 16).prefetch("img", "y", 3))
    asked = [s for s in walk(lowered(p.with_schedule(schedule))["clean"]) if isinstance(s, Prefetch)]
    assert {str(s.indices[0]) for s in asked} == {"out.y + 3", "out.y + 4"}
    assert all(s.buffer == "img" for s in asked)


@pytest.mark.parametrize("half", ["//", "%"])
def test_half_of_a_value_is_no_place(half: str) -> None:
    """Only lanes that read at half their places are worth taking apart."""
    img, f, g = pt.Input("img", "uint8", 2), pt.Func("f"), pt.Func("g")
    f[Y, X] = img[Y, X] // 2 if half == "//" else img[Y, X] % 2
    g[Y, X] = img[Y, X // 2] + img[Y, X % 2]
    for func, taken_apart in ((f, False), (g, True)):
        p = pt.Pipeline(func, shape=img.shape).with_schedule(S(pt.on(func.name).vectorize("x", 16)))
        assert ("shuffle" in show(lowered(p)["vectorize"])) == taken_apart


def test_places_that_a_loop_computes_are_not_held() -> None:
    """Where to add is known inside the loop only, though it is the same in every iteration."""
    img, where, f = pt.Input("img", "int32", 2), pt.Func("where"), pt.Func("f")
    r = pt.RDom((0, img.shape[1]))
    where[Y] = pt.clamp(img[Y, 0], 0, 3)
    f[Y, X] = 0
    f[Y, where[Y]] += img[Y, r[0]]
    schedule = S(pt.on("f"), pt.on("where").compute_at("f", "r.0"))
    p = pt.Pipeline(f, shape=(img.shape[0], 4)).with_schedule(schedule).with_options(debug=True)
    picture = np.arange(35, dtype=np.int32).reshape(5, 7) % 4
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))
