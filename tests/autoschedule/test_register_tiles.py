"""Sums of products on a GPU: tiles of them in registers of threads."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule.common.register_tiles import RegisterTile
from pantile.machine import named

from .problems import problem_of

H200 = named("H200")


def product(dtype: str = "float32") -> pt.Pipeline:
    i, j = pt.vars("i j")
    a, b, out = pt.Input("a", dtype, ndim=2), pt.Input("b", dtype, ndim=2), pt.Func("out")
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    out[i, j] = pt.cast(dtype, 0)
    out[i, j] += a[i, r.k] * b[r.k, j]
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), target="cuda-sim")


def planes() -> pt.Pipeline:
    """A convolution of images in planes, whose tiles have output channels for rows."""
    n, co, y, x = pt.vars("n co y x")
    img, weights, out = pt.Input("img", "int32", ndim=4), pt.Input("weights", "int32", ndim=4), pt.Func("out")
    r = pt.RDom((0, img.shape[1]), (0, 3), (0, 3), name="r", names="c y x")
    out[n, co, y, x] = 1
    out[n, co, y, x] += weights[co, r.c, r.y, r.x] * img[n, r.c, y + r.y, x + r.x]
    images, _, height, width = img.shape
    return pt.Pipeline(out, shape=(images, weights.shape[0], height - 2, width - 2), target="cuda-sim")


def blurred() -> pt.Pipeline:
    """A window of a picture, of which no row uses what another has loaded for all of its columns."""
    y, x = pt.vars("y x")
    img, weights, out = pt.Input("img", "float32", ndim=2), pt.Input("weights", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, 5), (0, 5), name="r", names="y x")
    out[y, x] = 0.0
    out[y, x] += weights[r.y, r.x] * img[y + r.y, x + r.x]
    return pt.Pipeline(out, shape=(img.shape[0] - 4, img.shape[1] - 4), target="cuda-sim")


LARGE = {
    "b": {"a": (512, 64), "b": (64, 512)},
    "weights": {"img": (2, 64, 130, 130), "weights": (64, 64, 3, 3)},
}


def tile(pipeline: pt.Pipeline, **shapes: tuple[int, ...]) -> RegisterTile | None:
    problem = problem_of(pipeline, H200, **shapes)
    return RegisterTile.of(problem, problem.graph.stage["out"])


def test_what_is_used_again_along_two_dims() -> None:
    of_product, of_planes = tile(product(), **LARGE["b"]), tile(planes(), **LARGE["weights"])
    assert of_product is not None and (of_product.row, of_product.column) == ("i", "j")
    assert of_planes is not None and (of_planes.row, of_planes.column) == ("co", "x")
    assert tile(blurred(), img=(516, 516), weights=(5, 5)) is None
    assert tile(product(), a=(512, 64), b=(64, 100)) is None, "not a row of threads"
    assert tile(product(), a=(4, 64), b=(64, 512)) is None, "not the rows of a thread"


def part(pipeline: pt.Pipeline, **shapes: tuple[int, ...]) -> tuple[pt.StageSchedule, ...]:
    """The directives of a sum in its register tile, without those of shared memory."""
    problem, found = problem_of(pipeline, H200, **shapes), tile(pipeline, **shapes)
    assert found is not None
    return found.scheduled(problem)


@pytest.mark.parametrize(
    ("pipeline", "shapes"),
    [
        (product(), {"a": (65, 9), "b": (9, 130)}),
        (product(), {"a": (3, 5), "b": (5, 7)}),
        (product("uint8"), {"a": (64, 16), "b": (16, 128)}),
        (planes(), {"img": (2, 3, 6, 131), "weights": (9, 3, 3, 3)}),
    ],
    ids=["odd", "tiny", "bytes", "planes"],
)
def test_they_are_right_at_every_size(pipeline: pt.Pipeline, shapes: dict[str, tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    large = LARGE[pipeline.graph.inputs[1].name]
    scheduled = pipeline.with_schedule(pt.Schedule(*part(pipeline, **large)))
    dtypes = {i.name: i.dtype.numpy for i in pipeline.graph.inputs}
    given = {name: rng.integers(0, 99, shape).astype(dtypes[name]) for name, shape in shapes.items()}
    assert np.allclose(scheduled(**given), pipeline.reference(**given), rtol=1e-5)


def test_each_loaded_value_is_used_for_a_row_or_column() -> None:
    """Four terms of 8 x 4 sums take 128 multiplications, and 12 loads of four values each."""
    code = product().with_schedule(pt.Schedule(*part(product(), **LARGE["b"]))).asm("sm_90")
    loop = max(code.split("$L__BB0_"), key=lambda block: block.count("fma.rn.f32"))
    assert loop.count("fma.rn.f32") == 128
    assert loop.count("ld.global.nc.v4.b32") == 12 and loop.count("ld.global") == 12


def test_as_many_rows_as_leave_blocks_for_all_multiprocessors() -> None:
    matmul = APPS["matmul"].build().with_options(target="cuda-sim")
    stored, _ = part(matmul, a=(4096, 4096), b=(4096, 4096))
    (split,) = [d for d in stored.directives if d.verb == "split" and d.args[0] == "i"]
    assert split.args[3] == 64, "eight rows of eight threads"
