"""What the everyday filters share: they have no schedule of their own, and run on pictures of six megapixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import pantile as pt

from ..app import BYTES_CHANNELS, BYTES_GREY, PIXELS, App, Array, Make, Photo, Shape

SMALL, LARGE = (240, 320), (2000, 3000)  # both in whole tiles of an 8 x 8 grid, as OpenCV's CLAHE wants it
OCTAVES = (1, 2, 4, 16, 64, 256)  # sizes of patches


def photograph(_: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Bytes with edges and noise at all scales, as in photographs; a rival that branches on pixels guesses as it does
    there, and not wrong at every other pixel as on white noise. Axes before height and width count pictures.
    """
    axis = len(shape) - (3 if len(shape) > 2 and shape[-1] == 3 else 2)
    height, width = shape[axis : axis + 2]
    total = np.zeros(shape, np.float32)
    for size in OCTAVES:
        coarse = (*shape[:axis], -(-height // size), -(-width // size), *shape[axis + 2 :])
        patches = rng.standard_normal(coarse, dtype=np.float32).repeat(size, axis).repeat(size, axis + 1)
        crop = (*(slice(None) for _ in range(axis)), slice(height), slice(width))
        total += patches[crop] * np.float32(4 + size**0.5)
    return np.asarray((128 + total).clip(0, 255), np.uint8)


def colours(height: int, width: int) -> Shape:
    """A colour picture as everybody has it."""
    return (height, width, 3)


def of_colours(height: int, width: int) -> dict[str, Shape]:
    """The shape of one colour picture, `img`."""
    return {"img": colours(height, width)}


def of_grey(height: int, width: int) -> dict[str, Shape]:
    """The shape of one grey picture, `img`."""
    return {"img": (height, width)}


FILTER = Photo({"img": PIXELS}, gives=PIXELS)
OF_EACH = Photo({"img": BYTES_CHANNELS}, gives=BYTES_CHANNELS)
TO_GREY = Photo({"img": PIXELS}, gives=BYTES_GREY)


def everyday(
    name: str,
    description: str,
    build: Callable[[], pt.Pipeline],
    shapes: Callable[[int, int], Mapping[str, Shape]],
    make: Make = photograph,
    small: tuple[int, int] = SMALL,
    **allowed: Any,
) -> App:
    """An app of this folder; `shapes` gives the inputs for pictures of some height and width."""
    sizes = {"small": shapes(*small), "paper": shapes(*LARGE)}
    return App(name, description, build, None, sizes, make, **allowed)
