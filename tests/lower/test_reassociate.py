"""Sums side by side: what they have in common comes first, and none has other terms than before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr, Load, Op, const, var
from pantile.expr.types import FLOAT32, INDEX
from pantile.expr.visit import key, walk
from pantile.ir.nodes import Block, Stmt, Store
from pantile.ir.visit import children as statements
from pantile.lower.reassociate import reassociate

from .lowered import lowered

Y, X = pt.vars("y x")


def windows(
    combine: str = "sum", dtype: str = "float32", taps: int = 9, rows: int = 4, channels: bool = False
) -> pt.Pipeline:
    """A column of pixels, several rows of them written out."""
    c = pt.Var("c")
    img = pt.Input("img", dtype, shape=(None, None, 3)) if channels else pt.Input("img", dtype, ndim=2)
    place: tuple[pt.Var, ...] = (X, c) if channels else (X,)
    r, out = pt.RDom((0, taps)), pt.Func("out")
    out[(Y, *place)] = getattr(pt, combine)(img[(Y + r[0], *place)], over=r)
    wide = ["x_v", "c"] if channels else ["x_v"]
    chain = pt.on("out").unroll("y", rows).vectorize("x", 4)
    chain = chain.unroll("c").reorder("y", "x", "y_u", *wide) if channels else chain.reorder("y", "x", "y_u", *wide)
    again = chain.update().unroll("r.0").unroll("y", rows).vectorize("x", 4)
    again = again.unroll("c") if channels else again
    again = again.reorder("y", "x", "r.0", "y_u", *wide).compute_with("out", "x")
    shape = (img.shape[0] - taps + 1, img.shape[1], *((3,) if channels else ()))
    return pt.Pipeline(out, shape=shape, schedule=pt.Schedule(again))


def stored(s: Stmt) -> Iterator[Expr]:
    if isinstance(s, Store):
        yield s.value
    for inner in statements(s):
        yield from stored(inner)


def different(s: Stmt, operation: str) -> int:
    """How many operations are left if equal ones are computed once."""
    nodes = (e for value in stored(s) for e in walk(value))
    return len({key(e) for e in nodes if isinstance(e, Op) and e.op == operation and e.dtype.is_float})


@pytest.mark.parametrize("channels", [False, True])
def test_common_terms_are_combined_once(channels: bool) -> None:
    p = windows(channels=channels)
    passes = lowered(p)
    pixels = 3 if channels else 1
    assert different(passes["interleave"], "add") == 36 * pixels
    # 5 additions of six common rows, 3 of rows before them, 2 of rows after, 3 to combine these
    assert different(passes["reassociate"], "add") == 13 * pixels


def test_no_sum_has_other_terms() -> None:
    passes = lowered(windows())

    def terms(s: Stmt) -> Counter[frozenset[bytes]]:
        return Counter(frozenset(key(e) for e in walk(v) if isinstance(e, Load)) for v in stored(s))

    assert terms(passes["interleave"]) == terms(passes["reassociate"])


def test_strict_floats_are_summed_as_written_but_extremes_are_shared() -> None:
    body = lowered(windows())["interleave"]
    assert reassociate(body, strict=True) is body
    body = lowered(windows("max"))["interleave"]
    assert different(reassociate(body, strict=True), "max") < different(body, "max")


def test_short_sums_and_single_rows_are_kept() -> None:
    for p in (windows(taps=5), windows(rows=1)):
        passes = lowered(p)
        assert passes["reassociate"] is passes["interleave"]


def test_different_weights_have_nothing_in_common() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[Y, X] = sum((img[Y + k, X] * (k + 2.5) for k in range(1, 9)), img[Y, X])
    rows = pt.Schedule(pt.on("out").unroll("y", 4).reorder("y", "x", "y_u"))
    passes = lowered(pt.Pipeline(out, shape=(40, 50), schedule=rows))
    assert passes["reassociate"] is passes["interleave"]


@pytest.mark.parametrize("combine", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
@pytest.mark.parametrize("channels", [False, True])
def test_results(combine: str, dtype: str, channels: bool) -> None:
    p = windows(combine, dtype, taps=11, channels=channels)
    shape = (53, 47, 3) if channels else (53, 47)
    data = (np.random.default_rng(0).random(shape) * 255).astype(dtype)
    np.testing.assert_allclose(p(img=data), p.reference(img=data), rtol=1e-5 if dtype == "float32" else 0)


def _window(first: int) -> Expr:
    """Nine elements from one on."""
    total: Expr = Load(FLOAT32, 1, "img", (const(first, INDEX),))
    for k in range(first + 1, first + 9):
        total = total + Load(FLOAT32, 1, "img", (const(k, INDEX),))
    return total


def places(s: Stmt) -> list[str]:
    return [str(i.indices[0]) for i in statements(s) if isinstance(i, Store)]


@pytest.mark.parametrize(
    ("others", "moved"),
    [
        ("1", True),
        ("0", False),
        ("x", False),
        ("f.stride.0", True),
        ("k", False),
        ("f.stride.0 + 1", True),
        ("x*f.stride.0", False),
    ],
)
def test_stores_change_places_only_if_these_are_apart(others: str, moved: bool) -> None:
    """Windows 0 and 1 share; what is stored between them may come after, unless it overwrites or is overwritten."""
    named = {"x": var("x"), "k": var("k"), "f.stride.0": var("f.stride.0"), "f.stride.0 + 1": var("f.stride.0") + 1}
    named["x*f.stride.0"] = var("x") * var("f.stride.0")
    between = named[others] if others in named else const(int(others), INDEX)
    stores = [
        Store("f", (const(0, INDEX),), _window(0)),
        Store("f", (between,), const(1.0, FLOAT32)),
        Store("f", (const(7, INDEX),), _window(1)),
    ]
    after = reassociate(Block(tuple(stores)), strict=False)
    assert (places(after)[1] != str(between)) is moved


def test_blocks_that_overlap_compute_equal_results() -> None:
    """Rows 13 to 15 of 21 are the last ones of a block and the first ones of another, which is moved inwards."""
    rows = (
        pt.on("out")
        .split("y", "yo", "yi", 8)
        .reorder("yo", "yi", "x")
        .block("yo")
        .unroll("yi")
        .thread("x")
        .reorder("yo", "x", "yi")
        .update()
        .split("y", "yo", "yi", 8)
        .reorder("yo", "x", "r.0", "yi")
        .unroll("r.0")
        .unroll("yi")
        .block("yo")
        .thread("x")
        .compute_with("out", "x")
    )
    p = windows(taps=9).with_options(target="cuda-sim").with_schedule(pt.Schedule(rows))
    img = np.random.default_rng(0).random((29, 32), np.float32) - np.float32(0.5)
    np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5, atol=1e-6)
