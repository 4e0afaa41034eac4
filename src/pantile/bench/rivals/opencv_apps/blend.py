"""Pyramids by `pyrDown` and `pyrUp`, one thread for each picture since these use but one, mixed by `blendLinear`."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import cv2
import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program

LEVELS = 6


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    a, b, mask, (out,) = inputs["a"], inputs["b"], inputs["mask"], outputs
    weights, others, firsts, seconds = _levels(mask.shape), _levels(mask.shape), _levels(a.shape), _levels(b.shape)
    ups, more_ups = _levels(a.shape), _levels(a.shape)
    pool = ThreadPoolExecutor(cv2.getNumThreads())

    def weigh() -> None:
        cv2.multiply(mask, 1 / 255, dst=weights[0], dtype=cv2.CV_32F)
        _gaussian(weights)
        for weight, other in zip(weights, others, strict=True):
            cv2.subtract(1.0, weight, dst=other)

    def compute() -> None:
        tasks = [pool.submit(_details, a, firsts, ups), pool.submit(_details, b, seconds, more_ups), pool.submit(weigh)]
        for task in tasks:
            task.result()
        for first, second, weight, other in zip(firsts, seconds, weights, others, strict=True):
            cv2.blendLinear(first, second, weight, other, dst=first)
        for n in reversed(range(LEVELS)):
            cv2.pyrUp(firsts[n + 1], dst=ups[n], dstsize=_size(ups[n]))
            cv2.add(ups[n], firsts[n], dst=firsts[n] if n else out, dtype=cv2.CV_32F if n else cv2.CV_8U)

    return compute


def _levels(shape: tuple[int, ...]) -> list[Array]:
    """Room for a pyramid."""
    levels = [np.empty(shape, np.float32)]
    for _ in range(LEVELS):
        height, width, *channels = levels[-1].shape
        levels.append(np.empty(((height + 1) // 2, (width + 1) // 2, *channels), np.float32))
    return levels


def _size(a: Array) -> tuple[int, int]:
    return a.shape[1], a.shape[0]


def _details(picture: Array, levels: list[Array], ups: list[Array]) -> None:
    """The Laplacian pyramid of a picture; `ups` is room for it."""
    np.copyto(levels[0], picture)
    _gaussian(levels)
    for (fine, coarse), up in zip(pairwise(levels), ups, strict=False):
        cv2.pyrUp(coarse, dst=up, dstsize=_size(up))
        cv2.subtract(fine, up, dst=fine)


def _gaussian(levels: list[Array]) -> None:
    for fine, coarse in pairwise(levels):
        cv2.pyrDown(fine, dst=coarse, dstsize=_size(coarse), borderType=cv2.BORDER_REPLICATE)
