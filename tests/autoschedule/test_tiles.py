"""Groups to directives, and to schedules that are legal in any case."""

from __future__ import annotations

import functools

import numpy as np

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule.common.legalize import legal
from pantile.autoschedule.common.marking import Style
from pantile.autoschedule.common.tiles import TiledGroup, scheduled
from pantile.machine import named
from pantile.schedule.resolve import resolve

from .problems import HASWELL, problem_of

N1 = named("neoverse-n1")


def test_one_level() -> None:
    problem = problem_of(APPS["blur"].build(), N1, img=(4802, 6402))
    chains = scheduled(problem, TiledGroup("blur_y", ("blur_x",), ({"y": 32, "x": 256},)))
    assert pt.Schedule(*chains) == pt.Schedule(
        pt.on("blur_x").compute_at("blur_y", "x_o").vectorize("x", 8),
        pt.on("blur_y")
        .compute_root()
        .split("y", "y_o", "y_i", 32)
        .split("x", "x_o", "x_i", 256)
        .vectorize("x_i", 8)
        .reorder("y_o", "x_o", "y_i", "x_i", "x_i_v")
        .parallel("y_o"),
    )


def test_two_levels_and_another_order() -> None:
    problem = problem_of(APPS["unsharp"].build(), N1, img=(3, 2560, 1536))
    group = TiledGroup("out", ("ratio",), ({"y": 64, "x": 256}, {"y": 8}), ("y", "c", "x"))
    (out, ratio) = scheduled(problem, group, Style(vectors=2, parallelism=10))
    assert out == (
        pt.on("out")
        .compute_root()
        .split("y", "y_o", "y_m", 64)
        .split("y_m", "y_m", "y_i", 8)
        .split("x", "x_o", "x_i", 256)
        .vectorize("x_i", 8)
        .reorder("y_o", "x_o", "y_m", "y_i", "c", "x_i", "x_i_v")
        .parallel("y_o")
    )
    assert ratio == pt.on("ratio").compute_at("out", "y_m").vectorize("x", 8)


def test_tiles_of_the_whole_are_none() -> None:
    problem = problem_of(APPS["blur"].build(), N1, img=(102, 202))
    chains = scheduled(problem, TiledGroup("blur_y", ("blur_x",), ({"y": 100, "x": 1000},)))
    assert all("compute_root" in repr(c) and "split" not in repr(c) for c in chains)
    assert [c.name for c in chains] == ["blur_y", "blur_x"]


def test_neighbours_that_fill_half_of_a_register_are_a_vector() -> None:
    """The eight levels of a stack on 256 bits; four would leave more of it empty than rows do."""
    y, x, k = pt.vars("y x k")
    img, f = pt.Input("img", "uint16", ndim=2), pt.Func("f")
    f[y, x, k] = img[y, x] >> pt.cast("uint16", k)
    for levels, loop, lanes in ((8, "k", 8), (4, "x", 16)):
        p = pt.Pipeline(f, shape=(*img.shape, levels))
        (chain,) = scheduled(problem_of(p, HASWELL, img=(1000, 1000)), TiledGroup("f", (), ({"y": 32},)))
        assert f'.vectorize("{loop}", {lanes})' in repr(chain)


def interleaved() -> pt.Pipeline:
    y, x, c = pt.vars("y x c")
    img, out = pt.Input("img", "uint8", ndim=3), pt.Func("out")
    out[y, x, c] = 255 - img[y, x, c]
    return pt.Pipeline(out, shape=img.shape)


def test_channels_are_written_out_around_the_vector() -> None:
    problem = problem_of(interleaved(), N1, img=(100, 200, 3))
    (chain,) = scheduled(problem, TiledGroup("out"))
    assert chain == (
        pt.on("out").compute_root().vectorize("x", 16).unroll("c", 3).reorder("y", "x", "c", "c_u", "x_v").parallel("y")
    )


def test_tasks_of_whole_rows_are_no_smaller_than_starting_them_is_worth() -> None:
    """Rows of 9000 bytes on 64 threads: 4 of them, so that each thread has 8 tasks. Planes alone are too few tasks."""
    (chain,) = scheduled(problem_of(interleaved(), N1, img=(2048, 3000, 3)), TiledGroup("out"))
    assert chain.directives[-1] == pt.on("out").parallel("y", 4).directives[-1]
    (chain,) = scheduled(problem_of(interleaved(), named("i7-6700"), img=(2000, 3000, 3)), TiledGroup("out"))
    assert chain.directives[-1] == pt.on("out").parallel("y", 8).directives[-1]
    (chain,) = scheduled(problem_of(interleaved(), named("i7-6700"), img=(3, 2000, 3000)), TiledGroup("out"))
    assert chain.directives[-2:] == pt.on("out").parallel("y").parallel("x", 32).directives


def test_planes_that_share_what_they_read_are_written_out_around_a_vector() -> None:
    """Colours made of the same values; not those that read their own, nor those that only share what a row has."""
    c, y, x = pt.vars("c y x")
    gray, rgb, rows = pt.Input("gray", "uint8", 2), pt.Input("rgb", "uint8", 3), pt.Input("rows", "uint8", 1)
    shapes = {"gray": (100, 200), "rgb": (3, 100, 200), "rows": (100,)}
    for value, is_shared in (
        (gray[y, x] // 3 * gray[y, x] // 5 * pt.cast("uint8", c), True),
        (rgb[0, y, x] + rgb[1, y, x] + rgb[c, y, x], True),
        (255 - rgb[c, y, x], False),
        (rgb[c, y, x] * rows[y], False),
    ):
        out = pt.Func("out")
        out[c, y, x] = value
        p = pt.Pipeline(out, shape=(3, 100, 200))
        problem = problem_of(p, N1, **{i.name: shapes[i.name] for i in p.graph.inputs})
        (chain,) = scheduled(problem, TiledGroup("out"))
        assert (pt.on("out").unroll("c", 3).directives[0] in chain.directives) == is_shared


def spread(kind: str) -> pt.Pipeline:
    """Most less least of nine neighbours."""
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("out")
    values = [pt.cast(kind, img[y, x + k]) for k in range(9)]
    out[y, x] = pt.cast("uint8", functools.reduce(pt.maximum, values) - functools.reduce(pt.minimum, values))
    return pt.Pipeline(out, shape=(100, 1000))


def test_what_registers_do_not_hold_is_computed_a_vector_at_a_time() -> None:
    """Two vectors of nine bytes that are used twice fit 32 registers. Computed as int16, they do not."""
    for kind, lanes in (("uint8", 32), ("int16", 16)):
        (chain,) = scheduled(problem_of(spread(kind), N1, img=(100, 1100)), TiledGroup("out"), Style(vectors=2))
        assert pt.on("out").vectorize("x", lanes).directives[0] in chain.directives


def test_vectors_across_short_rows_are_long() -> None:
    """Their elements are gathered one by one: a picture of 3 x 20 pixels is not worth that."""
    y, x = pt.vars("y x")
    img, before, out = pt.Input("img", "float32", ndim=2), pt.Func("before"), pt.Func("out")
    before[y, x] = img[y, x] * 2
    out[y, x] = before[y, x // 64] + 1
    pipeline = pt.Pipeline(out, shape=(img.shape[0], 64 * img.shape[1]))
    for rows, expected in ((8, False), (16, True)):
        problem = problem_of(pipeline, N1, img=(200, 3))
        chains = scheduled(problem, TiledGroup("out", ("before",), ({"y": rows},)))
        assert ("vectorize" in repr(chains[1])) == expected


def test_scans_have_vectors_along_rows_and_tasks_across_what_they_go_along() -> None:
    y, x = pt.vars("y x")
    img, integral = pt.Input("img", "uint8", ndim=2), pt.Func("integral")
    down, along = pt.RDom((1, img.shape[0] - 1)), pt.RDom((1, img.shape[1] - 1))
    integral[y, x] = pt.cast("uint32", img[y, x])
    integral[down[0], x] += integral[down[0] - 1, x]
    integral[y, along[0]] += integral[y, along[0] - 1]
    p = pt.Pipeline(integral, shape=img.shape)
    (chain,) = scheduled(problem_of(p, N1, img=(2000, 3000)), TiledGroup("integral"))
    whole = pt.on("integral").compute_root().vectorize("x", 4).parallel("y", 2)
    columns = whole.update(0).parallel("x", 256).reorder("r.0", "x_p").vectorize("x_p", 4)
    assert chain == columns.update(1).parallel("y")
    (tiled,) = scheduled(problem_of(p, N1, img=(2000, 3000)), TiledGroup("integral", (), ({"y": 32},)))
    assert tiled.directives[-2:] == whole.update(1).split("y", "y_o", "y_i", 32).parallel("y_o").directives[-2:]


def test_a_group_that_is_refused_is_dissolved() -> None:
    """blur_y is read outside of the loops it is asked to be computed at."""
    problem = problem_of(APPS["unsharp"].build(), N1, img=(3, 2560, 1536))
    wrong = (pt.on("gray").compute_at("blur_x", "y"), pt.on("blur_x").compute_root())
    right = scheduled(problem, TiledGroup("out", ("ratio",), ({"y": 32},)))
    found = legal(problem, [wrong, right], ("img_edge",))
    assert found.honoured == (False, True)
    (remark,) = found.remarks
    assert remark.startswith("scheduled on their own: gray, blur_x, because ")
    assert "gray is also read by the pure definition of" in remark
    resolve(problem.graph, found.schedule)


def test_where_tiles_start_is_known_if_they_read_coarser_stages() -> None:
    """A last tile that is shifted inwards might start at an odd place, and vectors of x // 2 would be gathered."""
    y, x = pt.vars("y x")
    img, half, out = pt.Input("img", "float32", ndim=2), pt.Func("half"), pt.Func("out")
    half[y, x] = img[2 * y, 2 * x]
    out[y, x] = half[y // 2, x // 2]
    problem = problem_of(pt.Pipeline(out, shape=img.shape), N1, img=(1000, 1000))
    (chain, _) = scheduled(problem, TiledGroup("out", ("half",), ({"y": 32, "x": 256},)))
    assert '.split("y", "y_o", "y_i", 32).split("x", "x_o", "x_i", 256, tail="guard")' in str(chain)


def test_every_loop_name_is_new() -> None:
    """Dims that are called as tile loops would be."""
    y, y_o, x = pt.vars("y y_o x")
    img, out = pt.Input("img", "float32", ndim=3), pt.Func("out")
    out[y, y_o, x] = img[y, y_o, x] * 2
    pipeline = pt.Pipeline(out, shape=img.shape)
    problem = problem_of(pipeline, N1, img=(64, 64, 64))
    found = legal(problem, [scheduled(problem, TiledGroup("out", (), ({"y": 8, "y_o": 8, "x": 32},)))])
    assert found.honoured == (True,)
    img_data = np.random.default_rng(0).random((13, 17, 41), np.float32)
    np.testing.assert_array_equal(pipeline.with_schedule(found.schedule)(img=img_data), img_data * 2)
