"""OpenCV's own distance transform, by a 3x3 chamfer."""

from collections.abc import Callable, Mapping

import cv2

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Make a function that calls OpenCV once and returns the result."""
    img, (out,) = inputs["img"], outputs

    def compute() -> Array:
        cv2.distanceTransform(img, cv2.DIST_L2, 3, dst=out)
        return out

    return compute
