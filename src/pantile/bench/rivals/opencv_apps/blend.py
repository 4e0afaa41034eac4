"""Pyramids by `pyrDown` and `pyrUp`, mixed by `blendLinear`."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import cv2
import numpy as np

from ..library_worker import Array

LEVELS = 6


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """OpenCV makes the arrays of the smaller levels itself."""
    a, b, mask, (out,) = inputs["a"], inputs["b"], inputs["mask"], outputs

    def compute() -> Array:
        weights = _gaussian(np.multiply(mask, np.float32(1 / 255)))
        details = [_laplacian(_gaussian(picture.astype(np.float32))) for picture in (a, b)]
        mixed = [
            cv2.blendLinear(first, second, weight, cv2.subtract(1.0, weight))
            for first, second, weight in zip(*details, weights, strict=True)
        ]
        result = mixed[-1]
        for detail in reversed(mixed[:-1]):
            coarse = cv2.pyrUp(result, dstsize=(detail.shape[1], detail.shape[0]))
            last = detail is mixed[0]
            result = cv2.add(coarse, detail, dst=out if last else coarse, dtype=cv2.CV_8U if last else cv2.CV_32F)
        return out

    return compute


def _gaussian(picture: Array) -> list[Array]:
    levels = [picture]
    for _ in range(LEVELS):
        levels.append(cv2.pyrDown(levels[-1], borderType=cv2.BORDER_REPLICATE))
    return levels


def _laplacian(levels: list[Array]) -> list[Array]:
    details = []
    for fine, coarse in pairwise(levels):
        up = cv2.pyrUp(coarse, dstsize=(fine.shape[1], fine.shape[0]))
        details.append(cv2.subtract(fine, up, dst=up))
    return [*details, levels[-1]]
