"""OpenCV's own."""

from collections.abc import Callable, Mapping

import cv2

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Make a function that calls OpenCV once and returns the result."""
    img, (out,) = inputs["img"], outputs
    clahe = cv2.createCLAHE(clipLimit=2.0, tileGridSize=(8, 8))

    def compute() -> Array:
        clahe.apply(img, dst=out)
        return out

    return compute
