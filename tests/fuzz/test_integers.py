"""Integers of all types at the ends of their ranges, compiled: as pixels, and as indices of arrays that end at
inaccessible memory.

Each expression of data, params and coordinates is evaluated as a pixel, used as an index of an input and of a stored
stage, under several schedules, and compared with the reference.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pantile as pt
from pantile.expr.nodes import Expr
from pantile.expr.types import INT32, DType
from tests.expr.integers import TYPES, integers, some_extreme

from ..analysis.indices import cases
from .guarded import guarded
from .isolate import isolated, isolated_together

Y, X = pt.vars("y x")
WIDTH = 37
ON = "pixel", "found", "kept"


def schedules(p: pt.Pipeline) -> list[pt.Pipeline]:
    """The pipeline with the default schedule, with plain loops, and with vectors in blocks with tails."""
    blocks = [pt.on(n).split("x", "xo", "xi", 8).vectorize("xi") for n in ON]
    plain = pt.Schedule(*(pt.on(n) for n in ON), pt.on("table").compute_root())
    return [p, p.with_schedule(plain), p.with_schedule(pt.Schedule(*blocks, pt.on("table").compute_root()))]


def pipeline(e: Expr) -> pt.Pipeline:
    lut = pt.Input("lut", "int32", 1)
    pixel, found, kept, table = (pt.Func(n) for n in (*ON, "table"))
    pixel[Y, X] = e
    low, high = max(-3, e.dtype.min), 5
    table[X] = X * 7 - 3
    found[Y, X] = lut[pt.clamp(e, pt.cast(e.dtype, 0), pt.cast(e.dtype, high))]
    kept[Y, X] = table[pt.clamp(e, pt.cast(e.dtype, low), pt.cast(e.dtype, high))]
    return pt.Pipeline([pixel, found, kept], shape=[(3, WIDTH)] * 3)


def arguments(p: pt.Pipeline, seed: int) -> dict[str, Any]:
    rng = Random(seed)
    given: dict[str, Any] = {}
    for i in p.graph.inputs:
        numbers = [some_extreme(rng, i.dtype) for _ in range(WIDTH)] if i.name != "lut" else list(range(6))
        given[i.name] = guarded(np.array(numbers, i.dtype.numpy), at_end=bool(seed % 2))
    return given | {q.name: some_extreme(rng, q.dtype) for q in p.graph.params}


def assert_agrees(p: pt.Pipeline, *seeds: int) -> None:
    """Check that every call that is not rejected agrees with the reference."""
    ways = schedules(p)
    for seed in seeds:
        _assert_agrees(p, ways, seed)


def _assert_agrees(p: pt.Pipeline, ways: list[pt.Pipeline], seed: int) -> None:
    given = arguments(p, seed)
    try:
        expected = p.reference(**given)
        results_by_way = [(scheduled, scheduled(**given)) for scheduled in ways]
    except pt.UserError as refused:
        if "may leave 64 bits" in str(refused):
            return
        raise
    for scheduled, results in results_by_way:
        for name, a, b in zip(ON, results, expected, strict=True):
            np.testing.assert_array_equal(a, b, f"{name} of {p} under {scheduled.schedule} for {given}")


def leaf(draw: st.DrawFn, t: DType) -> Expr | None:
    if t is INT32 and draw(st.booleans()):
        return draw(st.sampled_from([Y, X]))
    return PARAMS[t] if draw(st.booleans()) else ARRAYS[t][X]


PARAMS = {t: pt.Param(f"p_{t}", t) for t in TYPES}
ARRAYS = {t: pt.Input(f"d_{t}", t, 1) for t in TYPES}


def test_random_arithmetic() -> None:
    @cases(20)
    @given(st.sampled_from(TYPES).flatmap(lambda t: integers(leaf, t, 3)), st.integers(0, 1 << 20))
    def each(e: Expr, seed: int) -> None:
        isolated(lambda: assert_agrees(pipeline(e), seed))

    isolated_together(each)


A, U8, U32, B = (pt.Input(n, t, 1) for n, t in (("a", "int64"), ("u8", "uint8"), ("u32", "uint32"), ("b", "int32")))
K, N, M, N64 = (pt.Param(n, t) for n, t in (("k", "uint32"), ("n", "int32"), ("m", "int32"), ("n64", "int64")))
WIDE = pt.cast("int64", U32[X])
EXAMPLES: dict[str, Expr] = {
    "doubled and halved": A[X] * 2 // 2,
    "linear congruential": A[X] * 6364136223846793005 + 1442695040888963407,
    "a multiple of it": (A[X] * 6364136223846793005 + 1442695040888963407) % 1000,
    "scaled pixel": pt.maximum(pt.cast("int64", U8[X]) * 2**56, 0),
    "larger of two": pt.maximum(A[X], A[X] + 2),
    "the same difference": (A[X] + 5) - A[X] * 3 + A[X] * 2,
    "compared sum": pt.select(A[X] + 1 > A[X], A[X], 7),
    "square": WIDE * WIDE,
    "wrapped param": pt.cast("int32", K),
    "param and one": N + 1,
    "negated param": -N,
    "difference of params": N - M,
    "product of params": N * M,
    "sum of squares": N * N + M * M,
    "absolute param": abs(N),
    "wide param and one": N64 + 1,
    "shifted by a coordinate": B[X] << Y,
    "shifted far": B[X] << (Y * 40) >> (Y * 33),
    "data and coordinate": B[X] + Y,
    "condition on data and coordinate": pt.select(B[X] + Y > 0, 1, Y),
    "condition on coordinates": pt.select(X * 65536 * 65536 > 0, X * 65536, 4),
    "condition on params": pt.select(N + 1 > 0, N - 1, M),
    "product with a coordinate": N64 * 3 + X,
    "half of the smallest": B[X] // -1,
    "param or the largest": pt.select(B[X] > 0, pt.cast("uint64", 2**64 - 1), pt.cast("uint64", K)),
    "quotient by a coordinate": A[X] // (X + M),
    "quotient of the largest": (2**63 - 1) // A[X] + N64,
    "by zero": B[X] // (B[X] & 1) + B[X] % (B[X] & 1),
    "narrow": pt.cast("int8", U8[X]) * pt.cast("int8", U8[X]),
    "difference in bytes": U8[X] - 200,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    isolated(lambda: assert_agrees(pipeline(EXAMPLES[name]), *range(4)))


ENDS = (-(2**31), -1, 0, 1, 2**31 - 1)
OF_PARAMS = {
    "plus one": N + 1, "minus one": N - 1, "negated": -N, "difference": N - M, "product": N * M, "cube": N * M * N,
    "squares": N * N + M * M, "absolute": abs(N), "shifted": N << M, "quotient": N // M, "remainder": N % M,
    "chosen": pt.select(N + 1 > M, N - M, M), "unsigned": pt.cast("int32", pt.cast("uint32", N) + 1),
    "byte": pt.cast("int32", pt.cast("uint8", N) + 1), "bits": N ^ M,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_PARAMS)
def test_params_in_indices_at_the_ends_of_their_type(name: str) -> None:
    """A stage is computed exactly where it is read, whether it is stored or not."""
    table, row, used = pt.Func("table"), pt.Func("row"), pt.Func("used")
    table[Y, X] = Y * 100 + X
    row[X] = table[pt.clamp(OF_PARAMS[name], -2, 3), X]
    used[X] = row[X] + M
    p = pt.Pipeline(used, shape=(20,))
    for scheduled in (p, p.with_schedule(pt.Schedule(pt.on("table").compute_root(), pt.on("row").compute_root()))):
        for n in ENDS:
            for m in ENDS:
                given = {"n": n, "m": m}
                np.testing.assert_array_equal(scheduled(**given), p.reference(**given), str(given))


def test_a_value_keeps_its_type_where_it_is_inlined_into_an_index() -> None:
    lut, far, found = pt.Input("lut", "int32", 1), pt.Func("far"), pt.Func("found")
    far[X] = X + 2147483640
    found[X] = lut[pt.clamp(far[X], 0, 9)] + pt.select(far[X] > 0, 100, 0)
    p = pt.Pipeline(found, shape=(20,))
    np.testing.assert_array_equal(p(lut=np.arange(10, dtype=np.int32)), [109] * 8 + [0] * 12)


def test_index_arithmetic_that_would_overflow_is_refused() -> None:
    lut, found = pt.Input("lut", "int32", 1), pt.Func("found")
    found[X] = lut[pt.clamp((X + N64) * 4, 0, 9)]
    p = pt.Pipeline(found, shape=(20,))
    table = np.arange(10, dtype=np.int32)
    for n in (-3, 2**60, -(2**60)):
        np.testing.assert_array_equal(p(lut=table, n64=n), p.reference(lut=table, n64=n))
    for n in (2**63 - 1, 2**61, -(2**61) - 1):
        with pytest.raises(pt.UserError, match=r"computes the index .*, which may leave 64 bits in this call"):
            p(lut=table, n64=n)


def test_places_to_write_are_bounded_by_what_they_really_are() -> None:
    """The square of a 32-bit number may be negative in 64 bits."""
    counts, found = pt.Func("counts"), pt.Func("found")
    r = pt.RDom((0, U32.shape[0]))
    square = pt.cast("int64", U32[r[0]]) * pt.cast("int64", U32[r[0]])
    data = np.array([0, 3, 9, 10, 2**16, 2**32 - 1, 2**31, 3037000500], np.uint32)
    counts[X] = 0
    counts[pt.clamp(square, 0, 99)] += 1
    found[X] = 0
    found[pt.minimum(square, 99)] += 1
    p = pt.Pipeline(counts, shape=(100,))
    isolated(lambda: np.testing.assert_array_equal(p(u32=guarded(data, at_end=True)), p.reference(u32=data)))
    with pytest.raises(pt.UserError, match="may write outside of it"):
        pt.Pipeline(found, shape=(100,))(u32=data)


def test_what_might_overflow_is_checked_at_each_call() -> None:
    f = pt.Func("f")
    f[X] = pt.cast("int32", (X + N64) * 4 > 20)
    p = pt.Pipeline(f, shape=(20,))
    np.testing.assert_array_equal(p(n64=0), np.arange(20) > 5)
    with pytest.raises(pt.UserError, match="may leave 64 bits"):
        p(n64=2**62)


def test_coordinates_that_data_decides_do_not_overflow() -> None:
    """The coordinates of an inlined stage may have any size; index arithmetic on them is rejected unless it is
    bounded."""
    a, lut = pt.Input("a", "int64", 1), pt.Input("lut", "int32", 1)
    twice, near, found = pt.Func("twice"), pt.Func("near"), pt.Func("found")
    twice[X] = lut[pt.clamp(X * 2, 0, 9)]
    near[X] = lut[pt.clamp(X, 0, 9)]
    data, table = np.array([0, 3, 2**62, -(2**63), 2**63 - 1], np.int64), np.arange(10, dtype=np.int32)
    found[X] = near[a[X]]
    np.testing.assert_array_equal(pt.Pipeline(found, shape=(5,))(a=data, lut=table), [0, 3, 9, 0, 9])
    other = pt.Func("other")
    other[X] = twice[a[X]]
    with pytest.raises(pt.UserError, match="may leave 64 bits"):
        pt.Pipeline(other, shape=(5,))(a=data, lut=table)
