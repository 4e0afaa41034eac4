"""Matrix product of float32 matrices, and of float16 matrices accumulated in float32, as `blocked` tells."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import pantile as pt

from .app import App
from .blocked import product
from .data import floats
from .products import chain


def build(dtype: str = "float32") -> pt.Pipeline:
    """a[i, k], b[k, j] -> out[i, j], in float32."""
    i, j = pt.vars("i j")
    a, b = pt.Input("a", dtype, ndim=2), pt.Input("b", dtype, ndim=2)
    padded = pt.constant(b, 0, axes=(1,))
    ab = product(
        "ab",
        lambda i, k: pt.cast("float32", a[i, k]),
        lambda k, j: pt.cast("float32", padded[k, j]),
        a.shape[1],
    )
    out = pt.Func("out")
    out[i, j] = ab[i, j]
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), name="matmul")


def _halves(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return floats(name, shape, rng).astype(np.float16)


EXPERT = chain(ab="out")
_SIZES = {
    "small": {"a": (200, 170), "b": (170, 150)},
    "paper": {"a": (2048, 2048), "b": (2048, 2048)},
}
APPS = (
    App("matmul", "matrix product, float32", build, EXPERT, _SIZES, floats),
    App(
        "matmul_half",
        "matrix product, float16 into float32",
        partial(build, "float16"),
        EXPERT,
        _SIZES,
        _halves,
    ),
)
