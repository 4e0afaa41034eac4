"""rfactor changes the pipeline, never its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile
from pantile import schedule as pt
from pantile.errors import UserError
from pantile.graph.nodes import Graph
from pantile.graph.verify import verify
from pantile.reference.stages import evaluate
from pantile.schedule import Schedule, StageSchedule, resolve
from tests.reference.hand_built import Y, const, graph, load, stage, update
from tests.schedule import pipelines


def image(t: str) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(1).integers(0, 9, (13, 7)).astype(t)


def assert_agrees(graph: Graph, t: str, *asked: StageSchedule) -> Graph:
    changed, _ = resolve(graph, Schedule(*asked))
    verify(changed)
    (before,), (after,) = (evaluate(g, {"img": image(t)}, {}) for g in (graph, changed))
    np.testing.assert_array_equal(before, after)
    return changed


@pytest.mark.parametrize("kind", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("loop", ["r.y", "r.x"])
def test_totals(kind: str, loop: str) -> None:
    changed = assert_agrees(pipelines.total("int32", kind), "int32", pt.on("total").update().rfactor(loop, "u"))
    assert [s.name for s in changed.stages] == ["total_u", "total"]
    partial, whole = changed.stages
    assert partial.dims == ("u",)
    assert [r.name for r in partial.updates[0].domain] == [r for r in ("r.y", "r.x") if r != loop]
    assert [r.name for r in whole.updates[0].domain] == [loop]


def test_partial_histograms_per_row() -> None:
    changed = assert_agrees(pipelines.histogram(), "uint8", pt.on("hist").update().rfactor("r.y", "u"))
    assert changed.stage["hist_u"].dims == ("u", "i")
    assert str(changed.stage["hist"].updates[0].values[0]) == "hist[i] + hist_u[r.y, i]"


@pytest.mark.parametrize("factor", [1, 2, 7, 8])
def test_a_loop_made_by_splits(factor: int) -> None:
    sums = pt.on("total").update().split("r.x", "xo", "xi", factor).rfactor("xi", "u")
    lanes = pt.on("total_u").update().vectorize("u", factor).reorder("r.y", "xo", "u", "u_v")
    assert_agrees(pipelines.total(), "int32", lanes, sums)


def test_a_partial_result_can_be_factored_again() -> None:
    rows = pt.on("total").update().rfactor("r.y", "u").unroll("r.y", 2)
    lanes = pt.on("total_u").update().rfactor("r.x", "v")
    changed = assert_agrees(pipelines.total(), "int32", lanes, rows, pt.on("total_u_v").vectorize("u", 4))
    assert [s.name for s in changed.stages] == ["total_u_v", "total_u", "total"]


def test_several_values_a_condition_and_a_pure_dim() -> None:
    term = load("img", "int32", Y, pipelines.RX)
    values = load("f.0", "int32", Y) + term, load("f.1", "int32", Y) * (term + 1)
    rows = update((Y,), *values, over=(("r.x", 0, 7),), where=term > 3)
    made = stage("f", "y", const(0, "int32"), const(1, "int32"), updates=(rows,))
    total = stage("out", "y", load("f.0", "int32", Y) - load("f.1", "int32", Y))
    g = graph(made, total, out=(("out", (13,)),), inputs={"img": ("int32", 2)})
    assert_agrees(g, "int32", pt.on("f").update().split("r.x", "o", "i", 2).rfactor("i", "u"))
    assert_agrees(g, "int32", pt.on("f").update().split("r.x", "o", "i", 2).rfactor("o", "u"))


def test_what_follows_applies_to_the_combining_update() -> None:
    asked = pt.on("hist").update().rfactor("r.y", "u").reorder("r.y", "i").vectorize("i", 8)
    _, plan = resolve(pipelines.histogram(), Schedule(asked))
    assert [x.name for x in plan.stages["hist"].nests[1].loops] == ["r.y", "i", "i_v"]


@pytest.mark.parametrize("kind", ["add", "mul", "min", "max"])
def test_two_loops_at_once(kind: str) -> None:
    changed = assert_agrees(
        pipelines.total("int32", kind), "int32", pt.on("total").update().rfactor("r.x", "r.y", "u", "v")
    )
    partial, whole = changed.stages
    assert (partial.name, partial.dims, partial.updates[0].domain) == ("total_u_v", ("u", "v"), ())
    assert [r.name for r in whole.updates[0].domain] == ["r.x", "r.y"]


def test_blocks_and_lanes_at_once() -> None:
    sums = pt.on("total").update().split("r.y", "yo", "yi", 4).split("r.x", "xo", "xi", 2).rfactor("yo", "xi", "b", "u")
    lanes = pt.on("total_b_u").update().vectorize("u", 2).reorder("b", "yi", "xo", "u", "u_v").parallel("b")
    assert_agrees(pipelines.total(), "int32", lanes, sums)


def test_two_loops_of_a_histogram_at_once() -> None:
    changed = assert_agrees(pipelines.histogram(), "uint8", pt.on("hist").update().rfactor("r.y", "r.x", "u", "v"))
    assert changed.stage["hist_u_v"].dims == ("u", "v", "i")


def search(kind: str, t: str, low: int = 0) -> pantile.Pipeline:
    """Where an image has its best value, and that value."""
    img = pantile.Input("img", t, 2)
    r = pantile.RDom((low, img.shape[0] - low), (0, img.shape[1]), name="r", names="y x")
    out = pantile.Func("out")
    row, column, value = getattr(pantile, kind)(img[r.y, r.x], over=r)
    out[()] = (row, column, value)
    return pantile.Pipeline(out, shape=())


SEARCHES = {
    "rows": [pt.on("out").update().rfactor("r.y", "u")],
    "columns": [pt.on("out").update().rfactor("r.x", "u")],
    "lanes": [pt.on("out").update().split("r.x", "o", "i", 4).rfactor("i", "u")],
    "both": [pt.on("out").update().split("r.y", "o", "i", 3).rfactor("i", "r.x", "u", "v")],
    "exchanged": [pt.on("out").update().split("r.y", "o", "i", 3).rfactor("o", "i", "i", "o")],
    "again": [
        pt.on("out").update().split("r.y", "o", "i", 3).rfactor("i", "u"),
        pt.on("out_u").update().split("r.x", "p", "q", 4).rfactor("q", "v"),
    ],
}


@pytest.mark.parametrize("parts", SEARCHES)
@pytest.mark.parametrize("t", ["uint8", "float32"])
@pytest.mark.parametrize("kind", ["argmin", "argmax"])
def test_searches_find_the_first_of_equals(kind: str, t: str, parts: str) -> None:
    """In parts as one after the other: many values are equal, some are the worst one or NaN, and none may win."""
    for low in (0, 2):
        p = search(kind, t, low)
        changed, _ = resolve(p.graph, Schedule(*SEARCHES[parts]))
        rng = np.random.default_rng(5)
        pictures = [rng.integers(0, 3, (13, 7)) * 7 % 5, np.zeros((9, 5)), np.full((4, 4), 255)]
        if t == "float32":
            pictures += [np.where(pictures[0] == n, odd, pictures[0]) for n, odd in ((0, np.nan), (4, -np.inf))]
        for img in pictures:
            before, after = (evaluate(g, {"img": img.astype(t)}, {}) for g in (p.graph, changed))
            for a, b in zip(before, after, strict=True):
                np.testing.assert_array_equal(a, b)


def test_searches_that_do_not_go_in_order_stay_whole() -> None:
    img, f = pantile.Input("img", "int32", 2), pantile.Func("f")
    r = pantile.RDom((0, 13), (0, 7), name="r", names="y x")
    least = np.iinfo(np.int32).max
    f[()] = (0, pantile.cast("int32", least))
    better = img[r.y, r.x] < f[()][1]
    f[()] = (pantile.select(better, r.x, f[()][0]), pantile.select(better, img[r.y, r.x], f[()][1]))
    with pytest.raises(UserError, match=r"nor is it pt\.argmin or pt\.argmax"):
        pantile.Pipeline(f, shape=()).with_schedule(Schedule(pt.on("f").update().rfactor("r.y", "u")))
