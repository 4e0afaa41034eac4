"""Groups as blocks and threads: legal on every pipeline, with results that equal the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule.common.legalize import LegalSchedule, legal
from pantile.autoschedule.common.marking import Style
from pantile.autoschedule.common.tiles import TiledGroup, scheduled
from pantile.autoschedule.search.rolling import Roll, chains
from pantile.machine import named
from tests.fuzz.harness import Trial, assert_agrees, pipeline_of, refused_call
from tests.fuzz.isolate import isolated, isolated_together
from tests.fuzz.kinds import KINDS
from tests.fuzz.pipelines import Case, pipelines

from .groups import groups
from .problems import problem_of

H200, V100 = named("H200"), named("Tesla V100")
EXAMPLES = 3
SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 17, 40)


def of_groups(pipeline: pt.Pipeline, *of: TiledGroup, machine: Any = H200, **arguments: Any) -> LegalSchedule:
    """The schedule of these groups; other stages are on their own, or inlined where they are parts of expressions."""
    problem = problem_of(pipeline, machine, **arguments)
    inlined = problem.facts.trivial
    left = problem.inlined(inlined)
    return legal(problem, [scheduled(left, g) for g in of], inlined)


def test_the_loops_of_a_group() -> None:
    """The parts of a group are the same on all machines, and their kinds those of the machine."""
    blur, group = APPS["blur"].build(), TiledGroup("blur_y", ("blur_x",), ({"y": 8, "x": 32},))
    assert of_groups(blur, group, img=(202, 302)).schedule == pt.Schedule(
        pt.on("blur_x").compute_at("blur_y", "x_o").thread("y", "x"),
        pt.on("blur_y")
        .compute_root()
        .split("y", "y_o", "y_i", 8)
        .split("x", "x_o", "x_i", 32)
        .reorder("y_o", "x_o", "y_i", "x_i")
        .block("y_o", "x_o")
        .thread("y_i", "x_i"),
    )
    of_cpu = of_groups(blur, group, machine=named("neoverse-n1"), img=(202, 302)).schedule.on("blur_y")
    splits = [d for d in of_cpu.directives if d.verb == "split"]
    assert splits == [d for d in of_groups(blur, group, img=(202, 302)).schedule.on("blur_y").directives
                      if d.verb == "split"]  # fmt: skip


def test_threads_have_several_points_where_tiles_have_more_than_a_block_has_threads() -> None:
    blur = APPS["blur"].build()
    for tile, threads, points in (
        ({"y": 64, "x": 64}, ("y_i_t", "x_i"), ("y_i_p",)),
        ({"y": 2, "x": 2048}, ("x_i_t",), ("y_i", "x_i_p")),
    ):
        chain = of_groups(blur, TiledGroup("blur_y", ("blur_x",), (tile,)), img=(4802, 6402)).schedule.on("blur_y")
        assert pt.on("blur_y").thread(*threads).directives[0] in chain.directives
        order = next(d.args for d in chain.directives if d.verb == "reorder")
        assert order == ("y_o", "x_o", *threads, *points)


def test_threads_have_several_points_of_large_pictures() -> None:
    """A quarter of the threads compute four adjacent rows each, if that leaves the multiprocessors filled."""
    blur, group = APPS["blur"].build(), TiledGroup("blur_y", ("blur_x",), ({"y": 32, "x": 32},))
    for shape, threads, points in (((4802, 6402), ("y_i_t", "x_i"), ("y_i_p",)), ((480, 640), ("y_i", "x_i"), ())):
        problem = problem_of(blur, H200, img=shape)
        chain = scheduled(problem, group, Style(points=4))[0]
        order = next(d.args for d in chain.directives if d.verb == "reorder")
        assert order == ("y_o", "x_o", *threads, *points)
        assert [d.args[0] for d in chain.directives if d.verb == "unroll"] == [*points]


def test_threads_have_several_rows_of_members_if_that_shares_them_out_evenly() -> None:
    """34 by 32 points of `blur_x` are 5 for each of 256 threads, and 6 in pairs of rows. 7 by 32 points are 2 for
    each of 128 threads, and only all rows of a column are a number that divides 7."""
    problem = problem_of(APPS["blur"].build(), H200, img=(4802, 6402))
    start = pt.on("blur_x").compute_at("blur_y", "x_o")
    pairs = start.split("y", "y_t", "y_p", 2).reorder("y_t", "x", "y_p").thread("y_t", "x").unroll("y_p")
    one_by_one = start.thread("y", "x")
    for tile, points, expected in (
        ({"y": 32, "x": 32}, 4, pairs),
        ({"y": 32, "x": 32}, 1, one_by_one),
        ({"y": 5, "x": 32}, 4, one_by_one),
    ):
        assert scheduled(problem, TiledGroup("blur_y", ("blur_x",), (tile,)), Style(points=points))[1] == expected


def test_stages_of_their_own_are_those_of_the_plain_schedule() -> None:
    for name in ("blur", "hist_eq", "bilateral_grid"):
        app = APPS[name]
        plain = app.build().with_options(target="cuda-sim").with_schedule("plain")
        stored = [s for s in plain.graph.stages if "compute_inline" not in plain.schedule.on(s.name).verbs]
        inlined = [s.name for s in plain.graph.stages if s not in stored]
        problem = problem_of(plain, H200, **app.arguments("small"))
        result = legal(problem, [scheduled(problem, TiledGroup(s.name)) for s in stored], inlined)
        assert result.schedule == plain.schedule and all(result.honoured)


def test_what_a_block_has_no_memory_for_is_dissolved() -> None:
    """By lowering, since it alone knows what lies in shared memory: 65 KB, of which a V100 has more and less."""
    blur = APPS["blur"].build()
    for rows, is_honoured in ((32, True), (128, False)):
        group = TiledGroup("blur_y", ("blur_x",), ({"y": rows, "x": 512},))
        result = of_groups(blur, group, machine=V100, img=(4802, 6402))
        assert result.honoured == (is_honoured,)
        assert any("shared memory" in remark for remark in result.remarks) == (not is_honoured)
        assert ("compute_at" in result.schedule.on("blur_x").verbs) == is_honoured


def test_what_has_no_constant_size_is_dissolved() -> None:
    """Whole rows are as long as the picture is."""
    group = TiledGroup("blur_y", ("blur_x",), ({"y": 4},))
    result = of_groups(APPS["blur"].build(), group, img=(4802, 6402))
    assert result.honoured == (False,) and "has no constant size" in result.remarks[0]


BY_HAND = {
    "blur": (TiledGroup("blur_y", ("blur_x",), ({"y": 16, "x": 64},)),),
    "unsharp": (TiledGroup("out", ("gray", "blur_y", "blur_x", "ratio"), ({"y": 16, "x": 32},)),),
    "harris": (TiledGroup("out", ("gray", "gradient", "row_sums", "response"), ({"y": 8, "x": 32},)),),
    "camera_pipe": (
        TiledGroup("sharpened", ("blur_y", "blur_x"), ({"y": 16, "x": 32},)),
        TiledGroup("corrected", ("mosaic", "green", "others", "colours"), ({"y": 8, "x": 32},)),
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_apps(name: str) -> None:
    app = APPS[name]
    pipeline = app.build()
    result = of_groups(pipeline, *BY_HAND[name], **app.arguments("small"))
    assert all(result.honoured), result.remarks
    run = pipeline.with_options(target="cuda-sim").with_schedule(result.schedule)
    arguments = app.arguments("small")
    np.testing.assert_allclose(run(**arguments), pipeline.reference(**arguments), rtol=2e-4, atol=1e-3)


@pytest.mark.parametrize("focus", KINDS)
def test_random_groups(focus: str) -> None:
    """What `legal` makes of them lowering takes, too, as far as it takes the plain schedule."""

    def run(case: Case, data: st.DataObject) -> None:
        pipeline = pipeline_of(case, target="cuda-sim")
        inputs, params = case.values(pipeline.graph)
        if refused_call(pipeline, inputs, params):
            return
        problem = problem_of(pipeline, H200, **{n: a.shape for n, a in inputs.items()}, **params)
        if any(0 in shape for shape in problem.shapes.values()):
            return
        left = problem.inlined(problem.facts.trivial)
        result = legal(problem, [scheduled(left, g) for g in data.draw(groups(left))], problem.facts.trivial)
        assert_agrees(Trial(case, result.schedule, None, 1, "cuda-sim"))

    @seed(sum(map(ord, focus)))
    @settings(max_examples=EXAMPLES)
    @given(pipelines(focus, most=4, sizes=SIZES), st.data())
    def each(case: Case, data: st.DataObject) -> None:
        isolated(lambda: run(case, data))

    isolated_together(each)


def test_rolling_groups_slide_in_shared_memory() -> None:
    """Loops that `search/` splits by itself have a meaning on GPUs, too: what rolls down a strip of tiles is a sliding
    window in shared memory, of as many columns as there are threads, in rows that are written out in each thread."""
    app = APPS["unsharp"]
    pipeline, arguments = app.build(), app.arguments("small")
    problem = problem_of(pipeline, H200, **arguments)
    inlined = problem.facts.trivial
    roll = Roll("out", ("gray", "blur_y", "blur_x", "ratio"), planes="inside", tile=64)
    result = legal(problem, [tuple(chains(problem.inlined(inlined), roll))], inlined)
    assert result.honoured == (True,)
    gray = result.schedule.on("gray")
    assert {"store_at", "compute_at", "thread", "unroll"} <= {*gray.verbs} and "vectorize" not in gray.verbs
    run = pipeline.with_options(target="cuda-sim").with_schedule(result.schedule)
    np.testing.assert_allclose(run(**arguments), pipeline.reference(**arguments), rtol=2e-4, atol=1e-3)


def test_definitions_without_some_of_the_dims_are_tiled_along_the_others() -> None:
    """An update of the first column has no loop over columns to share among threads."""
    y, x = pt.vars("y x")
    img, f = pt.Input("img", "int32", ndim=2), pt.Func("f")
    f[y, x] = img[y, x] + 1
    f[y, 0] += img[y, 1]
    pipeline = pt.Pipeline(f, shape=img.shape)
    result = of_groups(pipeline, TiledGroup("f", (), ({"y": 4},)), img=(40, 70))
    assert result.honoured == (True,)
    run = pipeline.with_options(target="cuda-sim").with_schedule(result.schedule)
    picture = np.arange(40 * 70, dtype=np.int32).reshape(40, 70)
    assert (run(img=picture) == pipeline.reference(img=picture)).all()
