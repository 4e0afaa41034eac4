"""What an app consists of, random inputs that apps share, and how a picture becomes inputs and an output a picture.

A picture is an array of floats [y, x, channel] with 1, 3 or 4 channels: grey, or red, green, blue, opacity. 0 is dark
and 1 is full brightness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pantile as pt
from pantile.target import Target

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


# How an app can be scheduled: by its author, plainly, or by a strategy.
SCHEDULES = ("expert", "plain", *pt.autoschedule.STRATEGIES, *pt.autoschedule.VARIANTS)

By = pt.Schedule | pt.autoschedule.Strategy
Expert = Callable[[Target, int], By]  # a schedule by hand, for a target and so many cores
MANY_CORES = 8  # as many share smaller tasks than few do; measured on two and on sixteen
Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Make = Callable[[str, Shape, np.random.Generator], Array]  # from the name and the shape of an input


@dataclass(frozen=True)
class App:
    """A pipeline, its hand-written schedules for CPUs and GPUs if it has some, and sizes of input to run it at."""

    name: str
    description: str
    build: Callable[[], pt.Pipeline]
    expert: Expert | None
    sizes: Mapping[str, Mapping[str, Shape]]  # size name -> input name -> shape
    make: Make
    # What results of other systems and schedules may differ by, where rounding does more than usual (bench/agreement):
    # floats relative to the largest, integers absolutely.
    tolerance: float | None = None
    off_by: int = 0
    margin: int = 0  # rows and columns of pixels at every edge where rivals follow rules of their own
    photo: Photo | None = None  # for an app that works on pictures
    on_gpu: Callable[[], By] | None = None  # a schedule by hand for GPUs
    on_tensor_cores: Callable[[], By] | None = None  # another one, for GPUs whose tensor cores it uses
    params: Mapping[str, Any] = field(default_factory=dict)  # of calls, where they are not the defaults

    def called(self, how: str) -> str:
        """One of SCHEDULES as this app has it: where nobody wrote a schedule, what pipelines without one run by."""
        return "auto" if how == "expert" and self.expert is None else how

    def schedule(self, how: str, target: Target, cores: int | None = None) -> By | str:
        """What `with_schedule` takes for one of SCHEDULES. `cores`: that share the work, by default this machine's."""
        if target.has_blocks:
            by_hand = self.on_tensor_cores if target.has_mma and self.on_tensor_cores is not None else self.on_gpu
            if how == "expert" and by_hand is not None:
                return by_hand()
            how = "auto" if how == "expert" else how
            chosen = pt.autoschedule.VARIANTS.get(how) or pt.autoschedule.STRATEGIES.get(how)
            return how if chosen is not None and chosen.for_gpus else "plain"
        if how == "expert" and self.expert is not None:
            return self.expert(target, pt.machine.usable_cores() if cores is None else cores)
        return self.called(how)

    def random(self, shapes: Mapping[str, Shape], seed: int = 0) -> dict[str, Array]:
        """Random data of such shapes, by the names of the inputs."""
        rng = np.random.default_rng(seed)
        return {name: self.make(name, shape, rng) for name, shape in shapes.items()}

    def size_called(self, name: str) -> str:
        """One of its sizes: GPUs get another one than `paper` only where that is too little for them."""
        return "paper" if name == "gpu" and name not in self.sizes else name

    def arguments(self, size: str) -> dict[str, Any]:
        """Of a call: random data of one of the sizes, and params."""
        return {**self.inputs(size), **self.params}

    def inputs(self, size: str, seed: int = 0) -> dict[str, Array]:
        """Random data of one of the sizes."""
        return self.random(self.sizes[size], seed)


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
