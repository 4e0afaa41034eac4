"""auto on GPUs: the cheapest of what strategies propose, with cheaper parts of the others and cheaper thread tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import Auto
from pantile.autoschedule.search import on_gpus
from pantile.autoschedule.search.candidates import CostedSchedules
from pantile.autoschedule.search.on_gpus import LEAST_WORTH
from pantile.machine import named
from tests.lower.test_block_memory import chain_of_pairs

H200 = named("H200")
TARGET = "cuda-sim"


@pytest.mark.parametrize("app", ["blur"])
def test_nothing_that_is_proposed_costs_much_less(app: str) -> None:
    sizes: dict[str, Any] = {**APPS[app].sizes["paper"]}
    p = APPS[app].build().with_options(target=TARGET)
    found = p.with_schedule("auto", machine=H200, estimates=sizes)
    least = found.predict(**sizes).seconds
    for how in ("plain", "greedy", "autogpu", "posttile"):
        proposed = p.with_schedule(how, machine=H200, estimates=sizes).predict(**sizes).seconds
        assert least * (1 - LEAST_WORTH) <= proposed * 1.001, how
    assert found.schedule == p.with_schedule("auto", machine=H200, estimates=sizes).schedule
    text = found.explain()
    assert "auto for H200" in text and "proposals: plain " in text and "greedy" in text


def halves() -> pt.Pipeline:
    """Two pictures that have nothing to do with each other, each of two stages."""
    y, x = pt.vars("y x")
    outs = []
    for name in ("a", "b"):
        img, row, out = pt.Input(f"img_{name}", "float32", 2), pt.Func(f"row_{name}"), pt.Func(name)
        row[y, x] = img[y, x] + img[y, x + 1] + img[y, x + 2]
        out[y, x] = row[y, x] + row[y + 1, x] + row[y + 2, x]
        outs.append((out, (img.shape[0] - 2, img.shape[1] - 2)))
    return pt.Pipeline([o for o, _ in outs], shape=[s for _, s in outs], target=TARGET)


def test_parts_of_others_are_taken() -> None:
    """A strategy that is good at one half takes part with one that is good at the other."""
    p = halves()
    sizes = {"img_a": (2002, 2002), "img_b": (2002, 2002)}
    greedy = p.with_schedule("greedy", machine=H200, estimates=sizes).schedule
    problem = p.with_schedule("plain", machine=H200).problem(**sizes)
    mixed = [pt.Schedule(*(s for n, s in greedy.items() if n.endswith(half))) for half in "ab"]
    assert problem.predicted is not None
    both, *one = (problem.predicted(s).seconds for s in (greedy, *mixed))
    assert both < min(one)
    found = Auto().find(problem)
    assert problem.predicted(found.schedule).seconds <= both * 1.001


def test_of_many_stages_greedy_alone_proposes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpus, "FEW_STAGES", 5)
    problem = chain_of_pairs(3).with_options(target=TARGET).with_schedule("plain", machine=H200).problem(img=(99, 99))
    found = Auto().find(problem)
    assert found.report.strategy == "auto"
    assert any(r.startswith("proposals: greedy") and "plain" not in r for r in found.report.remarks)


def test_results_are_right() -> None:
    p = halves().with_schedule("auto", machine=H200)
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {f"img_{n}": rng.random((70, 90), np.float32) for n in "ab"}
    for got, expected in zip(p(**given), p.reference(**given), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_where_data_decide_the_time() -> None:
    (x,) = pt.vars("x")
    n, img, out = pt.Input("n", "int32", 1), pt.Input("img", "float32", 2), pt.Func("out")
    r = pt.RDom((0, img.shape[1]))
    out[x] = pt.sum(img[x, r[0]], over=r.where(r[0] < n[x]))
    p = pt.Pipeline(out, shape=n.shape, target=TARGET, schedule="auto")
    given: dict[str, Any] = {"n": np.arange(40, dtype=np.int32) % 7, "img": np.ones((40, 9), np.float32)}
    np.testing.assert_allclose(p(**given), p.reference(**given))
    assert "proposals: plain" in p.explain() and "points per thread" not in p.explain()


def test_a_problem_without_a_pipeline_is_refused() -> None:
    problem = halves().problem(img_a=(100, 100), img_b=(100, 100))
    with pytest.raises(pt.UserError, match="use pt"):
        Auto().find(replace(problem, predicted=None))


def pyramid(levels: int) -> pt.Pipeline:
    """Levels of a picture, each computed by columns and then by rows."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", 2)
    before, height, width = pt.edge(img), img.shape[0], img.shape[1]
    for k in range(levels):
        height, width = height // 2, width // 2
        across, down = pt.Func(f"across{k}"), pt.Func(f"down{k}", domain=[(0, height), (0, width)])
        across[y, x] = before[y, 2 * x - 1] + 2 * before[y, 2 * x] + before[y, 2 * x + 1]
        down[y, x] = (across[2 * y - 1, x] + 2 * across[2 * y, x] + across[2 * y + 1, x]) / 16
        before = pt.edge(down)
    return pt.Pipeline(down, shape=(height, width), target=TARGET)


def test_short_kernels_are_inlined() -> None:
    """Where a launch takes as long as computing, a level of a pyramid is one kernel."""
    problem = pyramid(4).with_schedule("plain", machine=H200).problem(img=(300, 400))
    found, without = (Auto(without=("thread_tiles", "merging", *more)).find(problem) for more in ((), ("inlining",)))
    kernels, before = (len(problem.cost(f.schedule).stages) for f in (found, without))
    assert kernels <= 4 < before
    assert "short kernels inlined" in str(found.report)


def test_short_kernels_are_merged() -> None:
    """Blocks of the smallest level compute what they need of the levels before it, beyond the edges of these, too."""
    p = pyramid(4)
    problem = p.with_schedule("plain", machine=H200).problem(img=(300, 400))
    found, without = (Auto(without=("thread_tiles", "inlining", *more)).find(problem) for more in ((), ("merging",)))
    kernels, before = (len(problem.cost(f.schedule).stages) for f in (found, without))
    assert kernels <= 3 < before
    assert "5 stages in down2" in str(found.report)
    for shape in ((300, 400), (67, 50), (18, 35)):
        img = np.random.default_rng(1).random(shape, np.float32)
        assert np.allclose(p.with_schedule(found.schedule)(img=img), p.reference(img=img), rtol=1e-5)


def test_where_every_proposal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CostedSchedules, "candidate", lambda *_: None)
    found = Auto().find(halves().with_schedule("plain", machine=H200).problem(img_a=(100, 100), img_b=(100, 100)))
    assert found.schedule == pt.Schedule() and found.report.remarks == ("every proposal was refused",)
