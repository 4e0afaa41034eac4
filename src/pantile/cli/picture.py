"""A picture as stored in its file, and the meaning of its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..dataclass import cached_property

Array = np.ndarray[Any, Any]

_CHANNELS = {1: "grey", 3: "RGB", 4: "RGB with opacity"}
_FULL = {"uint8": 255, "uint16": 65535}


@dataclass(frozen=True)
class Picture:
    """A file and its numbers: values[y, x, channel] with 1, 3 or 4 channels, or any array of a .npy file."""

    path: Path
    values: Array

    @property
    def is_array(self) -> bool:
        """Whether it is a saved array, which need not be a picture."""
        return self.path.suffix.lower() == ".npy"

    @property
    def full(self) -> int:
        """The number for full brightness; None for floats, and for integers that cameras do not write."""
        return _FULL.get(self.values.dtype.name, 1)

    @cached_property
    def levels(self) -> Array:
        """Brightness [y, x, channel], from 0 to 1 if the file has a scale."""
        values = self.values[..., None] if self.values.ndim == 2 else self.values
        if values.ndim != 3 or values.shape[2] not in _CHANNELS or values.dtype.kind not in "biuf":
            raise OSError(
                f"{self.path} holds {_array(self.values)}, which is not a picture: a picture has the axes [y, x], or "
                "[y, x, channel] with 1, 3 or 4 channels"
            )
        exact = values.dtype.kind == "b" or self.full > 1 or values.dtype.itemsize < 4
        return np.asarray(values, np.float32 if exact or values.dtype == np.float32 else np.float64) / self.full

    def __str__(self) -> str:
        if self.is_array:
            return f"{self.path}, {_array(self.values)}"
        height, width, channels = self.values.shape
        depth = "" if self.values.dtype == np.uint8 else f", {self.values.dtype}"
        return f"{self.path}, {width} x {height}, {_CHANNELS[channels]}{depth}"


def deepest(pictures: list[Picture]) -> np.dtype[Any]:
    """The type that can hold the pixels of these pictures: bytes, 16 bits or floats. Arrays only count if there are no
    pictures, because they may be weights or similar."""
    types = {p.values.dtype.name for p in [q for q in pictures if not q.is_array] or pictures}
    if not types <= {"bool", *_FULL}:
        return np.dtype(np.float32)
    return np.dtype(np.uint16 if "uint16" in types else np.uint8)


def quantized(levels: Array, dtype: np.dtype[Any]) -> Array:
    """Brightness from 0 to 1 as integers over the whole range of a type."""
    scaled = np.iinfo(dtype).max * np.nan_to_num(levels.astype(np.float64)).clip(0, 1)
    return np.asarray(np.rint(scaled), dtype)


def _array(values: Array) -> str:
    return f"{values.dtype}{list(values.shape)}"


def pillow(purpose: str) -> Any:
    """PIL.Image, with all its formats."""
    try:
        from PIL import Image
    except ImportError:
        raise OSError(f"{purpose} needs Pillow: pip install 'pantile[images]'") from None
    Image.init()
    return Image


def tifffile() -> Any | None:
    """The package tifffile, if installed: Pillow has no TIFF of several channels with more than 8 bits."""
    try:
        import tifffile
    except ImportError:
        return None
    return tifffile
