"""The 3x3 box filter."""

import cv2
import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program

DIFFERS = "OpenCV rounds the mean of nine pixels to the nearest number; the app divides by three twice, rounding down"


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """Blur all of the image; the app's result has no border."""
    del outputs
    img = inputs["img"]
    blurred = np.empty_like(img)

    def compute() -> Array:
        cv2.blur(img, (3, 3), dst=blurred)
        return blurred[1:-1, 1:-1]

    return compute
