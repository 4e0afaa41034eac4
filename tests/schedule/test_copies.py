"""copy_in, copy_out, panels and split_storage change where values lie, never the values."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.graph.verify import verify
from pantile.schedule import Schedule, resolve

RNG = np.random.default_rng(5)
ROW, COL, Y, X, C = pt.vars("i j y x c")


def product() -> pt.Pipeline:
    """a[i, k], b[k, j] -> their product, as anybody would write it."""
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    r, out = pt.RDom((0, a.shape[1]), names="k"), pt.Func("out")
    out[ROW, COL] = pt.sum(a[ROW, r.k] * b[r.k, COL], over=r)
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[1]))


def squares() -> pt.Pipeline:
    """a[i, k] -> a times its transpose: two reads of one input."""
    a = pt.Input("a", "float32", ndim=2)
    r, out = pt.RDom((0, a.shape[1]), names="k"), pt.Func("out")
    out[ROW, COL] = pt.sum(a[ROW, r.k] * a[COL, r.k], over=r)
    return pt.Pipeline(out, shape=(a.shape[0], a.shape[0]))


def colours() -> pt.Pipeline:
    """Interleaved pixels, each with those below and beside it."""
    img, out = pt.Input("img", "uint8", ndim=3), pt.Func("out")
    out[Y, X, C] = img[Y, X, C] + 2 * img[Y + 1, X, C] - img[Y, X + 1, C]
    return pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1] - 1, img.shape[2]))


def pairs() -> pt.Pipeline:
    """A stage of two values, read at three places by two consumers, and at an edge."""
    img, source = pt.Input("img", "float32", ndim=2), pt.Func("source")
    f, g, out = pt.Func("f"), pt.Func("g"), pt.Func("out")
    around = pt.edge(img)
    source[Y, X] = (around[Y - 1, X], around[Y, X + 2] * 2)
    f[Y, X] = source[Y, X][0] + source[Y + 1, X][1]
    g[Y, X] = source[Y, X + 1][1] - f[Y, X]
    out[Y, X] = f[Y, X] * g[Y, X + 1]
    return pt.Pipeline(out, shape=img.shape)


PANELS = (
    pt.on("b_panels")
    .split_storage("j", "panel", "lane", 8)
    .reorder_storage("panel", "k", "lane")
    .split("j", "p", "lane", 8, tail="guard")
    .reorder("p", "k", "lane")
    .vectorize("lane")
    .parallel("p")
)
BLOCKS = pt.on("out").split("j", "p", "lane", 8, tail="guard").reorder("p", "i", "lane").vectorize("lane")
BLOCKS = (
    BLOCKS.update()
    .split("j", "p", "lane", 8, tail="guard")
    .split("i", "it", "row", 4)
    .reorder("p", "it", "r.k", "row", "lane")
    .vectorize("lane")
    .unroll("row")
)
SOURCE = pt.on("source").compute_root()

Case = tuple[Callable[[], pt.Pipeline], tuple[pt.StageSchedule, ...]]
CASES: dict[str, Case] = {
    "nothing asked of it": (product, (pt.on("b").copy_in("out", "near", "k", "j"),)),
    "inlined": (product, (pt.on("b").copy_in("out", "near", "k", "j"), pt.on("near").compute_inline())),
    "panels": (product, (pt.on("b").copy_in("out", "b_panels", "k", "j"), PANELS, BLOCKS)),
    "both factors": (
        product,
        (
            pt.on("a").copy_in("out", "a_turned", "i", "k"),
            pt.on("a_turned").reorder_storage("k", "i").reorder("k", "i").vectorize("i", 4),
            pt.on("b").copy_in("out", "b_panels", "k", "j"),
            PANELS,
            BLOCKS,
        ),
    ),
    "a copy of a copy": (
        product,
        (
            pt.on("b").copy_in("out", "b_panels", "k", "j"),
            pt.on("b_panels").copy_in("out", "b_near").split_storage("j", "panel", "lane", 8),
            pt.on("b_near").compute_at("out", "p").reorder_storage("j", "k"),
            BLOCKS,
        ),
    ),
    "blocks on their way out": (
        product,
        (
            pt.on("out").copy_out("sums").tile("i", "j", "io", "jo", "ii", "ji", 16, 16).parallel("io"),
            pt.on("sums").compute_at("out", "jo").reorder_storage("j", "i").update().reorder("r.k", "i", "j"),
            pt.on("b").copy_in("sums", "near", "k", "j"),
            pt.on("near").compute_at("out", "jo"),
        ),
    ),
    "whole panels": (
        product,
        (
            pt.on("out").copy_out("sums").split("j", "jo", "ji", 32, tail="guard").reorder("jo", "i", "ji"),
            pt.on("b").copy_in("sums", "right", "k", "j"),
            pt.on("right").panels("j", "p", "lane", 8).reorder_storage("p", "k", "lane").vectorize("lane", 8),
            pt.on("sums").panels("j", "p", "lane", 8).compute_at("out", "jo").vectorize("lane", 8)
            .update().reorder("p", "i", "r.k", "lane").vectorize("lane", 8),
        ),
    ),
    "panels of other widths": (
        product,
        (
            pt.on("out").copy_out("sums"),
            pt.on("b").copy_in("sums", "right", "k", "j"),
            pt.on("right").panels("j", "p", "lane", 3).panels("k", "slice", "step", 5),
            pt.on("a").copy_in("sums", "left", "i", "k"),
            pt.on("left").panels("k", "slice", "step", 5).compute_at("sums", "q").reorder_storage("step", "i", "slice"),
            pt.on("sums").panels("j", "q", "lane", 8).update().reorder("q", "i", "r.k", "lane"),
        ),
    ),
    "panels in panels": (
        product,
        (
            pt.on("out").copy_out("sums"),
            pt.on("b").copy_in("sums", "right", "k", "j"),
            pt.on("right").panels("j", "p", "lane", 8).panels("p", "po", "pi", 3).panels("lane", "half", "quarter", 3),
        ),
    ),
    "panels of an edge": (
        pairs,
        (
            pt.on("source").panels("x", "p", "lane", 8).compute_at("out", "y").vectorize("lane"),
            pt.on("f").panels("x", "p", "lane", 8).compute_at("out", "y").vectorize("lane"),
            pt.on("g").compute_inline(),
            pt.on("out"),
        ),
    ),
    "each read its own": (
        squares,
        (
            pt.on("a").copy_in("out", "left", "i", "k", 0).copy_in("out", "right", "j", "k", 1),
            pt.on("left").compute_at("out", "i"),
            pt.on("right").reorder_storage("k", "j"),
            pt.on("out").update().compute_with("out", "i"),
        ),
    ),
    "planes": (
        colours,
        (
            pt.on("img").copy_in("out", "planes", "y", "x", "c"),
            pt.on("planes").reorder_storage("c", "y", "x").parallel("y"),
            pt.on("out").reorder("c", "y", "x").vectorize("x", 8),
        ),
    ),
    "rows that slide": (
        colours,
        (
            pt.on("img").copy_in("out", "rows", "y", "x", "c"),
            pt.on("rows").store_root().compute_at("out", "y").split_storage("x", "x", "lane", 16),
            pt.on("out").reorder("y", "c", "x").vectorize("x", 8),
        ),
    ),
    "a few of the reads": (
        pairs,
        (SOURCE.copy_in("f", "near", 1), pt.on("near").compute_at("f", "y"), pt.on("f").compute_root(), pt.on("out")),
    ),
    "two consumers": (
        pairs,
        (
            SOURCE.copy_in("f", "near", "b", "a").copy_in("g", "near", "b", "a"),
            pt.on("near").compute_root().split_storage("b", "u", "v", 3).split_storage("u", "w", "z", 2)
            .reorder_storage("z", "a", "w", "v"),
            pt.on("f").compute_root().reorder_storage("x", "y"),
            pt.on("g").compute_root(),
            pt.on("out"),
        ),
    ),
    "of what is inlined": (
        pairs,
        (pt.on("source").compute_inline().copy_in("f", "near"), pt.on("near").split_storage("x", "xo", "xi", 4)),
    ),
}  # fmt: skip
SIZES: dict[str, list[dict[str, tuple[int, ...]]]] = {
    "product": [
        {"a": (m, k), "b": (k, n)} for m, k, n in ((32, 24, 40), (37, 19, 45), (3, 2, 5), (1, 1, 1), (2, 0, 3))
    ],
    "squares": [{"a": size} for size in ((24, 16), (13, 7), (1, 2))],
    "colours": [{"img": size} for size in ((20, 33, 3), (9, 18, 4), (40, 50, 6), (2, 2, 1))],
    "pairs": [{"img": size} for size in ((20, 33), (3, 5), (1, 1))],
}


def arrays(p: pt.Pipeline, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    dtypes = {i.name: i.dtype.numpy for i in p.graph.inputs}
    return {n: RNG.integers(0, 100, shape).astype(dtypes[n]) for n, shape in shapes.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values_stay_as_they_are(case: Case) -> None:
    build, asked = case
    p = build()
    schedule = Schedule(*asked)
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert eval(str(schedule), {"pt": pt}) == schedule
    graph, _ = resolve(p.graph, schedule)
    verify(graph)
    scheduled = pickle.loads(pickle.dumps(p.with_schedule(schedule)))
    for shapes in SIZES[build.__name__]:
        given = arrays(p, shapes)
        np.testing.assert_allclose(scheduled(**given), p.reference(**given), rtol=1e-5)


def test_a_padded_copy_is_the_boundary_as_a_stage() -> None:
    img = pt.Input("img", "float32", ndim=2)
    padded, out = pt.edge(img), pt.Func("out")
    out[Y, X] = padded[Y - 1, X - 1] + padded[Y + 1, X + 1]
    p = pt.Pipeline(out, shape=img.shape)
    asked = Schedule(
        pt.on(padded).copy_in("out", "near", "y", "x"),
        pt.on("near").compute_at("out", "y").split_storage("x", "x", "lane", 8),
        pt.on("out").vectorize("x", 4),
    )
    given = arrays(p, {"img": (17, 23)})
    np.testing.assert_array_equal(p.with_schedule(asked)(**given), p.reference(**given))


def test_the_copy_is_what_is_read() -> None:
    graph, plan = resolve(product().graph, Schedule(*CASES["both factors"][1]))
    assert [s.name for s in graph.stages] == ["a_turned", "b_panels", "out"]
    reads = {s.name: {e.buffer for d in s.definitions for e in d.loads} for s in graph.stages}
    assert reads == {"a_turned": {"a"}, "b_panels": {"b"}, "out": {"out", "a_turned", "b_panels"}}
    assert plan.stages["b_panels"].storage == ("panel", "k", "lane")


def test_a_copy_that_is_asked_for_is_stored() -> None:
    _, plan = resolve(product().graph, Schedule(pt.on("b").copy_in("out", "near", "k", "j")))
    assert "near" in plan.stages


def test_what_is_split_is_not_folded() -> None:
    sliding = pt.on("rows").store_root().compute_at("out", "y")
    copy = pt.on("img").copy_in("out", "rows", "y", "x", "c")
    for rows, folded in ((sliding, True), (sliding.split_storage("y", "y", "row", 4), False)):
        loops = colours().with_schedule(Schedule(copy, rows, pt.on("out"))).loops()
        assert ("%2" in loops, "%4" in loops) == (folded, not folded)


def test_explained_and_shown() -> None:
    p = product().with_schedule(Schedule(*CASES["panels"][1]))
    assert "copy_in" in str(p.schedule)
    assert "b_panels" in p.explain()
    assert "b_panels" in str(p.predict(a=(64, 64), b=(64, 64)))


def test_dims_lie_where_their_last_parts_do() -> None:
    chain = pt.on("b").copy_in("out", "near", "k", "j")
    near = pt.on("near").split_storage("j", "j", "lane", 8).split_storage("lane", "half", "quarter", 4)
    _, plan = resolve(product().graph, Schedule(chain, near.reorder_storage("half", "quarter", "j", "k")))
    assert plan.stages["near"].dim_order == ("j", "k")
    _, plan = resolve(product().graph, Schedule(chain, near))
    assert plan.stages["near"].dim_order == ("k", "j")


def test_panels_of_what_is_cut_alike_are_read_as_such() -> None:
    graph, _ = resolve(product().graph, Schedule(*CASES["whole panels"][1]))
    verify(graph)
    right, sums, out = (graph.stage[n] for n in ("right", "sums", "out"))
    assert (right.dims, sums.dims, out.dims) == (("k", "p", "lane"), ("i", "p", "lane"), ("i", "j"))
    reads = {e.buffer: " ".join(map(str, e.indices)) for e in sums.updates[0].loads}
    assert reads["right"] == "r.k p lane"
    assert reads["sums"] == "i p lane"
    assert [str(i) for e in out.pure.loads for i in e.indices] == ["i", "j//8", "j%8"]


def test_a_panel_sticks_out_of_no_input() -> None:
    build, asked = CASES["whole panels"]
    p = build()
    scheduled = p.with_schedule(Schedule(*asked)).with_options(debug=True)
    for shapes in SIZES["product"]:
        given = arrays(p, shapes)
        np.testing.assert_allclose(scheduled(**given), p.reference(**given), rtol=1e-5)


def test_copies_of_nothing() -> None:
    """An edge of zeros is all that is read of an empty image, and its copy reads nothing."""
    y, x, c = pt.vars("y x c")
    img, f, r = pt.Input("img", "int32", shape=(None, None, 1)), pt.Func("f"), pt.RDom((-1, 2))
    f[y, x, c] = pt.sum(pt.constant(img, 0)[y + r[0], x // 2, c], over=r)
    p = pt.Pipeline(f, shape=(2 * img.shape[0], img.shape[1] + 3, 1)).with_options(debug=True)
    near = (pt.on("img").copy_in("img_constant", "near", "v", "u", "w"), pt.on("img_constant").compute_inline())
    q = p.with_schedule(Schedule(*near, pt.on("near").compute_root()))
    for shape in ((3, 0, 1), (2, 1, 1), (3, 5, 1)):
        picture = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
        np.testing.assert_array_equal(q(img=picture), p.reference(img=picture))
