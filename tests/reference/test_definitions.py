"""Definitions of every kind, on hand-built graphs: against NumPy where one line says it, and against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pantile.errors import UserError
from pantile.expr.build import cast, expr, maximum, minimum, select
from pantile.expr.nodes import Expr, Var, op
from pantile.expr.types import BFLOAT16, FLOAT32, INT32, INT64, UINT8
from pantile.graph.nodes import Graph
from pantile.reference import evaluate

from .hand_built import R, X, Y, const, graph, load, stage, update
from .oracle import brute_force

RNG = np.random.default_rng(1)
IMAGE = RNG.integers(0, 256, (5, 7), dtype=np.uint8)
HEIGHT, WIDTH = Var(INT32, 1, "img.shape.0"), Var(INT32, 1, "img.shape.1")


def clamp(e: Expr, low: Any, high: Any) -> Expr:
    return minimum(maximum(e, low), high)


Arrays = dict[str, np.ndarray]


def run(g: Graph, inputs: Arrays | None = None, params: dict[str, Any] | None = None) -> list[np.ndarray]:
    """Evaluate, and see that the oracle agrees."""
    found = evaluate(g, inputs or {}, params or {})
    expected = brute_force(g, inputs or {}, params or {})
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return found


def over_image(*stages: Any, out: str, inputs: str = "uint8") -> Graph:
    return graph(*stages, out=((out, (HEIGHT, WIDTH)),), inputs={"img": (inputs, 2)})


def test_pointwise_integers_wrap() -> None:
    (found,) = run(over_image(stage("f", "y x", load("img", "uint8", Y, X) + 200), out="f"), {"img": IMAGE})
    np.testing.assert_array_equal(found, IMAGE + np.uint8(200))


def test_stencil_asks_its_producer_for_a_border() -> None:
    edge = stage("edge", "y x", load("img", "uint8", clamp(Y, 0, HEIGHT - 1), clamp(X, 0, WIDTH - 1)))
    wide = [cast("int32", load("edge", "uint8", Y + dy, X + dx)) for dy in (-2, 0, 1) for dx in (-1, 3)]
    total = wide[0] + wide[1] + wide[2] + wide[3] + wide[4] + wide[5]
    (found,) = run(over_image(edge, stage("f", "y x", total), out="f"), {"img": IMAGE})
    padded = np.pad(IMAGE, ((2, 1), (1, 3)), mode="edge").astype(np.int32)
    expected = sum(padded[2 + dy :, 1 + dx :][:5, :7] for dy in (-2, 0, 1) for dx in (-1, 3))
    np.testing.assert_array_equal(found, expected)


def test_down_and_up_sampling() -> None:
    down = stage("down", "y x", load("img", "uint8", 2 * Y + 1, X))
    up = stage("up", "y x", load("down", "uint8", Y // 2, X // 3))
    (found,) = run(graph(down, up, out=(("up", (4, 7)),), inputs={"img": ("uint8", 2)}), {"img": IMAGE})
    np.testing.assert_array_equal(found, IMAGE[1::2][np.arange(4) // 2][:, np.arange(7) // 3])


def test_two_consumers_share_a_producer_over_the_hull_of_their_boxes() -> None:
    base = stage("base", "x", cast("int64", X) * 10)
    left, right = stage("left", "x", load("base", "int64", X - 3)), stage("right", "x", load("base", "int64", X + 4))
    both = stage("both", "x", load("left", "int64", X) + load("right", "int64", X + 1))
    found = run(graph(base, left, right, both, out=(("both", (6,)), ("right", (2,)))))
    np.testing.assert_array_equal(found[0], np.arange(6) * 20 + 20)
    np.testing.assert_array_equal(found[1], [40, 50])


def test_unselected_reads_outside_an_input_are_harmless() -> None:
    e = select(X > 0, load("img", "uint8", Y, X - 1), 0)
    (found,) = run(over_image(stage("f", "y x", e), out="f"), {"img": IMAGE})
    np.testing.assert_array_equal(found, np.pad(IMAGE, ((0, 0), (1, 0)))[:, :-1])


def test_index_arithmetic_does_not_overflow_but_values_do() -> None:
    big = X * 65536 * 65536
    index = stage("index", "x", load("lut", "int32", big // 65536 // 65536))
    value = stage("value", "x", big // 65536 // 65536)
    g = graph(index, value, out=(("index", (4,)), ("value", (4,))), inputs={"lut": ("int32", 1)})
    found = run(g, {"lut": np.int32([5, 6, 7, 8])})
    assert found[0].tolist() == [5, 6, 7, 8]
    assert found[1].tolist() == [0, 0, 0, 0]


def test_data_in_an_index_keeps_its_own_arithmetic() -> None:
    f = stage("f", "x", load("lut", "uint8", load("img", "uint8", X) + 100))
    g = graph(f, out=(("f", (3,)),), inputs={"img": ("uint8", 1), "lut": ("uint8", 1)})
    lut = np.arange(256, dtype=np.uint8)[::-1].copy()
    (found,) = run(g, {"img": np.uint8([0, 155, 156]), "lut": lut})
    assert found.tolist() == [155, 0, 255]


def test_look_up_table_from_a_stage() -> None:
    lut = stage("lut", "i", cast("int32", Var(INT32, 1, "i")) * 3)
    f = stage("f", "y x", load("lut", "int32", load("img", "uint8", Y, X)))
    (found,) = run(over_image(lut, f, out="f"), {"img": IMAGE})
    np.testing.assert_array_equal(found, IMAGE.astype(np.int32) * 3)


def test_a_stated_domain_bounds_what_is_asked() -> None:
    f = stage("f", "x", X * 2, domain=((0, 4),))
    g = graph(f, stage("g", "x", load("f", "int32", X - 2)), out=(("g", (8,)),))
    assert run(g)[0].tolist() == [0, 0, 0, 2, 4, 6, 6, 6]


def test_params_and_symbolic_shapes() -> None:
    gain = Var(FLOAT32, 1, "gain")
    f = stage("f", "y", cast("float32", load("img", "uint8", Y, 0)) * gain)
    g = graph(f, out=(("f", (HEIGHT // 2 + 1,)),), inputs={"img": ("uint8", 2)}, params={"gain": "float32"})
    (found,) = run(g, {"img": IMAGE}, {"gain": 1.1})
    np.testing.assert_array_equal(found, IMAGE[:3, 0] * np.float32(1.1))


def test_reads_of_strided_views() -> None:
    f = stage("f", "y x", load("img", "uint8", Y, X))
    view = np.repeat(IMAGE, 2, axis=1).T[::-2]
    np.testing.assert_array_equal(run(over_image(f, out="f"), {"img": view})[0], view)


def test_float_sums_run_in_order() -> None:
    data = (RNG.standard_normal(1000) * 10.0 ** RNG.integers(-6, 6, 1000)).astype(np.float32)
    add = update((), load("s", "float32") + load("img", "float32", R), over=(("r.0", 0, 1000),))
    s = stage("s", "", const(0, "float32"), updates=(add,))
    (found,) = evaluate(graph(s, out=(("s", ()),), inputs={"img": ("float32", 1)}), {"img": data}, {})
    expected = np.float32(0)
    for v in data:
        expected = expected + v
    assert found == expected
    assert expected != data.sum(dtype=np.float32)


@pytest.mark.parametrize("t", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("kind", ["add", "mul", "min", "max"])
def test_reductions_over_a_small_domain(t: str, kind: str) -> None:
    value = cast(t, load("img", "uint8", clamp(Y + R, 0, HEIGHT - 1), X)) * const(1.25, t)
    combine = update((Y, X), op(kind, load("s", t, Y, X), value), over=(("r.0", -1, 3),))
    assert run(over_image(stage("s", "y x", const(1, t), updates=(combine,)), out="s"), {"img": IMAGE})


def test_histogram() -> None:
    r = [Var(INT32, 1, "r.0"), Var(INT32, 1, "r.1")]
    bin_ = load("img", "uint8", *r)
    count = update((bin_,), load("h", "int32", bin_) + 1, over=(("r.0", 0, HEIGHT), ("r.1", 0, WIDTH)))
    h = stage("h", "i", const(0, "int32"), updates=(count,))
    (found,) = run(graph(h, out=(("h", (200,)),), inputs={"img": ("uint8", 2)}), {"img": IMAGE})
    np.testing.assert_array_equal(found, np.bincount(IMAGE.ravel(), minlength=256)[:200])


def test_conditions_choose_the_points_of_an_update() -> None:
    condition = (load("img", "uint8", Y, R) > 99) & (R <= Y)
    bounded = op("within", cast("int32", load("img", "uint8", Y, R)), const(100, "int32"), const(255, "int32"))
    add = update((Y,), load("s", "int32", Y) + bounded, over=(("r.0", 0, WIDTH),), where=condition)
    g = graph(stage("s", "y", const(0, "int32"), updates=(add,)), out=(("s", (5,)),), inputs={"img": ("uint8", 2)})
    (found,) = run(g, {"img": IMAGE})
    kept = np.where((IMAGE > 99) & (np.arange(7) <= np.arange(5)[:, None]), IMAGE, 0)
    np.testing.assert_array_equal(found, kept.sum(axis=1))


@pytest.mark.parametrize("asked", [1, 3, 9])
def test_scans_forward_and_backward(asked: int) -> None:
    forward = update((R,), load("f", "int32", R - 1) * 2 + load("f", "int32", R), over=(("r.0", 1, 8),))
    place = 7 - R
    backward = update((place,), load("f", "int32", place + 1) + load("f", "int32", place), over=(("r.0", 0, 8),))
    f = stage("f", "x", X + 1, updates=(forward, backward))
    assert run(graph(f, out=(("f", (asked,)),)))


def test_scan_along_one_axis_of_two() -> None:
    fed = cast("float32", load("img", "uint8", R, X)) * 0.25 + load("f", "float32", R - 1, X) * 0.75
    f = stage("f", "y x", const(0, "float32"), updates=(update((R, X), fed, over=(("r.0", 1, HEIGHT - 1),)),))
    assert run(over_image(f, out="f"), {"img": IMAGE})


def test_several_updates_at_constant_places() -> None:
    double = update((Y, X), load("f", "int32", Y, X) * 2)
    column = update((Y, 3), load("f", "int32", Y, 2) - 1)
    row = update((0, X), load("f", "int32", 4, X))
    f = stage("f", "y x", Y * 10 + X, updates=(double, column, row))
    found = run(graph(f, out=(("f", (3, 4)),)))[0]
    assert found.tolist() == [[80, 82, 84, 83], [20, 22, 24, 23], [40, 42, 44, 43]]


def test_values_of_one_update_are_computed_before_any_is_written() -> None:
    swap = update((X,), load("f.1", "int32", X), load("f.0", "int32", X))
    g = graph(stage("f", "x", X, X * 10, updates=(swap,)), out=(("f", (3,)),))
    assert [a.tolist() for a in run(g)] == [[0, 10, 20], [0, 1, 2]]


def test_argmin_takes_the_first() -> None:
    value = cast("int32", load("img", "uint8", Y, R)) // 64
    better = value < load("f.1", "int32", Y)
    pick = update(
        (Y,),
        select(better, R, load("f.0", "int32", Y)),
        select(better, value, load("f.1", "int32", Y)),
        over=(("r.0", 0, WIDTH),),
    )
    f = stage("f", "y", const(0, "int32"), const(99, "int32"), updates=(pick,))
    found = run(graph(f, out=(("f", (5,)),), inputs={"img": ("uint8", 2)}), {"img": IMAGE})
    np.testing.assert_array_equal(found[0], (IMAGE // 64).argmin(axis=1))


def test_bfloat16_arrays_are_bits_at_the_boundary() -> None:
    f = stage("f", "x", load("img", "bfloat16", X) + const(1, BFLOAT16))
    g = graph(f, out=(("f", (3,)),), inputs={"img": ("bfloat16", 1)})
    (found,) = run(g, {"img": np.uint16([0x3F80, 0x4380, 0xBF80])})  # 1, 256, -1
    assert found.tolist() == [0x4000, 0x4380, 0x0000]


def test_empty_domains_outputs_and_inputs() -> None:
    add = update((X,), load("s", "int32", X) + load("img", "int32", R), over=(("r.0", 0, HEIGHT),))
    s = stage("s", "x", X, updates=(add,))
    t = stage("t", "x", load("s", "int32", X) + 1)
    g = graph(s, t, out=(("t", (3,)), ("s", (0,))), inputs={"img": ("int32", 1)})
    found = run(g, {"img": np.zeros(0, np.int32)})
    assert [a.tolist() for a in found] == [[1, 2, 3], []]


def test_what_has_no_points_reads_nothing_and_breaks_no_promise() -> None:
    wrapped = op("within", Y, const(0, INT32), HEIGHT - 1)
    b = stage("b", "y x", load("img", "uint8", wrapped, X))
    f = stage("f", "y x", load("b", "uint8", 3, X) + load("b", "uint8", Y, 2))
    g = graph(b, f, out=(("f", (HEIGHT, 4)),), inputs={"img": ("uint8", 2)})
    assert run(g, {"img": np.zeros((0, 9), np.uint8)})[0].shape == (0, 4)


def test_an_output_without_points_asks_for_no_point_of_what_others_share_with_it() -> None:
    shared = stage("shared", "y x", X * 3)
    f = stage("f", "y x", load("shared", "int32", 7, Y))
    g = graph(shared, f, out=(("f", (0, 2)), ("shared", (3, 2))))
    found = run(g)
    assert [a.shape for a in found] == [(0, 2), (3, 2)]


def test_updates_of_a_stage_without_points_read_nothing() -> None:
    below = stage("below", "y x", X * 3)
    scan = update((Y, R), load("f", "int32", Y, R - 1) + load("below", "int32", 40, R), over=(("r.0", 1, 3),))
    f = stage("f", "y x", load("below", "int32", X + 1, X + 1), updates=(scan,))
    g = graph(below, f, out=(("f", (7, 0)), ("below", (1, 1))))
    assert [a.shape for a in run(g)] == [(7, 0), (1, 1)]


def test_unselected_reads_of_itself_outside_a_domain_are_harmless() -> None:
    ahead = update((R,), select(R < 3, load("f", "int32", R + 1), 0), over=(("r.0", 0, 4),))
    f = stage("f", "x", X * 2, updates=(ahead,), domain=((0, 4),))
    assert run(graph(f, out=(("f", (4,)),)))[0].tolist() == [2, 4, 6, 0]


def test_wide_types_stay_exact() -> None:
    f = stage("f", "x", load("img", "uint64", X) * const(3, "uint64"), cast("float64", load("img", "uint64", X)))
    g = graph(f, out=(("f", (2,)),), inputs={"img": ("uint64", 1)})
    assert run(g, {"img": np.uint64([2**64 - 1, 2**63 + 12345])})


def promised(low: int, high: int) -> Graph:
    e = op("within", load("img", "uint8", X), const(low, UINT8), const(high, UINT8))
    f = stage("f", "x", load("lut", "int64", e))
    return graph(f, out=(("f", (3,)),), inputs={"img": ("uint8", 1), "lut": ("int64", 1)})


def test_a_kept_promise_changes_nothing() -> None:
    inputs = {"img": np.uint8([4, 0, 9]), "lut": np.arange(10)}
    assert run(promised(0, 9), inputs)[0].tolist() == [4, 0, 9]


def test_a_broken_promise_is_the_users_mistake() -> None:
    inputs = {"img": np.uint8([4, 0, 9]), "lut": np.arange(10)}
    with pytest.raises(UserError, match=r"picture.py:7: f: within\(img\[x\], 0, 8\) promised .* not: 9; widen"):
        evaluate(promised(0, 8), inputs, {})


def test_an_unbounded_index_is_refused() -> None:
    wild = stage("g", "x", load("f", "int32", load("img", "int64", X)))
    g = graph(stage("f", "x", X), wild, out=(("g", (2,)),), inputs={"img": ("int64", 1)})
    with pytest.raises(UserError, match=r"the reads of f span .* pixels; bound the index with pt.clamp or pt.within"):
        evaluate(g, {"img": np.int64([0, 2**40])}, {})


def test_a_stage_that_reads_itself_through_itself_is_refused() -> None:
    chase = update((X,), load("f", "int32", load("f", "int32", X)))
    with pytest.raises(UserError, match="f reads itself at a place that depends on its own values"):
        evaluate(graph(stage("f", "x", X, updates=(chase,)), out=(("f", (2,)),)), {}, {})


def test_an_update_reads_others_where_its_own_values_say() -> None:
    look = update((X,), load("lut", "int32", op("and", load("f", "int32", X), const(3, "int32"))))
    lut, f = stage("lut", "x", X * X), stage("f", "x", X + 1, updates=(look,))
    assert run(graph(lut, f, out=(("f", (4,)),)))[0].tolist() == [1, 4, 9, 0]


def test_reads_of_itself_without_end_are_refused() -> None:
    endless = update((X,), load("f", "int32", X + 1))
    with pytest.raises(UserError, match="the reads of f by its own updates have no end"):
        evaluate(graph(stage("f", "x", X, updates=(endless,)), out=(("f", (2,)),)), {}, {})


@pytest.mark.parametrize(
    ("inputs", "params", "message"),
    [
        ({}, {"k": 1}, "input img is missing"),
        ({"img": np.zeros((2, 2), np.uint8)}, {"k": 1}, "input img is 2-dimensional uint8, but 1 dimensions of uint8"),
        ({"img": np.zeros(2, np.int8)}, {"k": 1}, "input img is 1-dimensional int8"),
        ({"img": np.zeros(2, np.uint8)}, {}, "param k is missing"),
    ],
)
def test_arguments_must_fit(inputs: dict[str, np.ndarray], params: dict[str, Any], message: str) -> None:
    f = stage("f", "x", cast("int64", load("img", "uint8", X)) + Var(INT64, 1, "k"))
    g = graph(f, out=(("f", (expr(2),)),), inputs={"img": ("uint8", 1)}, params={"k": "int64"})
    with pytest.raises(UserError, match=message):
        evaluate(g, inputs, params)
