"""OpenCV's own bilateral filter."""

from collections.abc import Callable, Mapping

import cv2

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Make a function that calls OpenCV once and returns the result."""
    img, (out,) = inputs["img"], outputs

    def compute() -> Array:
        cv2.bilateralFilter(img, 9, 30, 3, dst=out, borderType=cv2.BORDER_REPLICATE)
        return out

    return compute
