"""Windows to rewrite."""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt
from pantile.graph.verify import verify

Y, X = pt.vars("y x")


def windowed(kind: str = "sum", dtype: str = "uint8", sides: tuple[int, int] = (7, 7), **options: Any) -> pt.Pipeline:
    """A reduction of a picture's neighbourhood, its edges repeated."""
    src, r, box = pt.edge(pt.Input("img", dtype, ndim=2)), window(*sides), pt.Func("box")
    box[Y, X] = getattr(pt, kind)(src[Y + r.y, X + r.x], over=r)
    return pt.Pipeline(box, shape=(40, 50), **options)


def window(height: int, width: int) -> pt.RDom:
    return pt.RDom((-(height // 2), height), (-(width // 2), width), names="y x")


def weighted(weights: Any, dtype: str = "float32", **options: Any) -> pt.Pipeline:
    """A window with a table of weights."""
    table = pt.table(weights)
    src = pt.edge(pt.Input("img", dtype, ndim=2))
    r, out = pt.RDom(*((0, n) for n in table.shape), names="y x"), pt.Func("out")
    out[Y, X] = pt.sum(src[Y + r.y - 2, X + r.x - 2] * table[r.y, r.x], over=r)
    return pt.Pipeline(out, shape=(40, 50), **options)


def picture(p: pt.Pipeline, seed: int = 0) -> Any:
    """Any values of the input's type, in floats from 0 to 1."""
    rng, t = np.random.default_rng(seed), p.graph.inputs[0].dtype
    if t.is_float:
        return rng.random((37, 41)).astype(t.numpy)
    return rng.integers(t.min, t.max, (37, 41), t.numpy, endpoint=True)


def stages(p: pt.Pipeline) -> list[str]:
    """What is computed, after a check."""
    verify(p.rewritten)
    return [s.name for s in p.rewritten.stages if not s.name.endswith("_edge")]


def agrees(p: pt.Pipeline, tolerance: float = 0.0) -> bool:
    """Whether code gives what the formulas say."""
    img = picture(p)
    return bool(np.allclose(p(img=img), p.reference(img=img), rtol=tolerance, atol=0))
