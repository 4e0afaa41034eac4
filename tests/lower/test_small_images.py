"""Images so small that conditions leave nothing to read, one size after the other, with every access checked.

What a call needs nothing of is not computed, and what only a condition lets be read is not read without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.analysis.interval import Interval
from pantile.analysis.point import value_at
from pantile.analysis.regions import FAR
from pantile.expr.build import maximum, minimum
from pantile.expr.nodes import var
from pantile.lower.nest.required import _near

from ..long import LONG

y, x = pt.vars("y x")
SIZES = [(3, width) for width in range(1, 6)]


class Made:
    """The Funcs of a pipeline in the order in which they are named."""

    def __init__(self) -> None:
        self.img = pt.Input("img", "float32", ndim=2)
        self.height, self.width = self.img.shape
        self.f, self.g, self.h = (pt.Func(n) for n in "fgh")


def nested(m: Made) -> None:
    m.g[y, x] = m.img[y, x] + m.img[y, x + 1]
    m.h[y, x] = m.g[y, x] + pt.select(x > 1, m.g[y, x - 1], 1.0)
    m.f[y, x] = pt.select(x < m.width - 3, m.h[y, x + 1], 7.0)


def two_at_different_places(m: Made) -> None:
    m.g[y, x] = m.img[y, x]
    m.f[y, x] = pt.select(x < m.width - 2, m.g[y, x + 2], 0.0) + pt.select(x > 9, m.g[y, x - 20], 1.0)


def limited_index_of_nothing(m: Made) -> None:
    m.g[y, x] = m.img[y, x]
    m.h[y, x] = m.g[y, pt.clamp(x, 2, 3)] + m.g[y, x // 2]
    m.f[y, x] = pt.select(x < m.width - 4, m.h[y, x + 4], 3.0)


def anywhere(m: Made) -> None:
    inside = pt.edge(m.img)
    m.g[y, x] = inside[y, x - 1] + inside[y, x + 1]
    m.h[y, x] = m.g[y, x] + m.g[y, x + 1]
    m.f[y, x] = pt.select(x < m.width - 3, m.h[y, x + 1], 7.0) + pt.select(y > 2, m.h[y - 3, x], 2.0)


def stored_below_what_is_anywhere(m: Made) -> None:
    def inside(at: pt.Expr) -> pt.Expr:
        return pt.clamp(at, 0, m.width - 1)

    m.g[y, x] = m.img[y, x]
    m.h[y, x] = m.g[y, inside(x)] + pt.select(x > 0, m.g[y, inside(x - 1)], 0.0)
    m.f[y, x] = pt.select(x < m.width - 3, m.h[y, x + 2], 0.0)


def condition_of_extents(m: Made) -> None:
    m.f[y, x] = pt.select(m.width > 3, m.img[y, pt.minimum(x, 3)], 0.0)


def condition_of_a_param(m: Made) -> None:
    m.f[y, x] = pt.select(pt.Param("k", "int32", default=0) > 0, m.img[y, x + 3], 0.0)


def select_in_where(m: Made) -> None:
    m.g[y, x] = m.img[y, x]
    r = pt.RDom((0, 3)).where(pt.select(x > 0, m.g[y, x - 1], 0.0) < 9.0)
    m.f[y, x] = 0.0
    m.f[y, x] += m.img[y, x] * pt.cast("float32", r[0])


def select_in_an_index(m: Made) -> None:
    m.g[y, x] = pt.cast("int32", m.img[y, x]) % 2
    m.f[y, x] = 0.0
    r = pt.RDom((0, m.width))
    place = pt.select(r[0] > 0, m.g[y, r[0] - 1], 0)
    m.f[y, pt.clamp(place, 0, m.width - 1)] += 1.0


def domain_of_nothing(m: Made) -> None:
    m.g[y, x] = m.img[y, x] + m.img[y, x + 1]
    m.f[y, x] = 0.0
    m.f[y, x] += m.g[y, pt.RDom((0, pt.maximum(m.width - 3, 0)))[0] + 1]


PIPELINES = [
    nested,
    two_at_different_places,
    limited_index_of_nothing,
    anywhere,
    stored_below_what_is_anywhere,
    condition_of_extents,
    condition_of_a_param,
]
UPDATES = [select_in_where, select_in_an_index, domain_of_nothing]

SCHEDULES: dict[str, Callable[[list[str]], pt.Schedule]] = {
    "default": lambda _: pt.Schedule(),
    "root": lambda others: pt.Schedule(*(pt.on(n).compute_root().split("x", "xo", "xi", 4) for n in others)),
    "vectors": lambda others: pt.Schedule(
        pt.on("f").vectorize("x", 4, tail="guard"),
        *(pt.on(n).compute_root().vectorize("x", 4, tail="guard") for n in others),
    ),
    "rows": lambda others: pt.Schedule(
        pt.on("f").split("y", "yo", "yi", 2, tail="guard"),
        *(pt.on(n).compute_at("f", "yi").unroll("x", 3, tail="guard") for n in others),
    ),
    "blocks": lambda others: pt.Schedule(
        pt.on("f").split("x", "xo", "xi", 3, tail="guard"), *(pt.on(n).compute_at("f", "xo") for n in others)
    ),
    "points": lambda others: pt.Schedule(pt.on("f"), *(pt.on(n).compute_at("f", "x") for n in others)),
    "fused": lambda others: pt.Schedule(
        pt.on("f").fuse("y", "x", "p"), *(pt.on(n).compute_at("f", "p") for n in others)
    ),
    "sliding": lambda others: pt.Schedule(pt.on("f"), *(pt.on(n).store_root().compute_at("f", "y") for n in others)),
}


CASES = [*itertools.product(PIPELINES, SCHEDULES), *itertools.product(UPDATES, ["default", "root", "vectors"])]


def sizes_of(case: int) -> list[tuple[int, int]]:
    """Widths of 1, of 2 and 3, and of 4 and 5 have code of their own: each case leaves out some of them, by turns."""
    left_out = None if LONG else case % 3
    return [(height, width) for height, width in SIZES if width.bit_length() - 1 != left_out]


@pytest.mark.parametrize(("define", "schedule"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_sizes(define: Callable[[Made], None], schedule: str) -> None:
    made = Made()
    define(made)
    others = [f.name for f in (made.g, made.h) if f.defined]
    p = pt.Pipeline(made.f, shape=(made.height, made.width)).with_options(debug=True)
    scheduled = p.with_schedule(SCHEDULES[schedule](others))
    for size in sizes_of(CASES.index((define, schedule))):
        img = np.arange(size[0] * size[1], dtype=np.float32).reshape(size)
        np.testing.assert_allclose(scheduled(img=img), p.reference(img=img), rtol=1e-6, err_msg=str(size))


def test_dims_of_one_pixel() -> None:
    """A loop of one iteration is no loop, but a condition on its variable is one all the same."""
    m = Made()
    m.g[y, x] = m.img[y, x] * 2.0
    m.f[y, x] = pt.select(x < m.width - 3, m.g[y, x + 3], 1.0)
    p = pt.Pipeline(m.f, shape=(m.height, 1)).with_options(debug=True)
    for site in ("y", "x"):
        scheduled = p.with_schedule(pt.Schedule(pt.on("g").compute_at("f", site)))
        for size in SIZES:
            img = np.arange(size[0] * size[1], dtype=np.float32).reshape(size)
            np.testing.assert_array_equal(scheduled(img=img), p.reference(img=img))


@pytest.mark.parametrize("width", range(3, 8))
def test_one_of_the_outputs_is_empty(width: int) -> None:
    m, few = Made(), pt.Func("few")
    m.g[x] = m.img[0, x + 1]
    m.f[y, x] = m.img[y, x]
    few[x] = m.g[x] + m.g[x + 1]
    p = pt.Pipeline([few, m.f], shape=[(m.width - 3,), (m.height, m.width)]).with_options(debug=True)
    img = np.arange(2 * width, dtype=np.float32).reshape(2, width)
    scheduled = p.with_schedule(pt.Schedule(pt.on("g").compute_root().vectorize("x", 4)))
    for found, expected in zip(scheduled(img=img), p.reference(img=img), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [(0, 0), (0, 11), (11, 0)])
def test_places_from_data_around_nothing(size: tuple[int, int]) -> None:
    """What surrounds an empty array decides on data whether to read it."""
    m = Made()
    around = pt.constant(m.img, 1.0)
    m.f[y, x] = around[pt.cast("int32", pt.clamp(around[y, 3], 0, 1)), pt.cast("int32", pt.clamp(around[y, x], 0, 1))]
    p = pt.Pipeline(m.f, shape=(m.height + 3, m.width + 3)).with_options(debug=True)
    np.testing.assert_array_equal(p(img=np.zeros(size, np.float32)), np.ones((size[0] + 3, size[1] + 3), np.float32))


@pytest.mark.parametrize("extend", [pt.edge, pt.mirror, pt.reflect, pt.wrap, pt.constant])
@pytest.mark.parametrize("size", [(0, 0), (0, 3), (3, 0)])
def test_around_nothing(extend: Callable[..., pt.Func], size: tuple[int, int]) -> None:
    """Only a constant can surround an array that has no pixels."""
    m = Made()
    around = extend(m.img, 5.0) if extend is pt.constant else extend(m.img)
    m.f[y, x] = around[y - 1, x - 1] + around[y + 1, x + 2]
    p = pt.Pipeline(m.f, shape=(m.height + 2, m.width + 2)).with_options(debug=True)
    img = np.zeros(size, np.float32)
    for run in (p, p.reference):
        if extend is pt.constant:
            np.testing.assert_array_equal(run(img=img), np.full((size[0] + 2, size[1] + 2), 10, np.float32))
        else:
            with pytest.raises(pt.UserError, match="has no indices; pass an array that is not empty"):
                run(img=img)


DOMAINS: dict[str, Callable[[pt.StageSchedule], pt.StageSchedule]] = {
    "plain": lambda u: u,
    "unrolled": lambda u: u.unroll("r.1", 8).unroll("r.0", 3),
    "clipped": lambda u: u.split("r.1", "a", "b", 4).split("a", "a", "m", 2),
    "inside out": lambda u: u.split("r.1", "a", "b", 4).unroll("b").reorder("a", "r.0", "b", "x"),
    "both": lambda u: u.fuse("r.0", "r.1", "p"),
    "both in blocks": lambda u: u.fuse("r.0", "r.1", "p").split("p", "a", "b", 4).unroll("b"),
    "with a row": lambda u: u.reorder("r.1", "x", "r.0").fuse("x", "r.0", "p").unroll("p", 2),
    "vectors": lambda u: u.reorder("r.0", "r.1", "x").vectorize("x", 4).unroll("r.1", 2),
    "parallel": lambda u: u.parallel("x").unroll("r.1", 2),
    "in two steps": lambda u: u.rfactor("r.0", "u"),
    "blocks in two steps": lambda u: u.split("r.1", "a", "b", 4).rfactor("b", "u"),
}


@pytest.mark.parametrize("producer", ["inline", "root"])
@pytest.mark.parametrize("kind", DOMAINS)
def test_domains_of_less_than_nothing(kind: str, producer: str) -> None:
    """A domain of extent -1 has no values, however its loops are cut: its last block does not begin before it."""
    m = Made()
    r = pt.RDom((1, m.height - 2), (1, m.width - 2))
    m.g[y, x] = pt.wrap(m.img)[y, x] * 2.0
    m.f[x] = 1.0
    m.f[x] += m.g[r[0], r[1] + x]
    p = pt.Pipeline(m.f, shape=(m.width // 2 + 1,)).with_options(debug=True)
    g = pt.on("g").compute_inline() if producer == "inline" else pt.on("g").compute_root()
    scheduled = p.with_schedule(pt.Schedule(DOMAINS[kind](pt.on("f").update(0)), g))
    for size in [(1, 1), (1, 9), (2, 1), (4, 1), (2, 2), (3, 3), (5, 13)]:
        img = np.arange(size[0] * size[1], dtype=np.float32).reshape(size)
        np.testing.assert_allclose(scheduled(img=img), p.reference(img=img), rtol=1e-6, err_msg=str(size))


@pytest.mark.parametrize("producers", ["default", "root", "vectors"])
@pytest.mark.parametrize("extend", [pt.edge, pt.mirror, pt.reflect, pt.wrap])
def test_nothing_around_nothing(extend: Callable[..., pt.Func], producers: str) -> None:
    """What is defined everywhere around an input is nowhere if that has no pixels: it is not computed, nor is it
    needed by a domain that is as empty."""
    m, other = Made(), pt.Input("other", "float32", ndim=1)
    around, both = extend(other), pt.Func("both")
    both[x] = around[x] + around[x + 1]
    m.g[x] = 0.0
    m.g[x] += both[x + pt.RDom((0, other.shape[0]))[0]]
    m.f[y, x] = m.g[x] + m.g[x + 1]
    p = pt.Pipeline(m.f, shape=(m.height, m.width)).with_options(debug=True)
    scheduled = p.with_schedule(SCHEDULES[producers](["both", "g"]))
    for length in (0, 1, 3):
        arrays = {"img": np.zeros((2, 7), np.float32), "other": np.arange(length, dtype=np.float32)}
        np.testing.assert_array_equal(scheduled(**arrays), p.reference(**arrays), err_msg=str(length))


@pytest.mark.parametrize("schedule", ["default", "root", "vectors"])
@pytest.mark.parametrize("extend", [pt.edge, pt.mirror, pt.reflect, pt.wrap])
def test_conditions_around_nothing(extend: Callable[..., pt.Func], schedule: str) -> None:
    """A wrapped index is inside an input whatever it is, unless there is nothing inside."""
    m, other = Made(), pt.Input("other", "float32", ndim=1)
    around = extend(other)
    m.g[x] = around[x] + around[x + 1]
    m.f[y, x] = pt.select(x < other.shape[0], m.g[x + 1], 3.0) + pt.select(x < other.shape[0], around[x], 4.0)
    p = pt.Pipeline(m.f, shape=(m.height, m.width)).with_options(debug=True)
    for run in (p.with_schedule(SCHEDULES[schedule](["g"])), p.reference):
        found = run(img=np.zeros((2, 7), np.float32), other=np.zeros(0, np.float32))
        np.testing.assert_array_equal(found, np.full((2, 7), 7, np.float32))


@pytest.mark.parametrize("schedule", ["default", "root", "vectors"])
@pytest.mark.parametrize("how", ["output", "scan", "scatter", "output of a stage"])
def test_updates_of_nothing(how: str, schedule: str) -> None:
    """The domain of an update has values, whatever is needed of its Func: where that is nothing, it does not run."""
    m, other = Made(), pt.Input("other", "float32", ndim=1)
    r = pt.RDom((1, 5))
    m.g[x] = pt.constant(other, 1.0)[x] if how != "output" else 1.0
    if how == "scatter":
        m.g[pt.cast("int32", other[r[0] % other.shape[0]]) % 4] += 2.0
    else:
        m.g[6 - r[0]] += m.g[7 - r[0]] * 0.5
    m.h[x] = m.g[x] if how in ("scan", "scatter") else 0.0
    m.f[y, x] = m.img[y, x]
    last = m.g if how.startswith("output") else m.h
    p = pt.Pipeline([m.f, last], shape=[m.img.shape, (pt.maximum(other.shape[0] - 1, 0),)]).with_options(debug=True)
    scheduled = p.with_schedule(SCHEDULES[schedule](["g"] if last is m.h else []))
    for length in (0, 1, 9):
        arrays = {"img": np.ones((2, 3), np.float32), "other": np.arange(length, dtype=np.float32)}
        for found, expected in zip(scheduled(**arrays), p.reference(**arrays), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=str(length))


def outside_its_domain(m: Made) -> None:
    m.g = pt.Func("g", domain=((0, m.height), (-2, m.width)))
    m.g[y, x] = m.img[y, x + 2] * 2.0
    m.h[y, x] = pt.constant(m.g, 3.0)[y, x]


def clamped_where_nothing_is(m: Made) -> None:
    m.g[y, x] = m.img[y, x] * 2.0
    asked = (x >= 4) & (x <= m.width + 5)
    at = pt.clamp(x, 4, m.width + 5) - 4
    m.h[y, x] = pt.select(asked, m.g[y, at], 3.0) + pt.select(asked, m.img[y, at], 3.0) + m.g[y, 0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("define", [outside_its_domain, clamped_where_nothing_is])
def test_indices_that_conditions_do_not_change(define: Callable[[Made], None], schedule: str) -> None:
    """A condition that leaves an index as it is, or clamped as it is, may hold nowhere: then nothing is there."""
    m = Made()
    define(m)
    m.f[y, x] = m.h[y, x] + 1.0
    p = pt.Pipeline(m.f, shape=m.img.shape).with_options(debug=True)
    scheduled = p.with_schedule(SCHEDULES[schedule](["g"]))
    for size in [(3, width) for width in (1, 2, 3, 4, 5, 9)]:
        img = np.arange(size[0] * size[1], dtype=np.float32).reshape(size)
        np.testing.assert_array_equal(scheduled(img=img), p.reference(img=img), err_msg=str(size))


def test_far_from_what_nobody_needs() -> None:
    """What stages read of which nothing is needed is not computed, nor all that lies between it and what is."""
    m = Made()
    around, inside = pt.edge(m.img), pt.Func("inside", domain=((0, m.height), (0, 1)))
    inside[y, x] = around[2 * y, 2 * x - 2]
    r = pt.RDom((0, m.height), (0, m.width // 3))
    m.f[x] = 0.0
    m.f[x] += pt.reflect(inside)[r[1] + 1, r[0] + r[1]] - around[1 - r[1], r[0] % 4 + r[1]]
    p = pt.Pipeline(m.f, shape=(4,)).with_options(debug=True)
    scheduled = p.with_schedule(pt.Schedule(*(pt.on(n).compute_root() for n in ("img_edge", "inside"))))
    for size in SIZES:
        img = np.arange(np.prod(size), dtype=np.float32).reshape(size)
        np.testing.assert_array_equal(scheduled(img=img), p.reference(img=img), err_msg=str(size))


@pytest.mark.parametrize("vectors", [False, True])
def test_the_same_place_under_a_condition(vectors: bool) -> None:
    """A load of one element, wherever it is asked for, is none where nobody needs that element."""
    img, f, one = pt.Input("img", "float32", ndim=1), pt.Func("f"), pt.Func("one", domain=((1, 1),))
    one[x] = img[x] + img[x - 1]
    f[x] = pt.constant(one, 1)[x]
    p = pt.Pipeline(f, shape=img.shape).with_options(debug=True)
    on = pt.on("f").vectorize("x", 4) if vectors else pt.on("f")
    for length in range(1, 6):
        given = np.arange(length, dtype=np.float32)
        found = p.with_schedule(pt.Schedule(pt.on("one").compute_root(), on))(img=given)
        np.testing.assert_array_equal(found, p.reference(img=given), err_msg=str(length))


def test_nothing_is_not_far_away() -> None:
    """What can be read anywhere is stored for a Func of which nothing is needed: little, though it is read at x and
    at 2*x."""
    m, around = Made(), pt.Func("around")
    m.g = pt.Func("g", domain=((0, m.width), (-2, m.height)))
    around[y, x] = pt.wrap(m.img)[y, x] + 1.0
    m.h[y, x] = around[y, (x + 3) // 2] + around[1, 2 * x]
    m.g[y, x] = m.h[y // 3, x] + around[y, x + y]
    m.f[y, x] = pt.constant(m.g, 3.0)[y, x]
    p = pt.Pipeline(m.f, shape=(m.height, 2 * m.width)).with_options(debug=True)
    scheduled = p.with_schedule(pt.Schedule(*(pt.on(n).compute_root() for n in ("around", "g", "h"))))
    for size in [(2, 31), (1, 3), (5, 9)]:
        img = np.arange(size[0] * size[1], dtype=np.float32).reshape(size)
        np.testing.assert_array_equal(scheduled(img=img), p.reference(img=img), err_msg=str(size))


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("between", [False, True])
def test_updates_that_could_be_anywhere(vectors: bool, between: bool) -> None:
    """An update under a condition on a coordinate reads nothing where nothing is needed from there on."""
    img, u, g, out = pt.Input("img", "float32", ndim=1), pt.Func("u"), pt.Func("g"), pt.Func("out")
    g[x] = img[x + 3] + img[x + 4]
    u[x] = 0.0
    u[x] += g[pt.RDom((0, 2)).where(x >= 5)[0]]
    out[x] = u[x] + 1.0
    p = pt.Pipeline(out if between else u, shape=img.shape).with_options(debug=True)
    lanes = pt.on("u").compute_root().update(0).vectorize("x", 4).reorder("x", "r.0", "x_v")
    scheduled = p.with_schedule(pt.Schedule(pt.on("g").compute_root(), lanes)) if vectors else p
    for length in range(1, 9):
        given = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(scheduled(img=given), p.reference(img=given), err_msg=str(length))


@pytest.mark.parametrize("between", [False, True])
def test_fixed_places_under_a_choice(between: bool) -> None:
    """A read that does not move along a dim, chosen by that dim: where it is not chosen, nothing need be there."""
    m = Made()
    m.g[y, x] = m.img[y, x] * 2.0
    m.h[y, x] = pt.select(x > 3, m.g[y, 4], 3.0) + m.g[y, 0]
    m.f[y, x] = m.h[y, x] + 1.0 if between else pt.select(x > 3, m.g[y, 4], 3.0) + m.g[y, 0]
    p = pt.Pipeline(m.f, shape=m.img.shape).with_options(debug=True)
    roots = [pt.on("g").compute_root(), *([pt.on("h").compute_root()] if between else [])]
    for width in (1, 2, 3, 4, 5, 9):
        img = np.arange(3 * width, dtype=np.float32).reshape(3, width)
        found = p.with_schedule(pt.Schedule(*roots))(img=img)
        np.testing.assert_array_equal(found, p.reference(img=img), err_msg=str(width))


@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_updates_that_never_run_need_nothing(width: int) -> None:
    """Nor is anything computed for them: what that would read is limited to what is needed."""
    m, other, s = Made(), pt.Input("other", "float32", ndim=2), pt.Func("s")
    around, once, rows, some = pt.mirror(other), pt.RDom((1, 1)), pt.RDom((1, m.width)), pt.RDom((-2, 4))
    never = some.where(some[0] <= -42)
    m.g[y, x] = around[y, x]
    m.g[y, 1 - once[0]] = m.g[y, 2 - once[0]] + around[y, 1]
    s[y, x] = pt.edge(m.img)[y, x]
    s[y, x] = s[y, x] + m.g[y, (2 * x - 1) // 3]
    s[rows[0], x] = s[rows[0] - 1, x] + pt.select(x >= 4, m.g[x // 2 + rows[0], x // 3 + rows[0]], m.g[1, rows[0]])
    place = pt.cast("int32", pt.clamp(pt.edge(m.img)[never[0], 0], -4, 3))
    s[y, place] = 3.0 * s[y, place]
    m.f[y, x] = s[y, x]
    p = pt.Pipeline(m.f, shape=(m.height, m.width)).with_options(debug=True)
    arrays = {"img": np.zeros((13, width), np.float32), "other": np.arange(60, dtype=np.float32).reshape(6, 10)}
    np.testing.assert_array_equal(p(**arrays), p.reference(**arrays))


@pytest.mark.parametrize("n", [-1, 3, 2_000_000_000, -2_000_000_000])
def test_what_a_param_rules_out_is_not_far_away(n: int) -> None:
    """A sum reads a stage where its only index equals a param: nothing, or what is near."""
    m, n_ = Made(), pt.Param("n", "int32")
    r, s = pt.RDom((-1, 1)), pt.RDom((0, 3))
    around = pt.edge(m.img)
    m.h[y, x] = pt.sum(around[y, s[0]] * around[s[0], x], over=s)
    m.g[y, x] = pt.sum(pt.select(r[0] == n_ * 3, m.h[pt.clamp(y, 0, 6) + r[0], x % 4 + r[0]], 1.0), over=r)
    m.f[y, x] = m.g[y // 2, x] + m.g[y + 1, x]
    p = pt.Pipeline(m.f, shape=(m.height, m.width)).with_options(debug=True)
    scheduled = p.with_schedule(pt.Schedule(*(pt.on(name).compute_root() for name in ("h", "g", "img_edge"))))
    img = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(scheduled(img=img, n=n), p.reference(img=img, n=n))


@pytest.mark.parametrize("debug", [False, True])
def test_one_value_is_loaded_for_the_lanes_that_want_it(debug: bool) -> None:
    """The sum may not be computed where no x is k, so that its loads are masked; it has no dims that could be lanes."""
    img, k = pt.Input("img", "int32", ndim=2), pt.Param("k", "int32")
    total, f = pt.Func("total"), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    total[()] = pt.sum(img[r[0], r[1]], over=r, dtype="int32")
    f[y, x] = pt.select(x == k, total[()] % 100, -2)
    p = pt.Pipeline(f, shape=(img.shape[0] + 3, img.shape[1])).with_options(debug=debug)
    picture = np.arange(40 * 16, dtype=np.int32).reshape(40, 16)
    for place in (1, 9, 99):
        np.testing.assert_array_equal(p(img=picture, k=place), p.reference(img=picture, k=place))


def test_what_decides_on_itself_in_many_ways() -> None:
    """Each level reads the one below in its condition and in both branches: no mask asks for itself."""
    img, k, f = pt.Input("img", "int32", ndim=2), pt.Param("k", "int32"), pt.Func("f")
    around = pt.constant(img, 1)
    e = around[y, x + around[y - 1, x] % 2]
    for level in range(8):
        e = pt.select((x > level) & (e < k + level), e + around[y, x - level], pt.select(y > level, e * 3, e - 1))
    f[y, x] = e
    p = pt.Pipeline(f, shape=(img.shape[0] + 3, img.shape[1])).with_options(debug=True)
    for size in ((0, 5), (4, 9), (12, 17)):
        picture = np.arange(size[0] * size[1], dtype=np.int32).reshape(size) % 7
        np.testing.assert_array_equal(p(img=picture, k=3), p.reference(img=picture, k=3))


def test_blocks_of_fused_loops_fused_again_compute_what_is_needed() -> None:
    """The last block has points that are left out, and so has what is computed for them."""
    img, g, f = pt.Input("img", "int32", ndim=2), pt.Func("g"), pt.Func("f")
    g[y, x] = pt.edge(img)[y, x] * 2
    f[y, x] = g[y, x - 1]
    p = pt.Pipeline(f, shape=(2 * img.shape[0], 9)).with_options(debug=True)
    points = pt.on("f").fuse("y", "x", "p").split("p", "po", "pi", 5, tail="guard").fuse("po", "pi", "q")
    blocks = points.split("q", "qo", "qi", 4, tail="guard")
    for where in ("qo", "qi"):
        q = p.with_schedule(pt.Schedule(blocks, pt.on("g").compute_at("f", where).store_root()))
        for height in (1, 2, 5):
            picture = np.arange(height * 23, dtype=np.int32).reshape(height, 23)
            np.testing.assert_array_equal(q(img=picture), p.reference(img=picture))


def test_regions_that_may_be_missing_compile_everywhere() -> None:
    """Where an image is too small for anything to be read, regions begin at 0 by a comparison that is no larger than a
    coordinate: LLVM's x86 backend gave up on one with 2**33."""
    img, f, g, h, out = (pt.Input("img", "int32", ndim=2), *(pt.Func(name) for name in ("f", "g", "h", "out")))
    rows, columns = img.shape
    f[y, x] = (img[y + 2, x + 2] + pt.select(y < rows - 1, img[y + 1, x], 7)) // 3
    corner = pt.select(~(y < rows - 4) | ~(x < columns - 5), 7, f[y + 2, x + 2])
    g[y, x] = pt.select((y >= 2) & (x >= 1), f[y - 2, x - 1], 7) + pt.select(x >= 4, f[y + 1, x - 2], 7) + corner
    h[y, x] = pt.select(~(x < columns - 3), 7, g[y + 1, x]) // 3
    out[y, x] = pt.select((y >= 4) & (x >= 0), h[y - 2, x], 7) // 3
    blocks = pt.on("h").compute_at("out", "y").unroll("x", 2).split("x", "x", "xi", 4).reorder("y", "x", "x_u", "xi")
    p = pt.Pipeline(out, shape=(rows - 2, columns)).with_schedule(
        pt.Schedule(blocks.vectorize("xi").tile("y", "x", "yo", "xo", "yi", "x_b", 16, 3), pt.on("g").compute_root())
    )
    assert p.asm("x86-64-v4")
    picture = np.arange(12, dtype=np.int32).reshape(3, 4)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))


@pytest.mark.parametrize("m", [0, 1, 2])
def test_what_is_missing_may_be_a_difference(m: int) -> None:
    """How far m is from 1, as a sum of its own: where it is 1, something is needed, from -2 on."""
    far = (maximum(var("m"), 1) - minimum(var("m"), 1)) * FAR
    side = _near(Interval(far - 2, var("n") - far))
    assert value_at(side.low, {"m": m, "n": 5}) == (-2 if m == 1 else 0)


@pytest.mark.parametrize("target", ["host", "cuda-sim"])
def test_updates_of_a_stage_that_is_never_read_do_not_run(target: str) -> None:
    """No memory is allocated for a stage whose region is empty. Its updates, which run over domains of their own, wrote
    to it all the same."""
    img, u, v, r = pt.Input("img", "uint8", ndim=2), pt.Func("u"), pt.Func("v"), pt.RDom((1, 5))
    u[y, x] = pt.cast("int32", y)
    u[y, r[0]] = u[y, r[0] - 1] * 3 + u[y, r[0]]
    v[y, x] = pt.select(x + y < -1, u[pt.clamp(y, 0, 1), x + 1] + u[0, 0 - x], 7)
    p = pt.Pipeline(v, shape=(9, img.shape[1]), debug=True, target=target)
    picture = np.zeros((1, 5), np.uint8)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))


@pytest.mark.parametrize("width", [1, 2, 5, 9, 20])
def test_a_loop_goes_on_where_the_one_inside_has_no_iterations(width: int) -> None:
    """What is computed there is nothing, not less than that: it was written before its memory."""
    img, g, f, out = pt.Input("img", "int32", ndim=1), pt.Func("g"), pt.Func("f"), pt.Func("out")
    g[x] = pt.edge(img)[x] * 2
    f[x] = g[x - 2] + g[x + 2]
    out[x] = f[x - 2]
    p = pt.Pipeline(out, shape=(img.shape[0],), debug=True).with_schedule(
        pt.Schedule(
            pt.on("out").compute_root(),
            pt.on("f").compute_at("out", "x").split("x", "xo", "xi", 8, tail="peel").reorder("xi", "xo"),
            pt.on("g").compute_at("f", "xi").unroll("x", 3),
        )
    )
    picture = np.arange(width, dtype=np.int32)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))


@pytest.mark.parametrize("target", ["host", "cuda-sim"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_whole_blocks_leave_nothing_over_for_what_is_read_in_steps(step: int, target: str) -> None:
    """Where there is no rest of x, the last place that 2*x reads lies two before the first one, not one."""
    img, f, out = pt.Input("img", "int32", ndim=1), pt.Func("f"), pt.Func("out")
    f[x] = pt.edge(img)[x] + 1
    out[x] = f[step * x]
    p = pt.Pipeline(out, shape=img.shape, debug=True, target=target).with_schedule(
        pt.Schedule(
            pt.on("out").split("x", "xo", "xi", 2, tail="peel").vectorize("xi"),
            pt.on("f").compute_at("out", "xo").split("x", "xo", "xi", 4, tail="peel").vectorize("xi"),
        )
    )
    for width in range(1, 6):
        row = np.arange(width, dtype=np.int32)
        np.testing.assert_array_equal(p(img=row), p.reference(img=row))
