"""Sums of products in blocks that registers hold: which stages are such sums, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES, Auto
from pantile.autoschedule.search.sums import sums

from .problems import ORDINARY, chain, matrix_product, problem_of

i, j = pt.vars("i j")


def transposed() -> pt.Pipeline:
    """a times b, whose rows are its columns, and what is positive of it."""
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    ab, out, k = pt.Func("ab"), pt.Func("out"), pt.RDom((0, a.shape[1]), name="k")
    ab[i, j] = pt.sum(a[i, k[0]] * b[j, k[0]], over=k)
    out[i, j] = pt.maximum(ab[i, j], 0)
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[0]))


def convolution() -> pt.Pipeline:
    """3 by 3 pixels and all channels, of which there are as many after it."""
    y, x, c = pt.vars("y x c")
    img, taps, out = pt.Input("img", "float32", ndim=3), pt.Input("taps", "float32", ndim=4), pt.Func("out")
    r = pt.RDom((0, 3), (0, 3), (0, img.shape[2]), name="r", names="y x c")
    out[y, x, c] = pt.sum(img[y + r.y, x + r.x, r.c] * taps[r.c, r.y, r.x, c], over=r)
    return pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 2, taps.shape[3]))


def triangle() -> pt.Pipeline:
    """a times its transpose, in and below the diagonal."""
    a, out = pt.Input("a", "float32", ndim=2), pt.Func("out")
    k = pt.RDom((0, a.shape[1]), name="k")
    out[i, j] = pt.sum(a[i, k[0]] * a[j, k[0]], over=k.where(j <= i))
    return pt.Pipeline(out, shape=(a.shape[0], a.shape[0]))


def triangular() -> pt.Pipeline:
    """The transpose of what is below a's diagonal, times b."""
    a, b, out = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2), pt.Func("out")
    k = pt.RDom((0, a.shape[0]), name="k")
    out[i, j] = pt.sum(a[k[0], i] * b[k[0], j], over=k.where(k[0] > i))
    return pt.Pipeline(out, shape=(a.shape[1], b.shape[1]))


PRODUCTS = {
    "matrices": (matrix_product, "c", {"a": (1000, 800), "b": (800, 1200)}, {"a": (23, 19), "b": (19, 37)}),
    "transposed": (transposed, "ab", {"a": (1000, 800), "b": (1200, 800)}, {"a": (23, 19), "b": (37, 19)}),
    "convolution": (convolution, "out", {"img": (80, 90, 128), "taps": (128, 3, 3, 128)},
                    {"img": (7, 13, 9), "taps": (9, 3, 3, 37)}),
    "of colours": (convolution, "out", {"img": (200, 300, 3), "taps": (3, 3, 3, 64)},
                   {"img": (7, 13, 3), "taps": (3, 3, 3, 37)}),
    "triangle": (triangle, "out", {"a": (1000, 800)}, {"a": (37, 19)}),
    "triangular": (triangular, "out", {"a": (1000, 800), "b": (1000, 1200)}, {"a": (41, 23), "b": (41, 37)}),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_they_are_right_and_cheaper(name: str) -> None:
    build, stage, large, small = PRODUCTS[name]
    p = build()
    problem = problem_of(p, ORDINARY, **large)
    start = STRATEGIES["kernel"]().find(problem).schedule
    found = list(sums(problem, start, stage))
    # columns side by side, and around the only reader, in wider blocks, or in lower ones that leave no rows over
    ways = {"transposed": 3, "triangle": 4, "convolution": 4}
    assert len(found) == ways.get(name, 2)
    rng = np.random.default_rng(0)
    inputs = {n: rng.random(shape, np.float32) for n, shape in small.items()}
    for schedule in found[1:]:
        np.testing.assert_allclose(p.with_schedule(schedule)(**inputs), p.reference(**inputs), rtol=1e-5)
    before, *after = (
        p.with_schedule(s, machine=ORDINARY).predict(num_threads=1, **large).seconds for s in (start, *found)
    )
    assert max(after) < before


def test_what_a_sum_needs_leaves_the_loops_that_become_blocks() -> None:
    """Those of its reader, in which it is computed as well."""
    n, y, x, c = pt.vars("n y x c")
    img, taps, bias = (pt.Input(name, "float32", ndim=d) for name, d in (("img", 4), ("taps", 4), ("bias", 1)))
    around, total, scale, out = pt.Func("around"), pt.Func("total"), pt.Func("scale"), pt.Func("out")
    r = pt.RDom((0, 3), (0, 3), (0, img.shape[3]), name="r", names="y x c")
    around[n, y, x, c] = pt.constant(img, 0, axes=(1, 2))[n, y - 1, x - 1, c]
    total[n, y, x, c] = pt.sum(around[n, y + r.y, x + r.x, r.c] * taps[r.c, r.y, r.x, c], over=r)
    scale[c] = pt.sqrt(bias[c])
    out[n, y, x, c] = scale[c] * total[n, y, x, c]
    p = pt.Pipeline(out, shape=(*img.shape[:3], taps.shape[3]))
    problem = problem_of(p, ORDINARY, img=(4, 110, 110, 3), taps=(3, 3, 3, 64), bias=(64,))
    inside = (
        STRATEGIES["naive"]()
        .find(problem)
        .schedule.replace(
            pt.on("out").compute_root().split("y", "strip", "row", 8).parallel("strip"),
            *(pt.on(name).compute_at("out", "strip") for name in ("around", "total", "scale")),
        )
    )
    *alone, with_reader = sums(problem, inside, "total")
    for schedule in alone:
        assert "compute_root" in schedule.on("around").verbs and "compute_at" in schedule.on("scale").verbs
    assert "compute_root" in with_reader.on("around").verbs & with_reader.on("scale").verbs
    rng = np.random.default_rng(0)
    inputs = {"img": (1, 9, 13, 3), "taps": (3, 3, 3, 37), "bias": (37,)}
    arrays = {name: rng.random(shape, np.float32) for name, shape in inputs.items()}
    for schedule in (alone[0], with_reader):
        np.testing.assert_allclose(p.with_schedule(schedule)(**arrays), p.reference(**arrays), rtol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(4, 131), (5, 131), (8, 512)])
def test_flat_products_whose_columns_side_by_side_are_tasks(rows: int, columns: int) -> None:
    """Few rows give threads too few tasks, so that the loops over columns are parallel, too."""
    p, two = matrix_product(), replace(ORDINARY, cores=2, threads=2)
    problem = problem_of(p, two, a=(rows, 64), b=(64, columns))
    found = list(sums(problem, STRATEGIES["kernel"]().find(problem).schedule, "c"))
    assert '.parallel("j_o_c")' in repr(found[-1].on("c"))
    a, b = np.ones((rows, 64), np.float32), np.arange(64 * columns, dtype=np.float32).reshape(64, columns)
    assert (p.with_schedule(found[-1])(a=a, b=b) == a @ b).all()
    assert Auto().find(problem).schedule


def test_copies_inside_loops_in_strips_are_no_stages_of_the_pipeline() -> None:
    """What goes by strips in parallel may copy a factor for each: that has dims, and no extents of its own."""
    one = replace(ORDINARY, cores=1, threads=1)
    found = Auto().find(problem_of(transposed(), one, a=(64, 131), b=(512, 131))).schedule
    assert "b_near" in found and ".parallel(" in repr(found.on("out"))


@pytest.mark.parametrize("dims", ["n y x", "j_o i_i j_i"])
def test_a_reader_around_blocks_has_dims_of_its_own(dims: str) -> None:
    """Also where these are called as loops over blocks would be."""
    n, y, x = pt.vars(dims)
    p_dim = pt.Var("p")
    a, b, ab, out = pt.Input("a", "float32", ndim=3), pt.Input("b", "float32", ndim=2), pt.Func("ab"), pt.Func("out")
    k = pt.RDom((0, b.shape[0]), name="k")
    ab[p_dim, i, j] = pt.sum(a[p_dim, i, k[0]] * b[k[0], j], over=k)
    out[n, y, x] = pt.maximum(ab[n, y, x], 0)
    p = pt.Pipeline(out, shape=(*a.shape[:2], b.shape[1]))
    problem = problem_of(p, ORDINARY, a=(3, 100, 64), b=(64, 48))
    inside = list(sums(problem, STRATEGIES["naive"]().find(problem).schedule, "ab"))[-1]
    assert "compute_at" in inside.on("ab").verbs and f'.parallel("{n.name}")' in repr(inside.on("out"))
    arrays = {"a": np.ones((2, 9, 7), np.float32), "b": np.ones((7, 37), np.float32)}
    assert (p.with_schedule(inside)(**arrays) == 7).all()


def test_a_product_of_matrices_as_a_person_would_schedule_it() -> None:
    two = replace(ORDINARY, cores=2, threads=2)
    problem = problem_of(matrix_product(), two, a=(1024, 1024), b=(1024, 1024))
    found = Auto().find(problem).schedule
    assert '.split("i", "i_o", "i_i", 5)' in repr(found.on("c")) and '.unroll("i_i")' in repr(found.on("c"))
    assert '.copy_in("c", "b_near"' in repr(found.on("b")) and ".compute_at(" in repr(found.on("b_near"))


def test_blocks_that_a_condition_cuts_through_are_squares_with_code_of_their_own() -> None:
    """There sums are computed one by one: as few as possible, and none in blocks that are whole."""
    found = Auto().find(problem_of(triangle(), ORDINARY, a=(1024, 1024))).schedule
    chain = repr(found.on("out"))
    assert '.split("j", "j_o", "j_i", 8)' in chain and '.split("i", "i_o", "i_i", 8)' in chain
    assert '.reorder("j_o_b", "i_o", "j_o_c",' in chain and '.partition("j_o_c", "always")' in chain


def test_a_factor_whose_rows_lie_side_by_side_is_turned_once() -> None:
    found = Auto().find(problem_of(triangular(), ORDINARY, a=(1024, 1024), b=(1024, 1024))).schedule
    assert '.copy_in("out", "a_turned", "k_0_t", "i_t")' in repr(found.on("a"))
    turned = repr(found.on("a_turned"))
    assert '.compute_root().reorder_storage("i_t", "k_0_t")' in turned and '.unroll("i_t", 4)' in turned
    assert ".partition(" not in repr(found.on("out"))  # all lanes begin with the same term


def test_sums_of_some_terms_or_of_those_that_data_chooses_are_left_alone() -> None:
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    for chosen in (lambda k: k % 2 == 0, lambda k: a[k, 0] > 0):
        out, k = pt.Func("out"), pt.RDom((0, a.shape[1]), name="k")
        out[i, j] = pt.sum(a[i, k[0]] * b[k[0], j], over=k.where(chosen(k[0])))
        problem = problem_of(pt.Pipeline(out, shape=(512, 512)), ORDINARY, a=(512, 512), b=(512, 512))
        assert list(sums(problem, STRATEGIES["naive"]().find(problem).schedule, "out")) == []


def test_many_products_by_one_matrix_have_copies_of_their_own() -> None:
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    last: pt.Input | pt.Func = a
    for number in range(5):
        f, k = pt.Func(f"f{number}"), pt.RDom((0, b.shape[0]), name=f"k{number}")
        f[i, j] = pt.sum(last[i, k[0]] * b[k[0], j], over=k)
        last = f
    p, two = pt.Pipeline(f, shape=a.shape), replace(ORDINARY, cores=2, threads=2)
    found = Auto(steps=0).find(problem_of(p, two, a=(1024, 1024), b=(1024, 1024))).schedule
    assert repr(found.on("b")).count(".copy_in(") == 5
    assert len([name for name in found if name.startswith("b_near")]) == 5


def test_a_matrix_by_its_own_transpose_is_copied_for_one_of_its_reads() -> None:
    """Of the other factor blocks read a few rows: a copy for both would be one of everything."""
    a, k, out = pt.Input("a", "float32", ndim=2), pt.RDom((0, 1024), name="k"), pt.Func("out")
    out[i, j] = pt.sum(a[i, k[0]] * a[j, k[0]], over=k)
    p = pt.Pipeline(out, shape=(a.shape[0], a.shape[0]))
    found = Auto().find(problem_of(p, ORDINARY, a=(1024, 1024))).schedule
    (copy,) = [d for d in found.on("a").directives if d.verb == "copy_in"]
    assert copy.args[-1] == 1
    matrix = np.random.default_rng(0).random((37, 1024), np.float32)
    np.testing.assert_allclose(p.with_schedule(found)(a=matrix), p.reference(a=matrix), rtol=1e-5)


def test_what_is_no_sum_of_products_is_left_alone() -> None:
    problem = problem_of(chain(3), ORDINARY, img=(200, 300))
    start = STRATEGIES["naive"]().find(problem).schedule
    assert not any(list(sums(problem, start, s.name)) for s in problem.graph.stages)


def test_a_scan_of_products_is_left_alone() -> None:
    a, b, f = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2), pt.Func("f")
    k = pt.RDom((1, a.shape[1] - 1), name="k")
    f[i, j] = 0.0
    f[i, k[0]] = f[i, k[0] - 1] + a[i, k[0]] * b[k[0], i]
    problem = problem_of(pt.Pipeline(f, shape=(a.shape[0], a.shape[1])), ORDINARY, a=(300, 300), b=(300, 300))
    start = STRATEGIES["naive"]().find(problem).schedule
    assert list(sums(problem, start, "f")) == []


def in_panels(dtype: str, condition: bool) -> pt.Pipeline:
    """a times its transpose, whose columns are laid out in panels, in and below the diagonal or everywhere."""
    k, p, lane = pt.vars("k p lane")
    width = 64 // np.dtype(dtype).itemsize
    a, rows, panels, out = pt.Input("a", dtype, ndim=2), pt.Func("rows"), pt.Func("panels"), pt.Func("out")
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    rows[i, k] = a[i, k]
    panels[p, k, lane] = pt.constant(a, 0, axes=(0,))[width * p + lane, k]
    below = r.where(width * p + lane <= i) if condition else r
    out[p, i, lane] = pt.sum(rows[i, r.k] * panels[p, r.k, lane], over=below)
    return pt.Pipeline(out, shape=((a.shape[0] + width - 1) // width, a.shape[0], width))


def ways(dtype: str, condition: bool, rows: int = 1000) -> list[str]:
    problem = problem_of(in_panels(dtype, condition), ORDINARY, a=(rows, 1024))
    start = STRATEGIES["kernel"]().find(problem).schedule
    return [repr(found) for found in sums(problem, start, "out")]


@pytest.mark.parametrize(("dtype", "lanes", "rows"), [("float32", 16, 5), ("float64", 8, 5)])
def test_blocks_are_as_large_as_registers_hold(dtype: str, lanes: int, rows: int) -> None:
    """Of doubles as many vectors, of half as many lanes."""
    for text in ways(dtype, condition=False):
        assert f'.split("lane", "lane_o", "lane_i", {lanes})' in text and f'.split("i", "i_o", "i_i", {rows})' in text


@pytest.mark.parametrize(("height", "rows"), [(1000, {5}), (1024, {5, 4}), (1023, {5})])
def test_blocks_of_fewer_rows_that_leave_none_over_are_looked_at(height: int, rows: set[int]) -> None:
    """Of 1023 rows, there would be three in a block, which are too few."""
    found = ways("float32", condition=False, rows=height)
    assert {n for n in range(1, 9) for text in found if f'.split("i", "i_o", "i_i", {n})' in text} == rows


def test_the_other_factor_is_stored_or_not() -> None:
    found = ways("float32", condition=False)
    assert len({'pt.on("rows").compute_inline()' in text for text in found}) == 2


def test_columns_of_panels_are_side_by_side_in_squares_too() -> None:
    """What cuts through blocks is decided along a loop of several iterations."""
    found = ways("float32", condition=True, rows=1024)
    square = [text for text in found if '"lane_i", 8)' in text and "p_b" in text]
    wide = [text for text in found if '"lane_i", 16)' in text and "p_b" in text]
    assert square and all('.partition("lane_o", "always")' in text for text in square)
    assert wide and all('.partition("p_c", "always")' in text for text in wide)
