"""What stages without directives get."""

from __future__ import annotations

import numpy as np
import pytest

import pantile
from pantile import schedule as pt
from pantile.graph.nodes import Graph
from pantile.schedule import Schedule, complete, resolve
from pantile.target import NAMED
from tests.reference.hand_built import X, Y, graph, load, stage
from tests.schedule import pipelines

LAST = {
    "blur_x": 'pt.on("blur_x").compute_root().parallel("y").vectorize("x", 4)',
    "blur_y": 'pt.on("blur_y").compute_root().parallel("y").vectorize("x", 4)',
}


def default(g: Graph, *asked: pt.StageSchedule) -> dict[str, str]:
    return {name: repr(s) for name, s in complete(g, Schedule(*asked)).items()}


def test_stencils_are_computed_at_root() -> None:
    assert default(pipelines.blur()) == LAST


def test_what_is_scheduled_stays_as_it_is() -> None:
    mine = pt.on("blur_x").reorder("x", "y")
    assert default(pipelines.blur(), mine) == {**LAST, "blur_x": repr(mine)}


def test_the_vector_is_as_wide_as_the_machine_and_as_the_widest_type() -> None:
    assert '.vectorize("x", 16)' in repr(complete(pipelines.blur(), Schedule(), target=NAMED["x86-64-v4"])["blur_y"])
    narrow = stage("f", "y x", load("img", "uint8", Y, X) + load("img", "uint8", Y, X + 1))
    g = graph(narrow, out=(("f", (64, 64)),), inputs=pipelines.BYTES)
    assert default(g)["f"].endswith('.vectorize("x", 16)')


def one_reader(value: str) -> Graph:
    """g between the image and a stencil; `value` says what g does."""
    read = load("img", "float32", Y, X)
    values = {
        "pointwise": (read * read + read / 3.0) * read,
        "cheap": load("img", "float32", Y + 1, X) * 2.0 + 1.0,
        "stencil": read + load("img", "float32", Y, X + 1),
    }
    g = stage("g", "y x", values[value])
    out = stage("out", "y x", load("g", "float32", Y, X) + load("g", "float32", Y, X + 2))
    return graph(g, out, out=(("out", (64, 64)),), inputs=pipelines.FLOATS)


@pytest.mark.parametrize(("value", "inlined"), [("pointwise", True), ("cheap", True), ("stencil", False)])
def test_what_is_inlined(value: str, inlined: bool) -> None:
    assert ("compute_inline" in default(one_reader(value))["g"]) == inlined


def test_a_place_is_not_inlined() -> None:
    (a,) = (s for s in pipelines.blur().stages if s.name == "blur_x")
    g = stage("g", "y x", load("blur_x", "float32", Y, X) * 2.0)
    out = stage("out", "y x", load("g", "float32", Y, X) + load("g", "float32", Y, X + 2))
    made = graph(a, g, out, out=(("out", (64, 64)),), inputs=pipelines.FLOATS)
    assert default(made)["g"] == 'pt.on("g").compute_inline()'
    assert "compute_root" in default(made, pt.on("blur_x").compute_at("g", "y"))["g"]
    # blur_x is read once by g, but twice through it.
    assert "compute_root" in default(made)["blur_x"]


def test_small_sums_are_inlined_where_the_builder_made_them() -> None:
    assert default(pipelines.box(8))["sum"] == 'pt.on("sum").compute_inline()'
    assert "compute_root" in default(pipelines.box(9))["sum"]
    assert "compute_root" in default(pipelines.box(8, helper=False))["sum"]


@pytest.mark.parametrize(("repeated", "inlined"), [("by a sum", False), ("by a stencil", False), ("not", True)])
def test_sums_are_not_repeated(repeated: str, inlined: bool) -> None:
    y, x = pantile.vars("y x")
    img, a, out = pantile.Input("img", "float32", 2), pantile.Func("a"), pantile.Func("out")
    r = pantile.RDom((0, 3))
    row = pantile.sum(img[y, x + r[0]], over=r)
    a[y, x] = row * row + row  # one place, however often it is written
    column = {"by a sum": pantile.sum(a[y + r[0], x], over=r), "by a stencil": a[y, x] + a[y + 1, x], "not": a[y, x]}
    out[y, x] = column[repeated]
    found = default(pantile.Pipeline(out, shape=(64, 64)).graph)
    assert ("compute_inline" in found["a_sum"]) == inlined


@pytest.mark.parametrize(("terms", "inlined"), [(3, True), (17, False)])
def test_long_sums_are_not_repeated_by_two_stages(terms: int, inlined: bool) -> None:
    y, x = pantile.vars("y x")
    img, r, s = pantile.Input("img", "float32", 2), pantile.RDom((0, terms)), pantile.RDom((0, 9))
    mean, a, b, out = (pantile.Func(name) for name in ("mean", "a", "b", "out"))
    mean[y, x] = pantile.sum(img[y, x + r[0]], over=r) / terms
    a[y, x], b[y, x] = mean[y, x] / (mean[y, x] + 1), img[y, x] / mean[y, x]
    out[y, x] = pantile.sum(a[y + s[0], x], over=s) + pantile.sum(b[y + s[0], x], over=s)
    found = default(pantile.Pipeline(out, shape=(64, 64)).graph)
    assert ["compute_root" in found[name] for name in ("a", "b")] == [True, True]
    assert ("compute_inline" in found["mean_sum"]) == inlined


def test_work_is_not_repeated_for_each_term_of_a_sum() -> None:
    y, x = pantile.vars("y x")
    img, a, out = pantile.Input("img", "float32", 2), pantile.Func("a"), pantile.Func("out")
    r = pantile.RDom((0, 3))
    a[y, x] = img[y, x] / (img[y, x] * img[y, x] + 1.0)
    out[y, x] = pantile.sum(a[y + r[0], x], over=r)
    assert "compute_root" in default(pantile.Pipeline(out, shape=(64, 64)).graph)["a"]


@pytest.mark.parametrize(("dtype", "reads", "stored"), [("uint8", 49, True), ("uint8", 4, False), ("int32", 49, False)])
def test_what_is_dear_and_read_often_is_a_table(dtype: str, reads: int, stored: bool) -> None:
    """If data of its type says where: there may be 2**32 elements."""
    i, x = pantile.vars("i x")
    img, weight, out = pantile.Input("img", dtype, 1), pantile.Func("weight"), pantile.Func("out")
    weight[i] = pantile.exp(-pantile.cast("float32", i))
    out[x] = sum([weight[img[x + k]] for k in range(1, reads)]) + weight[img[x]]
    found = default(pantile.Pipeline(out, shape=(64,)).graph)["weight"]
    assert ("compute_root" in found) == stored != ("compute_inline" in found)


def total(dtype: str, *extents: int | None) -> pantile.Pipeline:
    """The sum of everything in an array, or of so much of it."""
    img, f = pantile.Input("img", dtype, len(extents)), pantile.Func("f")
    r = pantile.RDom(*((0, n or img.shape[k]) for k, n in enumerate(extents)))
    f[()] = pantile.cast(dtype, 0)
    f[()] += img[tuple(r[k] for k in range(len(extents)))]
    return pantile.Pipeline(f, shape=())


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_everything_is_summed_in_parts(dtype: str, strict: bool) -> None:
    """By threads and lanes, unless that would round floats in another way than they are written."""
    for p in (total(dtype, None), total(dtype, None, None), total(dtype, 256, 64)):
        found = p.with_options(strict=strict).schedule
        assert ("f_blocks_lanes" in found) == (dtype == "int32" or not strict), found
    for p in (total(dtype, 10, 10), total(dtype, None, None, None)):
        assert list(p.schedule) == ["f"]
    for shape in ((0, 5), (1, 1), (1, 37), (17, 16), (40, 3), (35, 129)):
        img = np.arange(shape[0] * shape[1]).reshape(shape).astype(dtype)
        flat = total(dtype, None).with_options(strict=strict)(img=img.ravel(), num_threads=2)
        assert total(dtype, None, None).with_options(strict=strict)(img=img) == flat == img.sum()


def test_sums_of_millions_of_floats_keep_their_digits() -> None:
    img = np.full((2000, 1500), 0.1, np.float32)
    np.testing.assert_allclose(total("float32", None, None)(img=img), 0.1 * img.size, rtol=2e-6)


def test_names_of_partial_results_are_free() -> None:
    blocks, f = pantile.Func("f_blocks"), pantile.Func("f")
    img, gain = pantile.Input("img", "int32", 1), pantile.Param("lanes", "int32")
    r, x = pantile.RDom((0, img.shape[0])), pantile.Var("x")
    blocks[x] = img[x] * gain
    f[()] = 0
    f[()] += blocks[r[0]]
    p = pantile.Pipeline(f, shape=())
    assert p(img=np.arange(100, dtype=np.int32), lanes=3) == 99 * 50 * 3


def test_updates() -> None:
    assert default(pipelines.product())["c"] == (
        'pt.on("c").compute_root().parallel("i").vectorize("j", 4)'
        '.update(0).parallel("i").reorder("k", "j").vectorize("j", 4)'
    )
    assert default(pipelines.scan())["f"].endswith('.update(0).parallel("y")')
    assert default(pipelines.histogram())["hist"] == (
        'pt.on("hist").compute_root().vectorize("i", 4)'  # 256 bins are one task
    )
    assert default(pipelines.scatter())["f"].endswith('.update(0).reorder("r.y", "x").vectorize("x", 4)')


def test_one_long_row_is_cut_into_blocks() -> None:
    g = graph(stage("f", "x", load("img", "float32", X) * 2.0), out=(("f", (10_000,)),), inputs={"img": ("float32", 1)})
    assert default(g)["f"] == 'pt.on("f").compute_root().parallel("x", 4096).vectorize("x_p", 4)'


@pytest.mark.parametrize("make", [
    pipelines.blur, pipelines.diamond, pipelines.two_outputs, pipelines.histogram, pipelines.total, pipelines.product,
    pipelines.scan, pipelines.two_loop_scan, pipelines.box, pipelines.scatter,
])  # fmt: skip
def test_the_default_is_legal(make: object) -> None:
    assert callable(make)
    resolve(make(), Schedule(), strict=True, target=NAMED["x86-64-v3"])


# ---- pictures with channels


def colours(dtype: str = "uint8") -> tuple[pantile.Input, tuple[pantile.Var, ...]]:
    return pantile.Input("img", dtype, shape=(None, None, 3)), pantile.vars("y x c")


def test_vectors_go_along_rows_of_pixels() -> None:
    img, (y, x, c) = colours()
    f = pantile.Func("f")
    f[y, x, c] = 255 - img[y, x, c]
    marks = '.vectorize("x", 16).unroll("c", 3).reorder("c", "x", "x_v", "c_u").parallel("y", 16)'
    assert repr(pantile.Pipeline(f, target="aarch64").schedule["f"]) == 'pt.on("f").compute_root()' + marks


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("how", ["naive", "greedy", "dp", "polymage", "posttile", "reuse", "kernel"])
def test_channels_are_never_a_vector(how: str, dtype: str) -> None:
    img, f, g = pantile.Input("img", dtype, 3), pantile.Func("f"), pantile.Func("g")
    y, x, c = pantile.vars("y x c")
    e = pantile.edge(img)
    f[y, x, c] = e[y - 1, x, c] + e[y + 1, x, c]
    g[y, x, c] = f[y, x - 1, c] + f[y, x + 1, c]
    for channels in (2, 4):
        p = pantile.Pipeline(g, schedule=how, estimates={"img": (300, 400, channels)}, target="aarch64")
        vectors = [str(d.args[0]) for s in p.schedule.values() for d in s.directives if d.verb == "vectorize"]
        assert vectors and all(v.startswith("x") for v in vectors)


def test_channels_that_others_mix_are_planes() -> None:
    img, (y, x, c) = colours("uint16")
    e, across, gray = pantile.edge(img), pantile.Func("across"), pantile.Func("gray")
    across[y, x, c] = e[y, x - 1, c] // 2 + e[y, x + 1, c] // 2
    gray[y, x] = across[y, x, 0] + across[y - 1, x, 1] + across[y + 1, x, 2] + across[y + 2, x, 0]
    mixed = pantile.Pipeline(gray, shape=img.shape[:2]).schedule["across"]
    assert '.reorder_storage("y", "c", "x")' in repr(mixed)
    down = pantile.Func("down")
    down[y, x, c] = across[y - 1, x, c] + across[y + 1, x, c]
    assert "reorder_storage" not in repr(pantile.Pipeline(down).schedule["across"])


def test_reductions_over_nothing() -> None:
    y, x = pantile.vars("y x")
    img, r, f = pantile.Input("img", "uint8", ndim=2), pantile.RDom((0, 0)), pantile.Func("f")
    f[y, x] = pantile.max(pantile.edge(img)[y + r[0], x], over=r)
    p = pantile.Pipeline(f, shape=img.shape)
    assert not p(img=np.ones((80, 90), np.uint8)).any()


@pytest.mark.parametrize(
    ("sides", "threads"),
    [
        ((None, None), (8, 32)),
        ((None, None, None), (8, 32)),
        ((None, None, 9), (16, 9)),
        ((None, 4, 7), (8, 4, 7)),
        ((None, None, 8), (4, 128, 2)),  # vectors of four
        ((2, 2, 2, 12), (4, 2, 2, 3)),
        ((None,), (256,)),
        ((7,), (256,)),
    ],
)
def test_blocks_of_threads_are_as_long_as_short_loops(sides: tuple[int | None, ...], threads: tuple[int, ...]) -> None:
    dims = pantile.vars(" ".join("abcd"[: len(sides)]))
    img, out = pantile.Input("img", "float32", ndim=len(sides)), pantile.Func("out")
    shape = [n if side is None else side for n, side in zip(img.shape, sides, strict=True)]
    out[dims] = pantile.edge(img)[tuple(d // 2 + 1 for d in dims)] * 2
    p = pantile.Pipeline(out, shape=shape, target="cuda-sim")
    splits = [d.args for d in p.schedule["out"].directives if d.verb == "split"]
    assert tuple(factor for *_, factor in splits) == threads
    given = np.random.default_rng(0).random([side or 37 for side in sides], np.float32)
    np.testing.assert_array_equal(p(img=given), p.reference(img=given))
