"""Single pieces of lowering: masks, prefetches, what conditions teach, versions, shared loops, late refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.analysis.interval import Interval
from pantile.errors import here
from pantile.expr.build import logical_and, ramp, select
from pantile.expr.linear import Facts
from pantile.expr.nodes import Const, Expr, Load, Op, Ramp, Shuffle, const, var
from pantile.expr.types import FLOAT32, INDEX
from pantile.expr.visit import same, walk
from pantile.graph.nodes import InputInfo
from pantile.ir.nodes import Alloc, For, If, Produce
from pantile.ir.show import show
from pantile.ir.visit import expressions
from pantile.ir.visit import walk as statements
from pantile.lower.conditions import assume
from pantile.lower.nest.loop_builder import prefetches
from pantile.lower.nest.mask import LoadContext, mask_loads
from pantile.lower.nest.point import LoweredExpressions
from pantile.lower.vectorize import fold_ramp
from pantile.target.kinds import Memory

from .lowered import lowered, stores

Y, X = pt.vars("y x")
IMG = pt.Input("img", "float32", ndim=2)
GAIN = pt.Param("gain", "float32")
x, n = var("x"), var("img.shape.0")


# ---- masks


def load(index: Expr, buffer: str = "img") -> Load:
    return Load(FLOAT32, 1, buffer, (index,))


ZERO = const(0.0, FLOAT32)
WHOLE = {"x": Interval(const(0, INDEX), n - 1)}
ANY = Facts({"img.shape.0": (1, None)})
LINE = 64  # bytes


def masked(e: Expr) -> Expr:
    """With masks, where stages lack nothing and ranges have points."""
    inputs = {"img": InputInfo("img", FLOAT32, 1, here())}
    return mask_loads(e, WHOLE, LoadContext(inputs, ANY, lambda _: False, lambda _: True, lambda _: False))


def masks(e: Expr) -> list[str]:
    """The masks of all loads, those without one left out."""
    found = masked(e)
    return [str(node.mask) for node in walk(found) if isinstance(node, Load) and node.mask is not None]


MASKED: dict[str, tuple[Expr, list[str]]] = {
    "a read that leaves the image": (select(x > 0, load(x - 1), ZERO), ["x > 0"]),
    "in the other branch": (select(x < n - 1, ZERO, load(x + 1)), ["~(x < img.shape.0 - 1)"]),
    "a read that does not": (select(x > 0, load(x), ZERO), []),
    "no condition": (load(x - 1), []),
    "conditions inside conditions": (
        select(x > 0, select(x < n - 1, load(x + 1), ZERO), ZERO),
        ["(x > 0) & (x < img.shape.0 - 1)"],
    ),
    "a condition that says nothing of x": (select(load(x) > 0.0, load(x), ZERO), []),
}


@pytest.mark.parametrize("name", MASKED)
def test_loads_are_masked_where_they_must(name: str) -> None:
    e, expected = MASKED[name]
    assert masks(e) == expected


def test_the_value_is_otherwise_the_same() -> None:
    e = select(x > 0, load(x - 1) + load(x), ZERO)
    (read, kept) = (node for node in walk(masked(e)) if isinstance(node, Load))
    assert same(read.indices[0], x - 1) and kept.mask is None


def test_what_nested_selects_share_is_copied_for_some_ways_and_then_masked_for_all() -> None:
    """Each level doubles the ways to what is below: copies grow with the levels all the same."""

    def nested(levels: int) -> Expr:
        e: Expr = load(x)
        for k in range(levels):
            e = select(x > k, load(x - k - 1) + e, e - load(x + k))
        return e

    def copies(levels: int) -> int:
        return len(list(walk(masked(nested(levels)))))

    assert copies(40) < 2.5 * copies(20)


# ---- patterns of lanes


@pytest.mark.parametrize("lanes", [4, 8])
def test_indices_that_differ_by_parity_are_a_shuffle_of_one_ramp(lanes: int) -> None:
    lane = ramp(x * 2, 1, lanes)
    found = folded(folded(folded(lane // 2) - 1) + folded(folded(lane % 2) * 2))
    assert isinstance(found, Shuffle)
    assert str(found.vectors[0]) == f"ramp(x*2//2 - 1, 1, {lanes // 2 + 2})"
    assert found.order == tuple(k // 2 + 2 * (k % 2) for k in range(lanes))


def test_multiples_of_a_pattern_keep_its_order() -> None:
    half = folded(ramp(x * 2, 1, 4) // 2)
    assert str(folded(half * 8)) == "shuffle(ramp(x*2//2*8, 8, 2), [0, 0, 1, 1])"


def folded(e: Expr) -> Expr:
    found = fold_ramp(e) if isinstance(e, Op) else None
    return e if found is None else found


# ---- indices from data


def test_a_number_added_to_data_that_cannot_wrap_stays_apart() -> None:
    level = pt.clamp(pt.cast("int32", IMG[Y, X]), 0, 6)
    table, wraps = pt.Func("table"), pt.Func("wraps")
    table[Y, X] = IMG[Y, level + 1]
    wraps[Y, X] = IMG[Y, pt.within(pt.cast("int32", IMG[Y, X]) + 1, 0, 6)]
    for f, expected in ((table, "max(min(int32(img"), (wraps, "index(within(int32(img")):
        p = pt.Pipeline(f, shape=(3, 5))
        (column,) = (i for i in _indices(p) if "int32" in str(i))
        assert (" + 1" in str(column)) and expected in str(column)
        assert isinstance(column, Op) == (f is table)


def _indices(p: pt.Pipeline) -> list[Expr]:
    graph = p.graph
    at = {d: var(d) for d in graph.stages[0].dims}
    value = LoweredExpressions(at).expression(graph.stages[0].definitions[0].values[0])
    return [node.indices[1] for node in walk(value) if isinstance(node, Load)]


# ---- prefetches


def box(*sides: tuple[Expr, int]) -> tuple[Interval, ...]:
    return tuple(Interval(low, low + (count - 1)) for low, count in sides)


def test_one_request_per_row_and_line() -> None:
    found = prefetches("img", box((var("y") + 2, 2), (x * 32, 32)), 4, LINE, Facts())
    assert [tuple(map(str, p.indices)) for p in found] == [
        ("y + 2", "x*32"),
        ("y + 2", "x*32 + 16"),
        ("y + 3", "x*32"),
        ("y + 3", "x*32 + 16"),
    ]


def test_less_than_a_line_is_one_request() -> None:
    assert len(prefetches("img", box((x * 4, 4)), 2, LINE, Facts())) == 1


@pytest.mark.parametrize("count", [65, 10**12])
def test_many_lines_are_not_asked_for(count: int) -> None:
    assert prefetches("img", box((var("y"), count), (x, 16)), 4, LINE, Facts()) == []


def test_unknown_sizes_are_not_asked_for() -> None:
    assert prefetches("img", (Interval(x, x + n - 1),), 4, LINE, Facts()) == []


# ---- what conditions teach


LEARNED: dict[str, tuple[Expr, dict[str, int], tuple[int | None, int | None]]] = {
    "equal": (n == 5, {"img.shape.0": 5}, (5, 5)),
    "at least": (n >= 64, {}, (64, None)),
    "more": (n > 64, {}, (65, None)),
    "at most": (n <= 64, {}, (2, 64)),
    "less": (n < 64, {}, (2, 63)),
    "mirrored": (const(64, INDEX) <= n, {}, (64, None)),
    "both": (logical_and(n >= 8, n < 32), {}, (8, 31)),
    "what is known already": (n >= 1, {}, (2, None)),
    "either": ((n >= 8) | (n < 4), {}, (2, None)),
    "not equal": (n != 5, {}, (2, None)),
}


@pytest.mark.parametrize("name", LEARNED)
def test_conditions_teach(name: str) -> None:
    condition, values, bounds = LEARNED[name]
    known, facts = assume(condition, {"img.shape.0": (2, None)})
    assert {k: v.value for k, v in known.items() if isinstance(v, Const)} == values
    assert facts["img.shape.0"] == bounds


# ---- versions


def scaled() -> pt.Pipeline:
    f, out = pt.Func("f"), pt.Func("out")
    f[Y, X] = IMG[Y, X] * GAIN
    out[Y, X] = f[Y, X] + pt.select(GAIN == 0.0, 100.0, f[Y, X] + 1.0)
    return pt.Pipeline(out, shape=IMG.shape)


VERSIONS = {
    "by param": pt.Schedule(pt.on("out").vectorize("x", 4).specialize("gain == 0")),
    "by shape": pt.Schedule(pt.on("out").vectorize("x", 8).specialize("img.shape[1] >= 8")),
    "by both": pt.Schedule(pt.on("out").specialize("gain == 1 and img.shape[0] > 3").specialize("gain == 0")),
    "of a stage inside": pt.Schedule(
        pt.on("out").vectorize("x", 4), pt.on("f").compute_at("out", "y").vectorize("x", 4).specialize("gain == 0")
    ),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_is_right(name: str) -> None:
    p = scaled().with_schedule(VERSIONS[name])
    for gain in (0.0, 1.0, 2.5):
        for shape in ((2, 3), (5, 8), (9, 21)):
            img = np.random.default_rng(1).integers(0, 99, shape).astype(np.float32)
            np.testing.assert_array_equal(p(img=img, gain=gain), p.reference(img=img, gain=gain))


def test_a_version_knows_its_condition() -> None:
    p = scaled().with_schedule(pt.Schedule(pt.on("out").specialize("gain == 1")))
    (choice,) = (s for s in statements(lowered(p)["nest"]) if isinstance(s, If))
    assert str(choice.condition) == "gain == 1" and choice.otherwise is not None
    assert "gain" not in show(choice.then) and "gain" in show(choice.otherwise)


def test_a_float_that_equals_zero_keeps_its_sign() -> None:
    f = pt.Func("f")
    f[Y, X] = IMG[Y, X] / GAIN
    p = pt.Pipeline(f, shape=IMG.shape).with_schedule(pt.Schedule(pt.on("f").specialize("gain == 0")))
    for gain in (0.0, -0.0):
        np.testing.assert_array_equal(p(img=np.ones((2, 3), np.float32), gain=gain), np.copysign(np.inf, gain))


# ---- shared loops


def gradients() -> pt.Pipeline:
    dy, dx, out = pt.Func("dy"), pt.Func("dx"), pt.Func("out")
    dy[Y, X] = IMG[Y + 1, X] - IMG[Y, X]
    dx[Y, X] = IMG[Y, X + 1] - IMG[Y, X]
    out[Y, X] = dy[Y, X] * dx[Y, X] + dy[Y + 1, X] * dx[Y + 1, X]
    return pt.Pipeline(out, shape=(IMG.shape[0] - 2, IMG.shape[1] - 1))


def test_stages_that_share_loops() -> None:
    at = pt.on("dy").store_root().compute_at("out", "y")
    beside = pt.on("dx").store_root().compute_with("dy", "y")
    p = gradients().with_schedule(pt.Schedule(pt.on("out"), at, beside))
    nest = lowered(p)["nest"]
    (host,) = (s for s in statements(nest) if isinstance(s, Produce) and s.stage == "dy")
    assert any(isinstance(s, Produce) and s.stage == "dx" for s in statements(host))
    assert not any(isinstance(s, For) and s.var == "dx.y" for s in statements(nest))
    counts = stores(nest, {"img.shape.0": 9, "img.shape.1": 4})
    assert set(counts.values()) == {1}
    assert (
        {i for b, i in counts if b == "dx"}
        == {i for b, i in counts if b == "dy"}
        == {(row, column) for row in range(8) for column in range(3)}
    )


@pytest.mark.parametrize("loop", ["y", "x"])
@pytest.mark.parametrize("place", ["root", "rows", "sliding"])
def test_results_of_shared_loops(loop: str, place: str) -> None:
    host = pt.on("dy").vectorize("x", 4)
    if place != "root":
        host = host.compute_at("out", "y")
    beside = pt.on("dx").vectorize("x", 4).compute_with("dy", loop)
    if place == "sliding":
        host, beside = host.store_root(), beside.store_root()
    p = gradients().with_schedule(pt.Schedule(pt.on("out").vectorize("x", 4), host, beside))
    for shape in ((3, 2), (4, 9), (13, 17)):
        img = np.random.default_rng(2).integers(0, 99, shape).astype(np.float32)
        np.testing.assert_array_equal(p(img=img), p.reference(img=img))


def test_an_output_that_shares_loops_is_cut_as_they_are() -> None:
    """Blocks of an output fit small images; not those that are also of a stage of which that is not known."""
    f, near, far = pt.Func("f"), pt.Func("near"), pt.Func("far")
    f[Y, X] = IMG[Y, X] * 2.0
    near[Y, X], far[Y, X] = IMG[Y, X] + 1.0, f[Y, X] - 1.0
    p = pt.Pipeline([near, far], shape=[IMG.shape, IMG.shape])
    host, beside = pt.on("f").compute_root().unroll("x", 8), pt.on("near").unroll("x", 8).compute_with("f", "x")
    q = p.with_schedule(pt.Schedule(host.specialize("img.shape[0] > 2"), beside, pt.on("far")))
    for shape in ((1, 1), (3, 1), (3, 5), (4, 9)):
        img = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        for found, expected in zip(q(img=img), p.reference(img=img), strict=True):
            np.testing.assert_array_equal(found, expected)


# ---- refusals that only lowering can see


def pairs(*shape: int) -> pt.Pipeline:
    """Two stages that are needed over different rows."""
    f, g, out = pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[Y, X] = IMG[Y, X] * 2.0
    g[Y, X] = IMG[Y, X] * 3.0
    out[Y, X] = f[Y, X] + g[Y + 1, X]
    return pt.Pipeline(out, shape=shape or (IMG.shape[0] - 1, IMG.shape[1]))


def large_pairs() -> pt.Pipeline:
    """Pairs over a large number of pixels that is known."""
    return pairs(1, 1 << 20)


def unknown_index() -> pt.Pipeline:
    """A table read where data says, with no limits."""
    f, out = pt.Func("f"), pt.Func("out")
    f[X] = pt.cast("float32", X)
    out[Y, X] = f[pt.cast("int64", IMG[Y, X])]
    return pt.Pipeline(out, shape=IMG.shape)


S = pt.Schedule
LARGE_BLOCKS = S(pt.on("out").split("x", "xo", "xi", 1 << 19), pt.on("f").compute_at("out", "xo"))
REFUSED: dict[str, tuple[Callable[[], pt.Pipeline], pt.Schedule, list[str]]] = {
    "no constant size on the stack": (pairs, S(pt.on("f").store_in("stack")), [
        'pt.on("f").store_in("stack"): the region of f that is kept has no constant size there; ',
        "compute and store it inside a split loop, or leave store_in out",
    ]),
    "no constant size in registers": (pairs, S(pt.on("out"), pt.on("f").compute_at("out", "y").store_in("register")), [
        'pt.on("f").store_in("register"): the region of f that is kept has no constant size there',
    ]),
    "too much on the stack": (large_pairs, LARGE_BLOCKS.replace(LARGE_BLOCKS.on("f").store_in("stack")), [
        'pt.on("f").store_in("stack"): 2097152 bytes of f would be on the stack, with 0 of other buffers, and there is '
        "room for 262144; compute it in smaller blocks, or leave store_in out",
    ]),
    "too much in registers": (large_pairs, LARGE_BLOCKS.replace(LARGE_BLOCKS.on("f").store_in("register")), [
        'pt.on("f").store_in("register"): 2097152 bytes of f would be on the stack',
    ]),
    "too much on the stack together": (large_pairs, S(
        pt.on("out").split("x", "xo", "xi", 40000),
        *(pt.on(n).compute_at("out", "xo").store_in("stack") for n in "fg"),
    ), ['pt.on("f").store_in("stack"): 160000 bytes of f would be on the stack, with 160000 of other buffers']),
    "shared loops over different regions": (pairs, S(pt.on("f"), pt.on("g").compute_with("f", "y")), [
        'pt.on("g").compute_with("f", ...): g and f (defined at ', "test_pieces.py:",
        ") are needed over different regions, so their loops cannot be shared; compute them one after the other",
    ]),
    "a region without limits": (unknown_index, S(pt.on("f")), [
        "f is read at a position along x that has no known bounds; limit the index with "
        "pt.clamp(index, low, high) or promise its range with pt.within(index, low, high)",
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_lowering(name: str) -> None:
    make, schedule, texts = REFUSED[name]
    with pytest.raises(pt.UserError) as caught:
        lowered(make().with_schedule(schedule))
    for text in texts:
        assert text in str(caught.value)
    assert str(caught.value).startswith(__file__), "an error starts with the line of the definition"


def test_the_same_where_the_size_is_constant() -> None:
    schedule = S(pt.on("out").split("x", "xo", "xi", 8), pt.on("f").compute_at("out", "xo").store_in("stack"))
    assert "in stack" in show(lowered(pairs().with_schedule(schedule))["flatten"])


def test_small_buffers_are_on_the_stack_while_there_is_room() -> None:
    """Each would fit, but all of them would be more than a thread's stack may have."""
    stages = [IMG]
    for k in range(40):
        stages.append(pt.Func(f"f{k}"))
        stages[-1][Y, X] = stages[-2][Y, X] * 2.0 + stages[-2][Y, X + 1]
    p = pt.Pipeline(stages[-1], shape=(IMG.shape[0], IMG.shape[1] - 40))
    inner = [pt.on(f.name).compute_at("f39", "xo") for f in stages[1:-1]]
    serial = lowered(p.with_schedule(S(pt.on("f39").split("x", "xo", "xi", 3000), *inner)))["flatten"]
    memories = [s.memory for s in statements(serial) if isinstance(s, Alloc)]
    assert len(memories) == 39
    assert memories.count(Memory.STACK) == 262144 // (3040 * 4)
    assert memories.count(Memory.HEAP) == 39 - memories.count(Memory.STACK)


def test_a_stage_inside_a_fused_loop_covers_what_its_iteration_needs() -> None:
    c, y, x = pt.vars("c y x")
    img = pt.Input("img", "float32", ndim=3)
    g, f, out = pt.Func("g"), pt.Func("f"), pt.Func("out")
    g[c, y, x] = img[c, y, x] * 2
    f[c, y, x] = g[c, y, x] + g[c, y + 1, x]
    out[c, y, x] = f[c, y, x] + f[c, y + 1, x]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 2, img.shape[2])).with_schedule(
        pt.Schedule(
            pt.on("out").split("y", "band", "yi", 32).reorder("c", "band", "yi", "x").fuse("c", "band", "task"),
            pt.on("f").compute_at("out", "task"),
            pt.on("g").compute_root(),
        )
    )
    loops = p.loops()
    assert "for g.c in 0..img.shape.0:" in loops  # not what a quotient by an unknown number could be
    assert "for f.y in f.min.1..f.min.1 + 33:" in loops  # one band, not all of them
    picture = np.random.default_rng(0).random((3, 100, 7), np.float32)
    np.testing.assert_array_equal(p.with_options(debug=True)(img=picture), p.reference(img=picture))


def test_a_fused_loop_that_is_split_again() -> None:
    y, x = pt.vars("y x")
    img = pt.Input("img", "int32", ndim=2)
    f, out = pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] + 1
    out[y, x] = f[y, x] * 2
    how = pt.on("out").fuse("y", "x", "p").split("p", "block", "i", 8).split("block", "task", "j", 4)
    p = pt.Pipeline(out).with_schedule(pt.Schedule(how, pt.on("f").compute_at("out", "i")))
    picture = np.arange(77, dtype=np.int32).reshape(7, 11)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))


# ---- promises


def test_a_promise_does_not_hide_that_lanes_are_neighbours() -> None:
    """rfactor promises that a block's coordinates lie in the domain."""
    r = pt.RDom((0, IMG.shape[1]), names="x")
    total = pt.Func("total")
    total[Y] = pt.sum(IMG[Y, r.x], over=r)
    schedule = pt.Schedule(
        pt.on("total").update().split("r.x", "x", "lane", 8).rfactor("lane", "lane"),
        pt.on("total_lane")
        .reorder("y", "lane")
        .vectorize("lane", 8)
        .update()
        .reorder("y", "x", "lane")
        .vectorize("lane", 8),
    )
    p = pt.Pipeline(total, shape=(IMG.shape[0],), schedule=schedule)
    nodes = [e for s in statements(lowered(p)["simplify"]) for e in walk(*expressions(s))]
    vectors = [e for e in nodes if isinstance(e, Load) and e.buffer == "img" and e.lanes == 8]
    assert vectors and all(isinstance(e.indices[0], Ramp) for e in vectors if e.mask is None)
    assert any(e.mask is None for e in vectors)
    img = np.random.default_rng(0).random((3, 29), dtype=np.float32)
    np.testing.assert_allclose(p(img=img), img.sum(1), rtol=1e-5)


def test_a_stage_is_computed_only_where_the_condition_on_its_reader_holds() -> None:
    twice, sums, out, r = pt.Func("twice"), pt.Func("sums"), pt.Func("out"), pt.RDom((0, 4), names="x")
    twice[Y, X] = IMG[Y, X] * 2
    inside = r.where((Y >= 0) & (Y - IMG.shape[0] < 0))
    sums[Y] = 0.0
    sums[Y] += twice[Y, inside.x]
    out[Y] = sums[Y - 1] + sums[Y + 1]  # a row above the image and one below it have no pixels
    how = pt.Schedule(pt.on("out"), pt.on("sums").compute_at("out", "y"), pt.on("twice").compute_at("sums", "y"))
    p = pt.Pipeline(out, shape=(IMG.shape[0],)).with_schedule(how).with_options(debug=True)
    img = np.random.default_rng(3).random((5, 4), np.float32)
    np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-6)


def test_an_unrolled_block_that_is_fused_has_no_loop_for_the_rest() -> None:
    y, x = pt.vars("y x")
    img = pt.Input("img", "int32", ndim=2)
    f, out = pt.Func("f"), pt.Func("out")
    f[y, x] = img[y, x] + 1
    out[y, x] = f[y, x] * 2
    how = pt.on("f").compute_at("out", "y").tile("y", "x", "yo", "xo", "yi", "xi", 5, 1)
    how = how.fuse("yi", "xi", "i").unroll("i")
    p = pt.Pipeline(out).with_schedule(pt.Schedule(pt.on("out"), how))
    picture = np.arange(77, dtype=np.int32).reshape(7, 11)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))


def test_what_a_peeled_loop_leaves_over_of_loops_in_another_order() -> None:
    """The inner of two parts is outside: no let tells where the rest is that has neither of them."""
    f, out = pt.Func("f"), pt.Func("out")
    f[Y, X] = IMG[Y, X] * 2
    out[Y, X] = f[Y, X] + 1
    schedule = pt.Schedule(
        pt.on("out").compute_root().unroll("y", 3),
        pt.on("f")
        .compute_at("out", "y")
        .parallel("y", 5)
        .split("y_p", "part", "inner", 16)
        .reorder("x", "y", "inner", "part")
        .vectorize("part"),
    )
    p = pt.Pipeline(out, shape=IMG.shape, schedule=schedule, debug=True)
    img = np.random.default_rng(0).random((20, 30), np.float32)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))
