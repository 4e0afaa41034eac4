"""Thread tiles: random ones of random pipelines in the simulator, and what `auto` finds by them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import Auto, Greedy, Problem
from pantile.autoschedule.search import on_gpus
from pantile.autoschedule.search.groups import groups
from pantile.autoschedule.search.thread_tiles import MOST_OPERATIONS, Kernel, ThreadTile, scheduled
from pantile.errors import UserError
from pantile.machine import named
from pantile.schedule.schedule import Schedule
from tests.fuzz.harness import Trial, assert_agrees, pipeline_of, refused_call
from tests.fuzz.isolate import isolated, isolated_together
from tests.fuzz.pipelines import Case, pipelines

from ..long import LONG
from .problems import TINY_GPU, problem_of

EXAMPLES = 500 if LONG else 6
SIZES = (1, 2, 5, 8, 17, 40, 70)
H200 = named("H200")
STEPS = 4  # moves from a tile to begin with


def kernels_of(problem: Problem, schedule: Schedule) -> list[Kernel]:
    return [k for g in groups(problem.graph, schedule) if (k := Kernel(problem, g)).has_tiles]


def any_tile(kernel: Kernel, choose: random.Random) -> ThreadTile:
    tile = choose.choice([*kernel.starts()])
    for _ in range(choose.randrange(STEPS)):
        tile = choose.choice([tile, *(t for _, t in kernel.moves(tile) if kernel.operations(t) <= MOST_OPERATIONS)])
    return tile


def tiled_at_random(problem: Problem, choose: random.Random) -> Schedule:
    """The schedule of `greedy` with other thread tiles for all kernels, as far as that is legal."""
    schedule = Greedy(vector_width=4, parallelism_threshold=1, target_threads_per_block=4).find(problem).schedule
    for kernel in kernels_of(problem, schedule):
        tiled = scheduled(kernel, schedule, any_tile(kernel, choose))
        try:
            problem.cost(tiled)
        except UserError:
            continue
        schedule = tiled
    return schedule


@pytest.mark.parametrize("focus", ["pure", "windows", "all"])
def test_random_tiles(focus: str) -> None:
    def run(case: Case, number: int) -> None:
        pipeline = pipeline_of(case, target="cuda-sim")
        inputs, params = case.values(pipeline.graph)
        if refused_call(pipeline, inputs, params):
            return
        problem = problem_of(pipeline, TINY_GPU, **{n: a.shape for n, a in inputs.items()}, **params)
        if all(all(shape) for shape in problem.shapes.values()):
            assert_agrees(Trial(case, tiled_at_random(problem, random.Random(number)), None, 1, "cuda-sim"))

    @seed(sum(map(ord, focus)))
    @settings(max_examples=EXAMPLES)
    @given(pipelines(focus, most=4, sizes=SIZES), st.integers(0, 1 << 30))
    def each(case: Case, number: int) -> None:
        isolated(lambda: run(case, number))

    isolated_together(each)


def kernel_of(app: str, **sizes: tuple[int, ...]) -> tuple[Kernel, Schedule]:
    """The kernel of an app whose schedule by `greedy` has one, and that schedule."""
    p = APPS[app].build().with_options(target="cuda-sim")
    problem = p.with_schedule("plain", machine=H200).problem(**sizes)
    schedule = Greedy().find(problem).schedule
    (kernel,) = kernels_of(problem, schedule)
    return kernel, schedule


def test_directives() -> None:
    kernel, schedule = kernel_of("blur", img=(2002, 2002))
    in_threads = scheduled(kernel, schedule, ThreadTile((2, 64), (8, 2), ("thread",)))
    assert (
        str(in_threads)
        == """pt.Schedule(
    pt.on("blur_x").compute_at("blur_y", "x_t").store_in("register").unroll("y").unroll("x"),
    pt.on("blur_y")
    .compute_root()
    .split("y", "y_o", "y_t", 16)
    .split("y_t", "y_t", "y_p", 8)
    .split("x", "x_o", "x_t", 128)
    .split("x_t", "x_t", "x_p", 2)
    .reorder("y_o", "x_o", "y_t", "x_t", "y_p", "x_p")
    .block("y_o", "x_o")
    .thread("y_t", "x_t")
    .unroll("y_p")
    .unroll("x_p"),
)"""
    )
    in_block = scheduled(kernel, schedule, ThreadTile((8, 32), (4, 1), ("block",)))
    assert str(in_block.on("blur_x")) == (
        'pt.on("blur_x").compute_at("blur_y", "x_o").store_in("shared").split("y", "y_t", "y_p", 4, tail="guard")'
        '.reorder("y_t", "x", "y_p").thread("y_t", "x").unroll("y_p")'
    )
    in_lanes = scheduled(kernel, schedule, ThreadTile((1, 128), (8, 1), ("lane",)))
    assert str(in_lanes.on("blur_x")) == (
        'pt.on("blur_x").compute_at("blur_y", "y_p").store_at("blur_y", "x_t").unroll("y").lane("x")'
    )


def test_tiles_that_a_search_begins_with() -> None:
    kernel, _ = kernel_of("harris", **APPS["harris"].sizes["paper"])
    assert kernel.halo == 4
    assert [t.places for t in kernel.starts()] == [("block",) * 3, ("thread",) * 3, ("lane",) * 3]
    block, thread, _ = kernel.starts()
    assert kernel.operations(thread) > kernel.operations(block) > 0


def test_members_with_updates_and_without_rows() -> None:
    """A block computes sums of windows one point per thread, and a table that has neither rows nor columns."""
    y, x, i = pt.vars("y x i")
    img, r = pt.Input("img", "float32", 2), pt.RDom((0, 3))
    table, sums, out = pt.Func("table"), pt.Func("sums"), pt.Func("out")
    table[i] = pt.sqrt(pt.cast("float32", i))
    sums[y, x] = 0.0
    sums[y, x] += img[y + r[0], x]
    out[y, x] = sums[y, x] + sums[y, x + 1] + table[y % 8]
    p = pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 1), target="cuda-sim")
    problem = p.with_schedule("plain", machine=H200).problem(img=(402, 401))
    of_sums = pt.on(sums).compute_at(out, "xo").thread("y", "x").update().thread("y", "x")
    schedule = pt.Schedule(tile_of(out), of_sums, pt.on(table).compute_at(out, "xo").thread("i"))
    (kernel,) = kernels_of(problem, schedule)
    img_ = np.random.default_rng(0).random((40, 50), np.float32)
    for tile in kernel.starts():
        tiled = p.with_schedule(scheduled(kernel, schedule, tile))
        np.testing.assert_allclose(tiled(img=img_), p.reference(img=img_), rtol=1e-5)


def test_outputs_with_updates_have_no_tiles() -> None:
    y, x = pt.vars("y x")
    img, r, out = pt.Input("img", "float32", 2), pt.RDom((0, 3)), pt.Func("out")
    out[y, x] = 0.0
    out[y, x] += img[y + r[0], x]
    p = pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1]), target="cuda-sim")
    problem = p.with_schedule("plain", machine=H200).problem(img=(402, 401))
    (group,) = groups(problem.graph, Greedy().find(problem).schedule)
    assert group.output == "out" and not Kernel(problem, group).has_tiles


@pytest.mark.parametrize(("app", "least"), [("harris", 1.2)])
def test_auto_gets_faster_by_thread_tiles(app: str, least: float) -> None:
    """As predicted, by as much as the schedule that is written by hand."""
    sizes: dict[str, Any] = {**APPS[app].sizes["paper"]}
    p = APPS[app].build().with_options(target="cuda-sim")
    problem = p.with_schedule("plain", machine=H200).problem(**sizes)
    found, without = (problem.cost(Auto(without=w).find(problem).schedule) for w in (None, ("thread_tiles",)))
    assert without.seconds > least * found.seconds
    by_hand = p.with_schedule(APPS[app].schedule("expert", p.options.target), machine=H200).predict(**sizes)
    assert found.seconds <= 1.05 * by_hand.seconds


def test_kernels_that_are_alike_get_the_same_tile() -> None:
    """The steps of a chain, two stages of which are a kernel."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", 2)
    before: Any = img
    chains = []
    for k in range(4):
        f, g = pt.Func(f"f{k}"), pt.Func(f"g{k}")
        f[y, x] = before[y, x] + before[y, x + 1] + before[y, x + 2]
        g[y, x] = f[y, x] + f[y + 1, x] + f[y + 2, x]
        chains += [pt.on(f).compute_at(g, "xo").thread("y", "x"), tile_of(g)]
        before = g
    p = pt.Pipeline(before, shape=(img.shape[0] - 8, img.shape[1] - 8), target="cuda-sim")
    problem = p.with_schedule("plain", machine=H200).problem(img=(4008, 4008))
    search = on_gpus._Search(problem, [], 0.07, ())
    start = search.candidates.candidate("by hand", pt.Schedule(*chains))
    assert start is not None
    ((kernels),) = search._expensive(start)
    assert sorted(k.output.name for k in kernels) == ["g0", "g1", "g2", "g3"]
    tiled = search._in_other_tiles(start, kernels)
    assert tiled.seconds < start.seconds * 0.8
    assert len({str(tiled.schedule.on(f"g{k}")).partition(")")[2] for k in range(4)}) == 1


def tile_of(f: pt.Func) -> pt.StageSchedule:
    chain = pt.on(f).compute_root().split("y", "yo", "yi", 8).split("x", "xo", "xi", 32)
    return chain.reorder("yo", "xo", "yi", "xi").block("yo", "xo").thread("yi", "xi")
