"""Predictions of many schedules for a GPU: each is that of the whole call, and no kernel is lowered twice."""

from __future__ import annotations

from collections.abc import Collection

import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import STRATEGIES
from pantile.autoschedule.search.crossover import crossings
from pantile.backends import LaunchReport
from pantile.calls import Calls
from pantile.launch_predictions import LaunchPredictions
from pantile.launched_call import LaunchedCall
from pantile.machine import Gpu, named
from tests.autoschedule.problems import problem_of

H200 = named("H200")
assert isinstance(H200, Gpu)


@pytest.mark.parametrize("name", ["harris", "bilateral_grid"])
def test_they_are_those_of_whole_calls(name: str) -> None:
    app = APPS[name]
    pipeline, shapes = app.build().with_options(target="cuda-sim", algebra=False), app.sizes["paper"]
    problem = problem_of(pipeline, H200, **shapes)
    found = [STRATEGIES[s]().find(problem).schedule for s in ("greedy", "autogpu", "posttile")]
    mixed = [s for other in found[1:] for s in crossings(pipeline.graph, found[0], other)]
    predictions = LaunchPredictions(pipeline.graph, pipeline.options, H200, shapes)
    for schedule in [pt.Schedule(), *found, *mixed[:2]]:
        whole = Calls(pipeline.graph, schedule, pipeline.options).launched(shapes).report(H200).cost
        cost = predictions.cost(schedule)
        assert cost.seconds == pytest.approx(whole.seconds, rel=0.02)
        assert {s.name for s in cost.stages} == {s.name for s in whole.stages}


def test_what_is_known_is_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[set[str]]()
    report = LaunchedCall.report

    def noted(self: LaunchedCall, gpu: Gpu, stages: Collection[str] | None = None) -> LaunchReport:
        asked.append(set(stages or ()))
        return report(self, gpu, stages)

    monkeypatch.setattr(LaunchedCall, "report", noted)
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    a, b, c = pt.Func("a"), pt.Func("b"), pt.Func("c")
    a[y, x] = pt.edge(img)[y, x] * 2
    b[y, x] = a[y, x - 1] + a[y, x + 1]
    c[y, x] = b[y - 1, x] + b[y + 1, x]
    pipeline = pt.Pipeline(c, shape=img.shape, target="cuda-sim", algebra=False)
    predictions = LaunchPredictions(pipeline.graph, pipeline.options, H200, {"img": (1000, 1000)})
    own = pt.Schedule(pt.on("img_edge").compute_inline(), *(pt.on(name).compute_root() for name in "abc"))
    predictions.cost(own)
    predictions.cost(own)
    predictions.cost(own.replace(pt.on("c").compute_root().tile("y", "x", "yo", "xo", "yi", "xi", 8, 32)))
    predictions.cost(own.replace(pt.on("b").compute_root().reorder_storage("x", "y")))
    predictions.cost(own.replace(pt.on("a").compute_inline()))
    predictions.cost(own)
    assert asked == [{"a", "b", "c"}, {"c"}, {"b", "c"}, {"b"}]
