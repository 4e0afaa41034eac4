"""Small pipelines to make mistakes with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pantile as pt

Y, X, C = pt.vars("y x c")
IMG = pt.Input("img", "uint8", 2)
FLOATS = pt.Input("floats", "float32", 2)
R = pt.RDom((0, 3), (0, 3))
ANY: Any = None


def func() -> pt.Func:
    f = pt.Func("f")
    f[Y, X] = Y + X
    return f


def pipeline(value: Callable[[pt.Input], Any] | None = None, shape: Any = None, **options: Any) -> pt.Pipeline:
    """f[y, x] = img[y, x], or what `value` makes of the input."""
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    f[Y, X] = img[Y, X] if value is None else value(img)
    return pt.Pipeline(f, shape, **options)


def with_param(dtype: str) -> pt.Pipeline:
    p = pt.Param("p", dtype)
    return pipeline(lambda img: img[Y, X] * p)


def line(value: Callable[[pt.Input], Any], shape: Any = None, dtype: str = "uint8", **options: Any) -> pt.Pipeline:
    """One dimension: f[x] = value(img)."""
    img, f = pt.Input("img", dtype, 1), pt.Func("f")
    f[X] = value(img)
    return pt.Pipeline(f, shape, **options)


def picture(*shape: int, dtype: str = "uint8") -> np.ndarray:
    return np.ones(shape or (8, 9), dtype)


def defined(name: str = "f", value: Any = 0) -> pt.Func:
    f = pt.Func(name)
    f[Y, X] = value
    return f
