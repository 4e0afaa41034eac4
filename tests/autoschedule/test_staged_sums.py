"""Sums of products on a GPU whose factors blocks stage in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import STRATEGIES
from pantile.autoschedule.common import staged_sums
from pantile.autoschedule.common.staged_sums import StagedSum
from pantile.machine import named

from .problems import GPU_MODELS, problem_of
from .test_register_tiles import LARGE, blurred, planes, product

H200 = named("H200")
MATRICES = {"a": (4096, 4096), "b": (4096, 4096)}
IMAGES = {"img": (4, 58, 58, 64), "weights": (3, 3, 64, 64)}


def layer(step: int = 1, dtype: str = "float32") -> pt.Pipeline:
    """A convolution of images with their channels last, and what is computed of its sums."""
    n, y, x, co = pt.vars("n y x co")
    img, weights = pt.Input("img", dtype, ndim=4), pt.Input("weights", dtype, ndim=4)
    sums, out = pt.Func("sums"), pt.Func("out")
    r = pt.RDom((0, 3), (0, 3), (0, img.shape[3]), name="r", names="y x c")
    sums[n, y, x, co] = pt.cast(dtype, 1)
    sums[n, y, x, co] += weights[r.y, r.x, r.c, co] * img[n, step * y + r.y, step * x + r.x, r.c]
    out[n, y, x, co] = pt.maximum(sums[n, y, x, co], 0) * 2
    images, height, width, _ = img.shape
    shape = (images, (height - 3) // step + 1, (width - 3) // step + 1, weights.shape[3])
    return pt.Pipeline(out, shape=shape, target="cuda-sim")


def summed_again() -> pt.Pipeline:
    """A product of products, of which the first one is no output."""
    i, j = pt.vars("i j")
    a, b, c = (pt.Input(name, "float32", ndim=2) for name in "abc")
    ab, out = pt.Func("ab"), pt.Func("out")
    r, s = pt.RDom((0, a.shape[1]), name="r", names="k"), pt.RDom((0, b.shape[1]), name="s", names="k")
    ab[i, j] = 0.0
    ab[i, j] += a[i, r.k] * b[r.k, j]
    out[i, j] = 0.0
    out[i, j] += ab[i, s.k] * c[s.k, j]
    return pt.Pipeline(out, shape=(a.shape[0], c.shape[1]), target="cuda-sim")


def of_itself() -> pt.Pipeline:
    """A matrix times its own transpose: two reads of one input are copied, each by itself."""
    i, j = pt.vars("i j")
    a, out = pt.Input("a", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    out[i, j] = 0.0
    out[i, j] += a[i, r.k] * a[j, r.k]
    return pt.Pipeline(out, shape=(a.shape[0], a.shape[0]), target="cuda-sim")


def found(pipeline: pt.Pipeline, strategy: str = "greedy", **shapes: tuple[int, ...]) -> pt.Schedule:
    return STRATEGIES[strategy]().find(problem_of(pipeline, H200, **shapes)).schedule


def copies(schedule: pt.Schedule) -> list[str]:
    """What is copied to shared memory, ahead of its use."""
    return [name for name, chain in schedule.items() if {"store_in", "compute_ahead"} <= chain.verbs]


@pytest.mark.parametrize("strategy", GPU_MODELS)
def test_strategies_stage_both_factors(strategy: str) -> None:
    schedule = found(APPS["matmul"].build(), strategy, **MATRICES)
    assert copies(schedule) == ["a_near", "b_near"]
    assert {"store_in", "unroll", "vectorize"} <= schedule.on("out_sums").verbs


@pytest.mark.parametrize("strategy", GPU_MODELS)
def test_what_is_computed_of_sums_takes_them_out_of_registers(strategy: str) -> None:
    schedule = found(layer(), strategy, **IMAGES)
    assert copies(schedule) == ["weights_near", "img_near"] or copies(schedule) == ["img_near", "weights_near"]
    (place,) = [d for d in schedule.on("sums").directives if d.verb == "compute_at"]
    assert place.args[0] == "out"


def test_the_inner_loop_of_a_product() -> None:
    """Per term, 8 x 16 sums of a thread, whose 8 and 16 factors are 6 loads of four values each."""
    code = product().with_schedule("greedy", machine=H200, estimates=MATRICES).asm("sm_90")
    loop = max(code.split("$L__BB0_"), key=lambda block: block.count("fma.rn.f32"))
    assert loop.count("fma.rn.f32") == 128
    assert loop.count("ld.shared.v4.b32") == loop.count("ld.shared") == 6 and "ld.global" not in loop
    assert "cp.async.cg.shared.global" in code


def test_reports_name_them() -> None:
    remarks = product().with_schedule("greedy", machine=H200, estimates=MATRICES).report.remarks
    assert "sums of products, with slices of factors in shared memory: out" in remarks


def test_the_inner_loop_of_a_convolution() -> None:
    """Three terms of a row share what they load of the image."""
    code = layer().with_schedule(
        "greedy", machine=H200, estimates={"img": (5, 82, 102, 128), "weights": (3, 3, 128, 128)}
    )
    loop = max(code.asm("sm_90").split("$L__BB0_"), key=lambda block: block.count("fma.rn.f32"))
    assert loop.count("fma.rn.f32") == 192 and loop.count("ld.shared") == 9 and "ld.global" not in loop


def test_sums_that_are_not_staged() -> None:
    def of(pipeline: pt.Pipeline, **shapes: tuple[int, ...]) -> StagedSum | None:
        problem = problem_of(pipeline, H200, **shapes)
        return StagedSum.of(problem, problem.graph.stage["out"])

    assert of(product(), **MATRICES) is not None
    assert of(product(), a=(64, 16), b=(16, 64)) is None, "small"
    assert of(product(), a=(4096, 4096), b=(4096, 2)) is None, "not a row of threads"
    assert of(blurred(), img=(2052, 2052), weights=(5, 5)) is None, "no row uses again what another has loaded"


@pytest.mark.parametrize(
    ("pipeline", "large", "shapes"),
    [
        (product(), MATRICES, {"a": (130, 35), "b": (35, 140)}),
        (product(), MATRICES, {"a": (3, 5), "b": (5, 7)}),
        (product("uint8"), LARGE["b"], {"a": (64, 16), "b": (16, 128)}),
        (product("float64"), LARGE["b"], {"a": (65, 9), "b": (9, 130)}),
        (planes(), LARGE["weights"], {"img": (2, 5, 10, 131), "weights": (9, 5, 3, 3)}),
        (layer(), IMAGES, {"img": (1, 19, 21, 9), "weights": (3, 3, 9, 66)}),
        (layer(), IMAGES, {"img": (1, 3, 4, 2), "weights": (3, 3, 2, 5)}),
        (layer(2), IMAGES, {"img": (1, 39, 37, 6), "weights": (3, 3, 6, 64)}),
        (layer(1, "int32"), IMAGES, {"img": (2, 20, 20, 4), "weights": (3, 3, 4, 64)}),
        (summed_again(), {**MATRICES, "c": (4096, 4096)}, {"a": (130, 20), "b": (20, 35), "c": (35, 129)}),
        (summed_again(), {**MATRICES, "c": (4096, 4096)}, {"a": (3, 5), "b": (5, 7), "c": (7, 2)}),
        (of_itself(), {"a": (4096, 4096)}, {"a": (130, 19)}),
    ],
    ids=[
        "odd",
        "tiny",
        "bytes",
        "doubles",
        "planes",
        "layer",
        "tiny layer",
        "stride",
        "ints",
        "two",
        "tiny two",
        "self",
    ],
)
def test_they_are_right_at_every_size(
    pipeline: pt.Pipeline, large: dict[str, tuple[int, ...]], shapes: dict[str, tuple[int, ...]]
) -> None:
    scheduled = pipeline.with_schedule("greedy", estimates=large, machine=H200)
    assert len(copies(scheduled.schedule)) >= 2
    check(scheduled, shapes)


def check(scheduled: pt.Pipeline, shapes: dict[str, tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    dtypes = {i.name: i.dtype.numpy for i in scheduled.graph.inputs}
    given: dict[str, Any] = {name: rng.integers(0, 99, shape).astype(dtypes[name]) for name, shape in shapes.items()}
    assert np.allclose(scheduled(**given), scheduled.reference(**given), rtol=1e-5)


Case = tuple[pt.Pipeline, dict[str, tuple[int, ...]]]


@st.composite
def random_sums(draw: st.DrawFn) -> Case:
    """Sums over two loops of products of two factors, each read somehow, and the shapes of these."""
    n, i, j = pt.vars("n i j")
    shape = (draw(st.integers(1, 3)), draw(st.integers(8, 40)), draw(st.integers(16, 140)))
    extents = draw(st.integers(16, 24)), draw(st.integers(1, 3))
    r = pt.RDom((0, extents[0]), (0, extents[1]), name="r", names="k l")
    index = {"n": n, "i": i, "j": j, "k": r.k, "l": r.l, "i+l": i + r.l, "j+l": j + r.l, "2i+l": 2 * i + r.l}
    size = dict(zip("nijkl", (*shape, *extents), strict=True))
    size |= {"i+l": size["i"] + size["l"], "j+l": size["j"] + size["l"], "2i+l": 2 * size["i"] + size["l"]}
    planes = draw(st.integers(0, 2))  # of no factor, of one, of both
    rows = [*["n"][:planes], draw(st.sampled_from(["i", "i+l", "2i+l"])), "k"]
    columns = [*["n"][: planes - 1], draw(st.sampled_from(["j", "j+l"])), *draw(st.sampled_from([["k"], ["k", "l"]]))]
    places = {"a": draw(st.permutations(rows)), "b": draw(st.permutations(columns))}
    a, b = (pt.Input(name, "int32", ndim=len(place)) for name, place in places.items())
    sums, out = pt.Func("sums"), pt.Func("out")
    sums[n, i, j] = 0
    sums[n, i, j] += a[tuple(index[x] for x in places["a"])] * b[tuple(index[x] for x in places["b"])]
    out[n, i, j] = pt.maximum(sums[n, i, j], 7) if draw(st.booleans()) else sums[n, i, j] + sums[n, i, 0]
    shapes = {name: tuple(size[x] for x in place) for name, place in places.items()}
    return pt.Pipeline(out, shape=shape, target="cuda-sim"), shapes


@settings(max_examples=6, deadline=None)
@given(random_sums(), st.sampled_from(GPU_MODELS))
def test_random_sums(case: Case, strategy: str) -> None:
    pipeline, shapes = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staged_sums, "FEWEST_PRODUCTS", 1)
        schedule = found(pipeline, strategy, **shapes)
    check(pipeline.with_schedule(schedule), shapes)
