"""What simplifying costs: proofs, counted; and what is left of a difference."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.expr.build import expr, maximum, minimum
from pantile.expr.linear import Facts, Linear
from pantile.expr.nodes import Expr, const, var
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Block, For, If, Let, Stmt, Store
from pantile.ir.visit import walk
from pantile.lower.simplify import simplify_program
from pantile.target.kinds import Kind

W, X, Y = var("w"), var("x"), var("y")


def row(low: int) -> Stmt:
    """A version of a loop, made anew, as passes do."""
    index: Expr = X
    for k in range(4):
        index = minimum(maximum(index - k, var("low") * k), W - k)
    return For("x", const(low, INDEX), W, Kind.SERIAL, Store("f", (index,), const(1, INT32)))


def proofs(s: Stmt, monkeypatch: pytest.MonkeyPatch) -> int:
    count = 0
    bound = Facts.bound

    def counted(self: Facts, form: Linear, side: int) -> int | None:
        nonlocal count
        count += 1
        return bound(self, form, side)

    with monkeypatch.context() as patched:
        patched.setattr(Facts, "bound", counted)
        simplify_program(s, Facts())
    return count


def test_versions_of_the_same_code_take_the_proofs_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = proofs(row(0), monkeypatch)
    many = proofs(Block(tuple(If(expr(k < Y), row(0), row(0)) for k in range(20))), monkeypatch)
    assert one > 10
    assert many < one + 40 * 4  # the bounds of each loop, and each condition


def test_what_is_known_of_a_variable_in_one_version_does_not_hold_in_another() -> None:
    def version(low: int) -> Stmt:
        return For("x", const(low, INDEX), const(8, INDEX), Kind.SERIAL, Store("f", (maximum(X, 4),), const(1, INT32)))

    found = simplify_program(Block((version(4), version(0), version(4))), Facts())
    assert isinstance(found, Block)
    indices = [s.body.indices[0] for s in found.stmts if isinstance(s, For) and isinstance(s.body, Store)]
    assert [str(i) for i in indices] == [str(X), str(maximum(X, 4)), str(X)]


def test_what_is_written_for_a_name_may_be_something_else_in_each_version() -> None:
    """Versions share their statements: `b` is `a` in all of them, which is even in one of them only."""
    a, b = var("a"), var("b")
    inside = Let("b", a, Store("f", (b % 2,), const(1, INT32)))
    found = simplify_program(Block((Let("a", 4 * X, inside), Let("a", minimum(4 * X, W), inside))), Facts())
    assert [str(s.indices[0]) for s in walk(found) if isinstance(s, Store)] == ["0", str(a % 2)]


@pytest.mark.parametrize(
    ("source", "to", "zero"),
    [
        ("uint8", "float32", True),
        ("int64", "float64", True),
        ("uint32", "float16", False),  # may be infinite
        ("float64", "float32", False),
    ],
)
def test_a_number_less_itself_is_nothing(source: str, to: str, zero: bool) -> None:
    x, img, out = pt.Var("x"), pt.Input("img", source, ndim=1), pt.Func("out")
    out[x] = pt.cast(to, img[x]) - pt.cast(to, img[x])
    p = pt.Pipeline(out, shape=img.shape)
    assert ("img[" not in p.loops()) == zero
    odd = [0, 1, 2**32 - 1] if source == "uint32" else [0.0, np.inf, np.nan] if source == "float64" else [0, 1, 255]
    pixels = np.array(odd * 9, source)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(p(img=pixels), p.reference(img=pixels))


def test_limits_that_are_no_indices_decide_nothing() -> None:
    x, f = pt.Var("x"), pt.Func("f")
    bit = pt.cast("int64", pt.clamp(x, 0, 1))
    f[x] = pt.select(bit * -(2**62) == bit, 1, bit)
    p = pt.Pipeline(f, shape=(11,))
    np.testing.assert_array_equal(p(), p.reference())
