"""What costs depend on is computed once: a search predicts hundreds of schedules that differ in little."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pantile as pt
from pantile.cost_model import Cost, Sizes, definition_costs, model, predict_cost
from pantile.graph.nodes import Graph, Stage
from pantile.machine import named
from pantile.schedule import draft
from pantile.schedule.default import complete
from pantile.schedule.resolve import resolve
from pantile.target import Target

N1 = named("neoverse-n1")
Y, X = pt.vars("y x")


def four() -> pt.Pipeline:
    """A chain of stencils, and the sum of the last one."""
    img = pt.Input("img", "float32", ndim=2)
    before: pt.Func | pt.Input = img
    for name in ("a", "b", "c"):
        f = pt.Func(name)
        f[Y, X] = before[Y, X] + before[Y + 1, X]
        before = f
    r, total = pt.RDom((0, 500), (0, 500), names="y x"), pt.Func("total")
    total[()] = pt.sum(before[r.y, r.x], over=r)
    return pt.Pipeline([before, total], shape=[(500, 500), ()])


GRAPH = four().graph


def cost_of(*chains: pt.StageSchedule) -> Cost:
    whole = complete(GRAPH, pt.Schedule(*chains))
    return predict_cost(
        GRAPH, whole, Sizes({"c": (500, 500), "total": ()}, {"img.shape.0": 503, "img.shape.1": 500}), N1
    )


@contextmanager
def counted(patch: pytest.MonkeyPatch, owner: type, name: str) -> Iterator[list[object]]:
    """The objects whose method is called."""
    found: list[object] = []
    method = getattr(owner, name)
    with patch.context() as inside:
        inside.setattr(owner, name, lambda self, *args: found.append(self) or method(self, *args))
        yield found


def root(name: str, width: int) -> pt.StageSchedule:
    return pt.on(name).compute_root().vectorize("x", width).parallel("y")


def test_groups_that_two_schedules_share(monkeypatch: pytest.MonkeyPatch) -> None:
    one = [root("a", 4), root("b", 4), root("c", 4)]
    with counted(monkeypatch, model._CostModel, "stages") as found:
        first = cost_of(*one)
        everything = len(found)
        assert everything >= 4 and cost_of(*one) == first and len(found) == everything
        other = cost_of(one[0], root("b", 8), one[2])
    assert len(found) == everything + 1
    assert other != first


def test_definitions_that_two_pipelines_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a inlined there is another b; c is the same, and so are the sums in parts."""
    cost_of(pt.on("a").compute_root(), pt.on("b").compute_root(), root("c", 4))
    with counted(monkeypatch, definition_costs.DefinitionFacts, "__init__") as found:
        cost_of(pt.on("a").compute_inline(), pt.on("b").compute_root(), root("c", 8))
    assert [d.stage.name for d in found if isinstance(d, definition_costs.DefinitionFacts)] == ["b"]


def test_stages_that_two_schedules_ask_the_same_of(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    make = draft.draft

    def counting(graph: Graph, stage: Stage, chain: pt.StageSchedule, strict: bool, target: Target) -> draft.StageDraft:
        asked.append(stage.name)
        return make(graph, stage, chain, strict, target)

    monkeypatch.setattr(draft, "draft", counting)
    known = draft.Drafts(GRAPH, strict=False)
    chains = [root(name, 4) for name in "abc"]
    total = [pt.on(s.name).compute_root() for s in GRAPH.stages if s.name not in "abc"]
    plans = [
        resolve(GRAPH, pt.Schedule(*given, *total), known=known)[1]
        for given in (chains, chains, [chains[0], root("b", 8), chains[2]])
    ]
    assert asked == [*(s.name for s in GRAPH.stages), "b"]
    assert plans[0].stages["b"].nests == plans[1].stages["b"].nests != plans[2].stages["b"].nests


def blended(shapes: tuple[tuple[int, int], tuple[int, int]] = ((500, 500), (500, 500)), weight: int = 3) -> Cost:
    """A chain of two stencils for each of two pictures, and their sum."""
    chains: list[pt.Func] = []
    for name, factor in (("p", 3), ("q", weight)):
        img, rows, whole = pt.Input(f"{name}img", "float32", ndim=2), pt.Func(f"{name}rows"), pt.Func(f"{name}whole")
        rows[Y, X] = img[Y, X] + factor * img[Y, X + 1]
        whole[Y, X] = rows[Y, X] + rows[Y + 1, X]
        chains.append(whole)
    both = pt.Func("both")
    both[Y, X] = chains[0][Y, X] + chains[1][Y, X]
    graph = pt.Pipeline(both, shape=(400, 400)).graph
    tile = pt.on("prows").compute_at("pwhole", "y").vectorize("x", 4)
    other = pt.on("qrows").compute_at("qwhole", "y").vectorize("x", 4)
    schedule = complete(graph, pt.Schedule(tile, root("pwhole", 4), other, root("qwhole", 4), root("both", 4)))
    extents = {f"{name}img.shape.{k}": n for name, shape in zip("pq", shapes, strict=True) for k, n in enumerate(shape)}
    return predict_cost(graph, schedule, Sizes({"both": (400, 400)}, extents), N1)


def test_groups_that_are_equal_but_for_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch, model._CostModel, "stages") as found:
        shared = blended()
    assert len(found) == 2
    alone = {s.name: s for s in shared.stages}
    assert sorted(alone) == ["both", "prows", "pwhole", "qrows", "qwhole"]
    assert alone["prows"].seconds == alone["qrows"].seconds and alone["pwhole"].causes == alone["qwhole"].causes
    ask = model.group_key
    monkeypatch.setattr(model, "group_key", lambda f, p, n: ask(f, p, n)._replace(key=(*n, ask(f, p, n).key)))
    with counted(monkeypatch, model._CostModel, "stages") as found:
        assert blended() == shared
    assert len(found) == 3


@pytest.mark.parametrize("other", [{"weight": 5}, {"shapes": ((500, 500), (500, 700))}])
def test_groups_that_differ_in_more_than_names(other: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch, model._CostModel, "stages") as found:
        blended(**other)
    assert len(found) == 3
