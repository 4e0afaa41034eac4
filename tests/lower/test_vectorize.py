"""Reads of x // 2 are dense loads, wherever vectors begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Load, Op, Ramp
from pantile.expr.visit import walk as walk_expr
from tests.lower.lowered import all_expressions, lowered

X = pt.Var("x")
PLACES: dict[str, Any] = {
    "up": lambda x: [x // 2, (x + 1) // 2],
    "bilinear": lambda x: [x // 2, x // 2 - 1 + 2 * (x % 2)],
    "shifted": lambda x: [(x + 3) // 2, (x - 1) // 2],
    "fourth": lambda x: [x // 2 // 2, (x // 2 + 1) // 2],
}


def up(which: str, lanes: int = 8, offset: Any = 0) -> pt.Pipeline:
    """Pixels between those of a picture, in vectors of which the last begins anywhere."""
    img, out = pt.Input("img", "float32", ndim=1), pt.Func("out")
    src = pt.edge(img)
    total: Any = 0
    for k, place in enumerate(PLACES[which](X + offset)):
        total = total + (k + 1) * src[place]
    out[X] = total
    return pt.Pipeline(out, shape=(2 * img.shape[0] - 1,), schedule=pt.Schedule(pt.on("out").vectorize("x", lanes)))


@pytest.mark.parametrize("which", ["up", "bilinear", "shifted"])
def test_no_lane_divides(which: str) -> None:
    body = lowered(up(which))["vectorize"]
    divided = [e for e in all_expressions(body) if isinstance(e, Op) and e.op in ("floordiv", "mod") and e.lanes > 1]
    assert not divided
    loads = [e for e in all_expressions(body) if isinstance(e, Load) and e.lanes > 1]
    assert any(isinstance(e.indices[0], Ramp) and e.lanes == 4 for e in loads)


def test_what_parity_chooses_is_not_computed_twice() -> None:
    """The last block begins anywhere: its choices stay those of lanes."""
    img, out = pt.Input("img", "float32", ndim=1), pt.Func("out")
    out[X] = pt.select(X % 2 == 0, img[X // 2], img[X // 2] * 3 + 1)
    schedule = pt.Schedule(pt.on("out").vectorize("x", 8))
    body = lowered(pt.Pipeline(out, shape=(img.shape[0],), schedule=schedule))["vectorize"]
    chosen = [e for e in all_expressions(body) if isinstance(e, Op) and e.op == "select" and e.lanes > 1]
    assert all(e.lanes == 8 for e in chosen)
    assert not [e for s in chosen for e in walk_expr(s) if isinstance(e, Load) and e.lanes == 8]


@pytest.mark.parametrize("which", PLACES)
@pytest.mark.parametrize("lanes", [4, 6, 8, 16])
@pytest.mark.parametrize("offset", [0, 1, -3])
def test_results(which: str, lanes: int, offset: int) -> None:
    p = up(which, lanes, offset)
    for n in (1, 2, 9, 12, 33):
        img = np.random.default_rng(n).integers(0, 99, n).astype("float32")
        np.testing.assert_array_equal(p(img=img), p.reference(img=img))


def test_a_param_may_move_it() -> None:
    img, out, by = pt.Input("img", "float32", ndim=1), pt.Func("out"), pt.Param("by", "int32")
    src = pt.edge(img)
    out[X] = src[(X + by) // 2] + 2 * src[(X + by) // 2 + (X + by) % 2]
    p = pt.Pipeline(out, shape=img.shape, schedule=pt.Schedule(pt.on("out").vectorize("x", 8)))
    img_ = np.arange(40, dtype="float32")
    for by_ in (-5, 0, 3, 8):
        np.testing.assert_array_equal(p(img=img_, by=by_), p.reference(img=img_, by=by_))
