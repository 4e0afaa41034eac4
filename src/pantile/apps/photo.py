"""How a picture becomes the inputs of an app, and its output a picture.

A picture is a float32 array [y, x, channel] in 0 .. 1 with 1, 3 or 4 channels: grey, or red, green, blue, opacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_BRIGHT = 99.8  # the percentile that is shown as white, where values have no scale of their own


@dataclass(frozen=True)
class Layout:
    """An array that holds a picture.

    channels   "rgb", "rgba" or "grey"; "each" if the app takes one channel, to be run on each of them in turn; "bayer"
               for what a sensor sees: green and red in even rows, blue and green in odd ones. A grey picture is taken
               for that already, and its numbers as they are if none is beyond white
    dtype      of the array
    white      the number that stands for full brightness; None where there is none, and the brightest pixels decide
    black      the number that stands for darkness
    exponent   of brightness when it is shown: small ones make faint things visible, and 0.5 what a sensor counts
    """

    channels: str
    dtype: str
    white: float | None = 1.0
    black: float = 0.0
    exponent: float = 1.0

    def arrays(self, picture: Array) -> list[Array]:
        """The picture in this layout: one array, or one per channel."""
        if self.channels == "bayer" and picture.shape[2] == 1 and self.white and 65535 * picture.max() <= self.white:
            return [np.asarray(np.rint(65535 * picture[..., 0]), self.dtype)]
        return [self._scaled(a) for a in _SPLIT[self.channels](picture)]

    def picture(self, arrays: list[Array]) -> Array:
        """What the arrays show, as 8-bit channels."""
        planes = [plane for a in arrays for plane in (a[None] if a.ndim == 2 else a)]
        shown = np.stack(planes, axis=-1).astype(np.float64)
        white = self.white or max(float(np.percentile(shown, _BRIGHT)), np.finfo(np.float32).tiny)
        levels = np.nan_to_num((shown - self.black) / (white - self.black)).clip(0, 1)
        return np.asarray(np.rint(255 * levels**self.exponent), np.uint8)

    def _scaled(self, a: Array) -> Array:
        assert self.white is not None
        values = self.black + a ** (1 / self.exponent) * np.float32(self.white - self.black)
        return np.ascontiguousarray(values if np.dtype(self.dtype).kind == "f" else np.rint(values), self.dtype)


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


def _mosaic(picture: Array) -> Array:
    """One colour per pixel."""
    if picture.shape[2] == 1:
        return picture[..., 0]
    colours = _colours(picture)
    raw: Array = colours[..., 1].copy()
    raw[::2, 1::2] = colours[::2, 1::2, 0]
    raw[1::2, ::2] = colours[1::2, ::2, 2]
    return raw


_SPLIT: Mapping[str, Callable[[Array], list[Array]]] = {
    "rgb": lambda picture: [_planes(_colours(picture))],
    "rgba": lambda picture: [_planes(_with_opacity(picture))],
    "grey": lambda picture: [_grey(picture)],
    "each": lambda picture: list(_planes(picture if picture.shape[2] == 1 else _colours(picture))),
    "bayer": lambda picture: [_mosaic(picture)],
}

FLOAT_RGB = Layout("rgb", "float32")
FLOAT_CHANNELS = Layout("each", "float32")
BYTES_RGB = Layout("rgb", "uint8", white=255)
SIXTEEN_BITS = Layout("rgb", "uint16", white=65535)
