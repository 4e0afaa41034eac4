"""Random inputs that apps share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Make = Callable[[str, Shape, np.random.Generator], Array]  # from the name and the shape of an input


def below(end: int, dtype: str) -> Make:
    """Integers from 0 up to an end, every value as likely."""
    return lambda _, shape, rng: rng.integers(0, end, shape, dtype=dtype)


def between(low: float, high: float) -> Make:
    """Numbers of single precision in [low, high)."""
    return lambda _, shape, rng: np.asarray(rng.random(shape, dtype=np.float32) * (high - low) + low, np.float32)


integers, words, octets = below(2**32, "uint32"), below(2**16, "uint16"), below(2**8, "uint8")


def floats(_: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Single precision in [0, 1)."""
    return rng.random(shape, dtype=np.float32)


def doubles(_: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Double precision in [0, 1)."""
    return rng.random(shape)
