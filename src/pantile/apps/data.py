"""Random inputs that apps share."""

from __future__ import annotations

from typing import Any

import numpy as np


def integers(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """32-bit words, every value as likely."""
    return rng.integers(0, 2**32, shape, dtype=np.uint32)


def words(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """16-bit words, every value as likely."""
    return rng.integers(0, 2**16, shape, dtype=np.uint16)


def octets(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Bytes, every value as likely."""
    return rng.integers(0, 256, shape, dtype=np.uint8)


def floats(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Single precision in [0, 1)."""
    return rng.random(shape, dtype=np.float32)


def doubles(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Double precision in [0, 1)."""
    return rng.random(shape)
