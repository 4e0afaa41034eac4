"""What tiles need: known footprints, and prepared reads against the region analysis that lowering uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings

import pantile as pt
from pantile.analysis.regions import Box, hull, stage_reads
from pantile.apps import APPS
from pantile.autoschedule.common import footprint
from pantile.autoschedule.common.reads import DefinitionReads
from pantile.errors import UserError
from tests.fuzz.harness import pipeline_of
from tests.fuzz.pipelines import Case, pipelines

from .problems import matrix_product, problem_of


def extents(box: Box) -> list[Any]:
    return [np.asarray(r.high - r.low + 1).tolist() for r in box]


def test_overlap_of_a_stencil_for_two_tile_sizes() -> None:
    facts = problem_of(APPS["blur"].build(), img=(1002, 1002)).facts
    tile = {"y": np.array([16, 32]), "x": 64}
    needed = footprint.boxes(facts, {"blur_x", "blur_y"}, "blur_y", tile)
    assert extents(needed["blur_x"]) == [[18, 34], [64, 64]] or extents(needed["blur_x"]) == [[18, 34], 64]
    assert extents(needed["img"])[0] == [18, 34] and np.all(np.asarray(extents(needed["img"])[1]) == 66)
    assert footprint.tiles(facts, "blur_y", tile).tolist() == [63 * 16, 32 * 16]
    assert footprint.size(facts, "blur_x", needed["blur_x"]).tolist() == [2 * 18 * 64, 2 * 34 * 64]


def test_tiles_at_half_resolution() -> None:
    y, x = pt.vars("y x")
    img, half, out = pt.Input("img", "float32", ndim=2), pt.Func("half"), pt.Func("out")
    half[y, x] = img[2 * y, 2 * x] + img[2 * y + 1, 2 * x + 1]
    out[y, x] = half[y // 2, x // 2] * 2
    facts = problem_of(pt.Pipeline(out, shape=img.shape), img=(256, 256)).facts
    needed = footprint.boxes(facts, {"half", "out"}, "out", {"y": 32, "x": 64})
    assert extents(needed["half"]) == [16, 32]
    assert extents(needed["img"]) == [32, 64]


def test_conditions_that_bound_no_index_do_not_count() -> None:
    c, y, x = pt.vars("c y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    even = pt.select(y % 2 == 0, img[y, x], img[y + 1, x])
    out[c, y, x] = pt.select(c == 0, even, pt.select(c == 1, img[y, x + 1], img[y + 2, x]))
    problem = problem_of(pt.Pipeline(out, shape=(3, img.shape[0] - 2, img.shape[1] - 1)), img=(258, 257))
    (reads,) = problem.facts.prepared_reads["out"]
    assert len(reads.like_of(("img",))) == 1  # one way to all
    needed = footprint.boxes(problem.facts, {"out"}, "out", {"c": 1, "y": 32, "x": 64})
    assert extents(needed["img"]) == [34, 65]


def test_parts_of_a_reduction() -> None:
    facts = problem_of(matrix_product(), a=(100, 200), b=(200, 300)).facts
    (loop,) = facts.reductions("c")
    assert facts.every_loop("c") == {"i": 100, "j": 300, loop: 200}
    needed = footprint.boxes(facts, {"c"}, "c", {"i": 10, "j": 20, loop: 50})
    assert (extents(needed["a"]), extents(needed["b"])) == ([10, 50], [50, 20])
    assert footprint.tiles(facts, "c", {"i": 10, "j": 20, loop: 50}) == 10 * 15 * 4


@pytest.mark.parametrize("focus", ["pure", "reductions", "updates"])
def test_prepared_reads_are_the_reads(focus: str) -> None:
    @seed(7)
    @settings(max_examples=25)
    @given(pipelines(focus, "any"))
    def run(case: Case) -> None:
        pipeline = pipeline_of(case)
        inputs, params = case.values(pipeline.graph)
        try:
            facts = problem_of(pipeline, **{n: a.shape for n, a in inputs.items()}, **params).facts
        except UserError:  # such a call is refused: of an empty picture
            return
        for stage in pipeline.graph.stages:
            if stage.name in facts.boxes:
                box = facts.boxes[stage.name]
                expected = stage_reads(stage, box, facts.scope)
                found: dict[str, Box] = {}
                for reads in (DefinitionReads(stage, d) for d in stage.definitions):
                    for buffer, b in reads.boxes(box, facts.scope, {}).items():
                        found[buffer] = hull(found[buffer], b) if buffer in found else b
                shown = [{n: [(r.low, r.high) for r in b] for n, b in boxes.items()} for boxes in (found, expected)]
                assert shown[0] == shown[1]

    run()


def test_groups_that_join_need_what_one_group_of_all_would() -> None:
    """harris: everything but the last two stages joins these."""
    facts = problem_of(APPS["harris"].build(), img=(3, 1030, 1030)).facts
    stages = [s.name for s in facts.graph.stages]
    output, own = stages[-1], stages[-2:]
    tile = {d: np.array([8, 64]) for d in facts.graph.stage[output].dims}
    joined = footprint.Footprint(facts, own, output, tile)
    changed = joined.joined(stages[:-2])
    whole = footprint.boxes(facts, stages, output, tile)
    assert {n: extents(b) for n, b in (joined.boxes | changed).items()} == {n: extents(b) for n, b in whole.items()}
    assert set(changed) >= set(stages[:-2])


@pytest.mark.parametrize("extended", [pt.mirror, pt.reflect, pt.wrap, pt.edge])
def test_inputs_beyond_their_edges_count_as_clamped(extended: Any) -> None:
    """Few tiles are at an edge: what those read elsewhere is not what tiles read."""
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("out")
    src = extended(img)
    out[y, x] = src[y - 1, x] + src[y + 1, x]
    problem = problem_of(pt.Pipeline(out, shape=img.shape), img=(1000, 1000))
    problem = problem.inlined(problem.facts.trivial)
    assert footprint.points(footprint.boxes(problem.facts, ("out",), "out", {"y": 10, "x": 1000})["img"]) == 12 * 1000
