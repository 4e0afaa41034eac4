"""Places that data decides: computed in 32 bits, and the same places."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

import pantile as pt
from pantile.expr.build import select
from pantile.expr.linear import Facts
from pantile.expr.nodes import Cast, Expr, Op, const, op, var
from pantile.expr.types import FLOAT32, INDEX
from pantile.expr.visit import walk
from pantile.ir.nodes import For, Let, Stmt, Store
from pantile.lower.narrow_indices import _IndexNarrower, narrow_indices
from pantile.target.kinds import Kind

from .lowered import all_expressions, lowered

X = pt.Var("x")
ODD = [0, 1, -1, 5, 99, 100, 101, -100, 2**31 - 1, 2**31 - 2, -(2**31), -(2**31) + 1]
WIDE = ("min", "max")


def looked_up(shift: int, low: int, dtype: str = "int32") -> pt.Pipeline:
    """What lies beside the place that data names, within an array."""
    table, places = pt.Input("table", "int32", ndim=1), pt.Input("places", dtype, ndim=1)
    out = pt.Func("out")
    place = pt.cast("int64", places[X]) + shift
    out[X] = table[pt.clamp(place, low, table.shape[0] - 1)]
    return pt.Pipeline(out, shape=places.shape, schedule=pt.Schedule(pt.on("out").vectorize("x", 4)))


def wide_clamps(s: Stmt) -> int:
    return sum(isinstance(e, Op) and e.op in WIDE and e.dtype is INDEX and e.lanes > 1 for e in all_expressions(s))


@pytest.mark.parametrize("shift", [0, 1, -7, 2**31, -(2**31), 2**40])
@pytest.mark.parametrize("low", [0, 2])
def test_places_are_the_same(shift: int, low: int) -> None:
    p = looked_up(shift, low)
    table, places = np.arange(100, 200, dtype=np.int32), np.array([*ODD, *(-n for n in ODD[:8])], np.int32)
    np.testing.assert_array_equal(p(table=table, places=places), p.reference(table=table, places=places))


@pytest.mark.parametrize("shift", [0, 1, -7])
def test_clamps_have_32_bits(shift: int) -> None:
    passes = lowered(looked_up(shift, 0))
    assert (wide_clamps(passes["simplify"]), wide_clamps(passes["narrow_indices"])) == (2, 0)


def converted(extent: Expr, place: Expr, *shapes: Expr) -> bool:
    """Whether an index in a loop over `extent` elements becomes a float by way of 32 bits."""
    body: Stmt = Store("f", (var("x"),), Cast(FLOAT32, 1, place))
    body = narrow_indices(For("x", const(0, INDEX), extent, Kind.SERIAL, body), Facts({"n": (1, None)}), shapes)
    (found,) = (e for e in all_expressions(body) if isinstance(e, Cast) and e.dtype is FLOAT32)
    return any(isinstance(e, Cast) and e.dtype.name == "int32" for e in walk(found.value))


X_INDEX, N, M = var("x"), var("n"), var("m")


@pytest.mark.parametrize(
    ("extent", "place", "fits"),
    [
        (N, X_INDEX, True),
        (N, X_INDEX + 1, True),  # the last is n - 1
        (N, X_INDEX + 2, False),
        (N, N - X_INDEX, True),
        (N, 2 * N - X_INDEX, False),
        (N, X_INDEX * 1000, False),
        (const(1000, INDEX), X_INDEX * 1000, True),
        (M, X_INDEX, False),  # nothing is known of it
        (N, (X_INDEX * 3) // 2, False),
        (N, (X_INDEX * 3) // 4, True),
    ],
)
def test_coordinates_are_converted_in_32_bits_where_they_certainly_fit(extent: Expr, place: Expr, fits: bool) -> None:
    assert converted(extent, place) == fits


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        (N * 3 // 2, True),
        (N * 3 // 2 + 1, True),
        (N * 3 // 2 - 2, False),  # of which 2**31 may be the last but one
        (N, False),
        (N // 2, False),
        (N * M, False),
        (0 - N, False),
    ],
)
def test_results_have_no_more_than_32_bits_of_rows_either(shape: Expr, fits: bool) -> None:
    assert converted(N * 3 // 2, X_INDEX, shape) == fits


def test_the_last_block_begins_elsewhere_and_is_one_alone() -> None:
    whole = var("piece") < 1
    blocks, start = select(whole, N // 8, const(1, INDEX)), select(whole, const(0, INDEX), N - 8)
    inner: Stmt = Store("f", (var("x"),), Cast(FLOAT32, 1, var("lo") + 7))
    body: Stmt = For("x", const(0, INDEX), blocks, Kind.SERIAL, Let("lo", var("x") * 8 + start, inner))
    body = narrow_indices(
        For("piece", const(0, INDEX), const(2, INDEX), Kind.SERIAL, body), Facts({"n": (8, None)}), ()
    )
    assert any(isinstance(e, Cast) and e.dtype.name == "int32" for e in all_expressions(body))


def test_names_in_terms_of_each_other_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is made of two readings of the one before: a million million of the first."""
    asked = count()
    end = _IndexNarrower.end

    def counted(self: _IndexNarrower, e: Expr, side: int) -> Expr:
        assert next(asked) < 1000
        return end(self, e, side)

    monkeypatch.setattr(_IndexNarrower, "end", counted)
    body: Stmt = Store("f", (X_INDEX,), Cast(FLOAT32, 1, var("n40")))
    for i in reversed(range(40)):
        before = var(f"n{i}")
        body = Let(f"n{i + 1}", op("max", before, op("floordiv", before + 3, const(2, INDEX))), body)
    narrow_indices(For("n0", const(0, INDEX), const(8, INDEX), Kind.SERIAL, body), Facts({}), ())
    assert next(asked) > 40
