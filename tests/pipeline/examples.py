"""Small pipelines that the tests of calling share."""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt

Y, X = pt.vars("y x")
Array = np.ndarray[Any, np.dtype[Any]]


def blur(**options: Any) -> pt.Pipeline:
    """3x3, two stages, smaller than its input."""
    img = pt.Input("img", "uint16", 2)
    across, down = pt.Func("across"), pt.Func("down")
    across[Y, X] = (img[Y, X] + img[Y, X + 1] + img[Y, X + 2]) // 3
    down[Y, X] = (across[Y, X] + across[Y + 1, X] + across[Y + 2, X]) // 3
    return pt.Pipeline(down, (img.shape[0] - 2, img.shape[1] - 2), **{"name": "blur", **options})


def scaled(dtype: str = "float32", **options: Any) -> pt.Pipeline:
    """Pointwise, with a param."""
    img, gain, f = pt.Input("img", dtype, 2), pt.Param("gain", dtype, 2), pt.Func("scaled")
    f[Y, X] = img[Y, X] * gain
    return pt.Pipeline(f, **options)


def picture(*shape: int, dtype: str = "uint16", seed: int = 0) -> Array:
    """Random pixels."""
    return np.random.default_rng(seed).integers(0, 200, shape).astype(dtype)
