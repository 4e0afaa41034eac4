"""What the iteration before has stored is compared last, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr, Load, Op
from pantile.expr.visit import walk_values
from pantile.ir.nodes import Stmt, Store
from pantile.ir.visit import walk

from .lowered import lowered

X = pt.Var("x")
I32, F32 = "int32", "float32"


def swept(dtype: str, combine: str, extra: float, forwards: bool = True, strict: bool = False) -> pt.Pipeline:
    """Each element is the least, or largest, of itself, a neighbour of another array, and the one before it."""
    img, beside = pt.Input("img", dtype, ndim=1), pt.Input("beside", dtype, ndim=1)
    extreme, out = getattr(pt, combine), pt.Func("out")
    r = pt.RDom((1, img.shape[0] - 1), names="x")
    place, before = (r.x, r.x - 1) if forwards else (img.shape[0] - 1 - r.x, img.shape[0] - r.x)
    number = extra if dtype == F32 else int(extra)
    out[X] = img[X]
    out[place] = extreme(extreme(beside[place], out[before]) + number, out[place])
    return pt.Pipeline(out, shape=img.shape, strict=strict)


def update(p: pt.Pipeline, step: str) -> Expr:
    """What the update stores, as a pass has it."""
    (value,) = (s.value for s in _stores(lowered(p)[step]) if "out" in {e.buffer for e in _loads(s.value)})
    return value


def _stores(s: Stmt) -> list[Store]:
    return [inner for inner in walk(s) if isinstance(inner, Store)]


def _loads(e: Expr) -> list[Load]:
    return [node for node in walk_values(e) if isinstance(node, Load)]


@pytest.mark.parametrize("combine", ["minimum", "maximum"])
@pytest.mark.parametrize("forwards", [True, False])
def test_only_an_addition_and_a_comparison_wait(combine: str, forwards: bool) -> None:
    p = swept(F32, combine, 1.5, forwards)
    value = update(p, "carry")
    assert isinstance(value, Op) and isinstance(value.args[1], Op)
    assert (value.op, value.args[1].op) == (combine[:3], "add")
    assert [e.buffer for e in _loads(value.args[1])] == ["out"]


def test_integers_are_added_after_they_are_compared() -> None:
    """The sum of the smaller one might fit where that of the larger one wraps."""
    value = update(swept(I32, "minimum", 7), "carry")
    assert sum(isinstance(e, Op) and e.op == "add" and e.dtype.name == I32 for e in walk_values(value)) == 1


@pytest.mark.parametrize("dtype", [F32, I32])
@pytest.mark.parametrize("combine", ["minimum", "maximum"])
@pytest.mark.parametrize("extra", [1.5, -3e38, float("inf"), float("-inf")])
def test_results_are_the_same_to_the_last_bit(dtype: str, combine: str, extra: float) -> None:
    if dtype == I32 and not np.isfinite(extra):
        pytest.skip("no integer")
    extra = max(extra, -(2.0**31)) if dtype == I32 else extra
    rng = np.random.default_rng(1)
    for forwards in (True, False):
        img, beside = _odd_numbers(dtype, rng), _odd_numbers(dtype, rng)
        p = swept(dtype, combine, extra, forwards, strict=True)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(p(img=img, beside=beside), p.reference(img=img, beside=beside))


def _odd_numbers(dtype: str, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Ordinary numbers, and among them those that comparing and adding treat in their own ways."""
    usual = rng.integers(-50, 50, 301).astype(dtype)
    odd = [0.0, -0.0, np.inf, -np.inf, 3e38, -3e38, 1e-45] if dtype == F32 else [2**31 - 1, -(2**31), 0]
    usual[rng.integers(0, 301, 60)] = rng.choice(np.array(odd, dtype), 60)
    return usual
