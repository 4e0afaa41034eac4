"""How a picture becomes the inputs of an app, and its output a picture.

A picture is an array of floats [y, x, channel] with 1, 3 or 4 channels: grey, or red, green, blue, opacity. 0 is dark
and 1 is full brightness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_MOSAICS = ("grbg", "rggb")
_BRIGHT = 99.8  # the percentile that is shown as white, where values have no scale of their own


@dataclass(frozen=True)
class Layout:
    """An array that holds a picture.

    channels     "rgb", "bgr", "rgba" or "grey"; "plane" for grey with an axis of one channel; "mask" for grey that is
                 either dark or bright; "each" if the app takes one channel, to be run on each of them in turn; "grbg"
                 and "rggb" for the mosaic that a sensor sees, by the colours of its first two rows and columns. A grey
                 picture is taken for a mosaic already, and its numbers as they are if none is beyond white
    dtype        of the array
    white        the number that stands for full brightness; None where there is none, and the brightest pixels decide
    black        the number that stands for darkness
    exponent     of brightness when it is shown: small ones make faint things visible, and 0.5 what a sensor counts
    interleaved  channels are the last axis of the array, not the first
    frames       the array holds several pictures, along an axis before all others
    """

    channels: str
    dtype: str
    white: float | None = 1.0
    black: float = 0.0
    exponent: float = 1.0
    interleaved: bool = False
    frames: bool = False

    def arrays(self, picture: Array) -> list[Array]:
        """The picture in this layout: one array, or one per channel."""
        if self.is_raw(picture):
            return [np.asarray(np.rint(65535 * picture[..., 0]), self.dtype)]
        arrays = [self._scaled(a) for a in _SPLIT[self.channels](picture)]
        return [np.ascontiguousarray(np.moveaxis(a, 0, -1)) if self.interleaved and a.ndim == 3 else a for a in arrays]

    def is_raw(self, picture: Array) -> bool:
        """Whether a picture is what a sensor has counted, in 16 bits, with numbers that this layout has, too."""
        is_mosaic = self.channels in _MOSAICS and picture.shape[2] == 1
        return bool(is_mosaic and self.white and 65535 * picture.max(initial=0) <= self.white)

    def levels(self, arrays: list[Array]) -> Array:
        """What the arrays show, as a picture. Numbers beyond black and white stay there."""
        planes = [plane for a in arrays for plane in self._planes(a)]
        if self.channels == "bgr":
            planes.reverse()
        if len(planes) == 2:  # a vector per pixel, as red and green
            planes.append(np.full_like(planes[0], 0.5 * (self.black + (self.white or 0))))
        shown = np.stack(planes, axis=-1)
        shown = shown if shown.dtype.kind == "f" else shown.astype(np.float64)
        white = self.white or max(float(np.nanpercentile(shown, _BRIGHT)), np.finfo(np.float32).tiny)
        levels = (shown - shown.dtype.type(self.black)) / shown.dtype.type(white - self.black)
        return levels if self.exponent == 1 else np.asarray(levels.clip(0) ** shown.dtype.type(self.exponent))

    def _scaled(self, a: Array) -> Array:
        assert self.white is not None
        brightness = a if self.exponent == 1 else a ** (1 / self.exponent)
        values = self.black + brightness * np.float32(self.white - self.black)
        return np.ascontiguousarray(values if np.dtype(self.dtype).kind == "f" else np.rint(values), self.dtype)

    def _planes(self, a: Array) -> Array:
        return a[None] if a.ndim == 2 else np.moveaxis(a, -1, 0) if self.interleaved else a


@dataclass(frozen=True)
class Photo:
    """What `pantile run` needs to know of an app that works on pictures.

    takes      the layout of each input, in the order in which pictures are given
    gives      the layout of the output
    same       inputs that show the same picture as another one, unless they are given one of their own
    fixed      inputs that are no pictures
    """

    takes: Mapping[str, Layout]
    gives: Layout
    same: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Array] = field(default_factory=dict)


def _colours(picture: Array) -> Array:
    """Red, green and blue, without opacity."""
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture[..., :3]


def _planes(picture: Array) -> Array:
    return np.moveaxis(picture, -1, 0)


def _grey(picture: Array) -> Array:
    grey: Array = picture[..., 0] if picture.shape[2] == 1 else _colours(picture) @ _LUMA
    return grey


def _with_opacity(picture: Array) -> Array:
    """Opaque, unless the picture says otherwise."""
    if picture.shape[2] == 4:
        return picture
    return np.concatenate([_colours(picture), np.ones((*picture.shape[:2], 1), np.float32)], axis=2)


def _mosaic(picture: Array, order: str) -> Array:
    """One colour per pixel, by the colours of the first two rows and columns."""
    if picture.shape[2] == 1:
        return picture[..., 0]
    colours = _colours(picture)
    raw: Array = colours[..., 0].copy()
    for k, colour in enumerate(order):
        rows, columns = slice(k // 2, None, 2), slice(k % 2, None, 2)
        raw[rows, columns] = colours[rows, columns, "rgb".index(colour)]
    return raw


_SPLIT: Mapping[str, Callable[[Array], list[Array]]] = {
    "rgb": lambda picture: [_planes(_colours(picture))],
    "bgr": lambda picture: [_planes(_colours(picture))[::-1]],
    "rgba": lambda picture: [_planes(_with_opacity(picture))],
    "grey": lambda picture: [_grey(picture)],
    "plane": lambda picture: [_grey(picture)[None]],
    "each": lambda picture: list(_planes(picture if picture.shape[2] == 1 else _colours(picture))),
    "mask": lambda picture: [np.asarray(_grey(picture) >= 0.5, np.float32)],
    "grbg": lambda picture: [_mosaic(picture, "grbg")],
    "rggb": lambda picture: [_mosaic(picture, "rggb")],
}

FLOAT_RGB = Layout("rgb", "float32")
FLOAT_CHANNELS = Layout("each", "float32")
BYTES_RGB = Layout("rgb", "uint8", white=255)
SIXTEEN_BITS = Layout("rgb", "uint16", white=65535)
BYTES_GREY = Layout("grey", "uint8", white=255)
BYTES_CHANNELS = Layout("each", "uint8", white=255)
PIXELS = Layout("rgb", "uint8", white=255, interleaved=True)  # bytes as everybody has them
