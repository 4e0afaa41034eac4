"""Unsharp masking, compiled."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch.nn.functional import pad

from ._compiled import compiled, luma

Tensor = Any
SIGMA = 1.5
WEIGHTS = [math.exp(-i * i / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(4)]


def prepare(inputs: Mapping[str, Tensor], shapes: tuple[tuple[int, ...], ...]) -> Callable[[], Tensor]:
    """One image to one image."""
    del shapes
    return compiled(_unsharp, inputs["img"])


def _unsharp(image: Tensor) -> Tensor:
    height, width = image.shape[1:]
    gray = luma(image)
    padded = pad(gray[None, None], (3, 3, 3, 3), mode="replicate")[0, 0]
    down = _gaussian([padded[k : k + height] for k in range(7)])
    across = _gaussian([down[:, k : k + width] for k in range(7)])
    return (2 * gray - across) / gray * image


def _gaussian(taps: list[Tensor]) -> Tensor:
    total = WEIGHTS[0] * taps[3]
    for k in (1, 2, 3):
        total = total + WEIGHTS[k] * (taps[3 - k] + taps[3 + k])
    return total
