"""OpenCV's own Sobel."""

from collections.abc import Callable, Mapping

import cv2

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Make a function that calls OpenCV once and returns the result."""
    img, (out,) = inputs["img"], outputs

    def compute() -> Array:
        cv2.Sobel(img, cv2.CV_16S, 1, 0, dst=out, ksize=3, borderType=cv2.BORDER_REPLICATE)
        return out

    return compute
