"""Matrix product of float32 matrices, and of float16 matrices accumulated in float32.

The formula is plain; panels are its schedule's (`packed`).
"""

from __future__ import annotations

from functools import partial

import numpy as np

import pantile as pt

from . import tensor_cores
from .app import App, Array, Shape, floats
from .packed import Factors, multiplied
from .tiled import product


def build(dtype: str = "float32") -> pt.Pipeline:
    """a[i, k], b[k, j] -> out[i, j], in float32."""
    i, j = pt.vars("i j")
    a, b = pt.Input("a", dtype, ndim=2), pt.Input("b", dtype, ndim=2)
    r, out = pt.RDom((0, a.shape[1]), name="r", names="k"), pt.Func("out")
    out[i, j] = pt.sum(pt.cast("float32", a[i, r.k]) * pt.cast("float32", b[r.k, j]), over=r)
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), name="matmul")


def _halves(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    return floats(name, shape, rng).astype(np.float16)


EXPERT = multiplied(ab=Factors("out", alone=True))
_SIZES = {
    "small": {"a": (200, 170), "b": (170, 150)},
    "paper": {"a": (2048, 2048), "b": (2048, 2048)},
    "thesis": {"a": (1536, 1536), "b": (1536, 1536)},
    "gpu": {"a": (4096, 4096), "b": (4096, 4096)},
}
APPS = (
    App("matmul", "matrix product, float32", build, EXPERT, _SIZES, floats, on_gpu=partial(product, "sums", "out")),
    App(
        "matmul_half",
        "matrix product, float16 into float32",
        partial(build, "float16"),
        EXPERT,
        _SIZES,
        _halves,
        on_gpu=partial(product, "sums", "out"),
        on_tensor_cores=partial(tensor_cores.product, "sums", "out"),
    ),
)
