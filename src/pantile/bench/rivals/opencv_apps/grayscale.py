"""OpenCV's own conversion."""

from collections.abc import Callable, Mapping

import cv2

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Make a function that calls OpenCV once and returns the result."""
    img, (out,) = inputs["img"], outputs

    def compute() -> Array:
        cv2.cvtColor(img, cv2.COLOR_RGB2GRAY, dst=out)
        return out

    return compute
