"""Unsharp masking: compiled in two steps, as one alone would weigh all 49 pixels around each."""

import math

import torch
from torch.nn.functional import pad

from ..gpu_worker import Inputs, Program, Shapes, Tensor
from ._compiled import luma

SIGMA = 1.5
WEIGHTS = [math.exp(-i * i / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(4)]


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    del shapes
    image = inputs["img"]
    down, sharpen = (torch.compile(f, dynamic=False, fullgraph=True) for f in (_down, _sharpened))
    return lambda: sharpen(image, down(image))


def _down(image: Tensor) -> Tensor:
    """Blurred along columns."""
    gray, height = luma(image), image.shape[1]
    padded = pad(gray[None, None], (0, 0, 3, 3), mode="replicate")[0, 0]
    return _gaussian([padded[k : k + height] for k in range(7)])


def _sharpened(image: Tensor, down: Tensor) -> Tensor:
    gray, width = luma(image), image.shape[2]
    padded = pad(down[None, None], (3, 3, 0, 0), mode="replicate")[0, 0]
    across = _gaussian([padded[:, k : k + width] for k in range(7)])
    return (2 * gray - across) / gray * image


def _gaussian(taps: list[Tensor]) -> Tensor:
    total = WEIGHTS[0] * taps[3]
    for k in (1, 2, 3):
        total = total + WEIGHTS[k] * (taps[3 - k] + taps[3 + k])
    return total
